"""Where values lie in the charts of a report: scales, axes and ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.reporting.markup import escape, number, tick_texts

WIDTH, HEIGHT = 360, 240
RIGHT, TOP, BOTTOM = 12, 26, 42


@dataclass(frozen=True)
class Plane:
    """Maps values to places in a picture.

    Attributes
    ----------
    x_limits, y_limits : tuple of float
        Values at the ends of the axes.
    whole_x : bool, default=False
        Whether x counts something.
    log_x : bool, default=False
        Whether x is logarithmic; its limits are positive.
    """

    x_limits: tuple[float, float]
    y_limits: tuple[float, float]
    whole_x: bool = False
    log_x: bool = False

    @cached_property
    def y_ticks(self) -> dict[float, str]:
        """Ticks of the y axis and what is written at them."""
        values = ticks(*self.y_limits)
        return dict(zip(values, tick_texts(values), strict=True))

    @cached_property
    def x_ticks(self) -> dict[float, str]:
        """Ticks of the x axis and what is written at them."""
        if self.log_x:
            return {value: number(value) for value in log_ticks(*self.x_limits)}
        values = ticks(*self.x_limits, whole=self.whole_x)
        return dict(zip(values, tick_texts(values), strict=True))

    @cached_property
    def left(self) -> float:
        """Where the y axis stands: next to its longest number."""
        return 14.0 + 7.0 * max(map(len, self.y_ticks.values()), default=2)

    def x(self, values: Any) -> FloatArray:
        """Return places along the x axis."""
        low, high = self.x_limits
        places = np.asarray(values, dtype=float)
        if self.log_x:
            low, high, places = math.log(low), math.log(high), np.log(places)
        return self.left + (WIDTH - self.left - RIGHT) * (places - low) / (high - low)

    def y(self, values: Any) -> FloatArray:
        """Return places along the y axis."""
        low, high = self.y_limits
        inner = HEIGHT - TOP - BOTTOM
        shares = (np.asarray(values, dtype=float) - low) / (high - low)
        return HEIGHT - BOTTOM - inner * shares

    def points(self, x: Any, y: Any) -> list[str]:
        """Return places as they are written in a path: "12.5 7"."""
        pairs = zip(self.x(x), self.y(y), strict=True)
        return [f"{place_text(a)} {place_text(b)}" for a, b in pairs]

    def axes(self, x_label: str, y_label: str) -> str:
        """Draw grid, ticks and labels."""
        parts, left = [], place_text(self.left)
        for tick, text in self.y_ticks.items():
            place = place_text(self.y(tick))
            parts.append(
                f'<path class="grid" d="M{left} {place}H{WIDTH - RIGHT}"/>'
                f'<text x="{left}" dx="-6" y="{place}" dy="4" class="end">{text}</text>'
            )
        bottom = HEIGHT - BOTTOM
        for tick, text in self.x_ticks.items():
            place = place_text(self.x(tick))
            parts.append(f'<path class="axis" d="M{place} {bottom}v4"/>')
            # Long numbers at the end would be cut off.
            if float(self.x(tick)) + 3.5 * len(text) <= WIDTH:
                parts.append(
                    f'<text x="{place}" y="{bottom + 17}" class="middle">{text}</text>'
                )
        parts.append(f'<path class="axis" d="M{left} {bottom}H{WIDTH - RIGHT}"/>')
        centre = place_text((self.left + WIDTH - RIGHT) / 2)
        parts.append(
            f'<text x="{centre}" y="{HEIGHT - 6}" class="middle label">'
            f"{escape(x_label)}</text>"
        )
        # Above the axis, where it is read without turning the head.
        parts.append(f'<text x="2" y="11" class="label">{escape(y_label)}</text>')
        return "".join(parts)


def ticks(
    low: float, high: float, *, n_most: int = 6, whole: bool = False
) -> list[float]:
    """Return round numbers between two limits, with equal steps of 1, 2 or 5."""
    span = high - low
    magnitude = 10.0 ** math.floor(math.log10(span / n_most))
    magnitude = max(magnitude, 1.0) if whole else magnitude
    step = next(
        magnitude * factor
        for factor in (1, 2, 5, 10, 20)
        if span / (magnitude * factor) <= n_most
    )
    # A little beyond the limits, since they may be ticks that were computed otherwise.
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # Without the rounding, 3 * 0.1 would show its error.
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def log_ticks(low: float, high: float, *, n_most: int = 6) -> list[float]:
    """Return powers of ten between two positive limits; 2 and 5 times them if few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, -(-(last - first) // n_most))
    factors = (1, 2, 5) if last - first <= n_most // 3 else (1,)
    values = (
        factor * 10.0**power
        for power in range(first, last + 1, step)
        for factor in factors
    )
    return [value for value in values if 0.999 * low <= value <= 1.001 * high]


def limits_of(values: FloatArray, margin: float = 0.05) -> tuple[float, float]:
    """Return the ends of an axis for some values, with a margin on both sides."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    # Ticks of a range that rounding has made would all look the same.
    room = max(margin * (high - low), 1e-6 * max(abs(low), abs(high))) or 0.5
    return low - room, high + room


def place_text(value: Any) -> str:
    """Write a coordinate; a tenth of a unit is less than a pixel."""
    return f"{float(value):.1f}".removesuffix(".0")
