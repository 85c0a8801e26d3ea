"""Shapes of real columns: what maps a column onto the whole line, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import (
    require,
    require_instance,
    require_number,
    require_positive,
)
from hybridmix._typing import FloatArray, IntArray

# Farther from its centre than this, in its own units, no value is told from another.
_FARTHEST = 1e50
# Values farther than this could not be squared and added up.
LARGEST = 1e100
# Of the quadrature for means of mapped columns.
_N_NODES = 24
# Spikes that are listed in words.
_MOST_SHOWN = 4


def gaussian_quadrature() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the quadrature for means of mapped columns."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_N_NODES)
    return nodes, weights / weights.sum()


class Transform(ABC):
    """A smooth increasing map of the whole line onto itself.

    A Gaussian in the mapped values is then a proper density of the column: no mass is
    lost, and no value has a density of zero.
    """

    @property
    @abstractmethod
    def word(self) -> str:
        """What to call a column of this shape."""

    @abstractmethod
    def forward(self, values: FloatArray) -> FloatArray:
        """Map values of the column; NaN stays NaN."""

    @abstractmethod
    def inverse(self, mapped: FloatArray) -> FloatArray:
        """Undo `forward`."""

    @abstractmethod
    def log_derivative(self, values: FloatArray) -> FloatArray:
        """Return the log of the derivative of `forward`."""


@registered
@dataclass(frozen=True)
class SinhArcsinh(Transform):
    r"""The transform of Jones and Pewsey (2009), for skewed columns and long tails.

    .. math:: z = \sinh\big( \delta \operatorname{arsinh} u - \epsilon \big), \qquad
              u = (x - m) / s

    Parameters
    ----------
    centre, scale : float
        The location :math:`m` and the scale :math:`s`.
    skew : float
        :math:`\epsilon`: positive for a long tail to the right.
    tail : float
        :math:`\delta`: 1 for the tails of a Gaussian, less for longer ones.
    """

    centre: float
    scale: float
    skew: float
    tail: float

    @property
    def word(self) -> str:
        return "skewed" if self.skew else "long tails"

    def check_consistent(self) -> None:
        """Raise ValueError unless this is a map onto the line."""
        require_number("centre", self.centre)
        require_positive("scale", self.scale)
        require_number("skew", self.skew)
        require_positive("tail", self.tail)
        require(abs(self.skew) <= 10.0 and 0.1 <= self.tail <= 2.0, "skew is extreme")

    def _angle(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(over="ignore"):
            u = np.clip((values - self.centre) / self.scale, -_FARTHEST, _FARTHEST)
        return u, self.tail * np.arcsinh(u) - self.skew

    def forward(self, values: FloatArray) -> FloatArray:
        return np.sinh(self._angle(values)[1])

    def inverse(self, mapped: FloatArray) -> FloatArray:
        angle = (np.arcsinh(mapped) + self.skew) / self.tail
        return self.centre + self.scale * np.sinh(np.clip(angle, -300.0, 300.0))

    def log_derivative(self, values: FloatArray) -> FloatArray:
        u, angle = self._angle(values)
        angle = np.abs(angle)
        log_cosh = angle + np.log1p(np.exp(-2.0 * angle)) - np.log(2.0)
        return log_cosh + np.log(self.tail / self.scale) - np.log(np.hypot(1.0, u))


@registered
@dataclass(frozen=True)
class Logarithm(Transform):
    r"""The logarithm, for positive columns.

    Below a value under which training has seen none, the logarithm goes on as its
    tangent, so that zeros and negative values of later tables are far away, and not
    impossible:

    .. math:: z = \log x \ (x \ge \ell), \qquad z = \log \ell + (x - \ell) / \ell
              \ (x < \ell).

    Parameters
    ----------
    least : float
        The value :math:`\ell`, above zero.
    """

    least: float

    @property
    def word(self) -> str:
        return "positive"

    def check_consistent(self) -> None:
        """Raise ValueError unless the least value is positive."""
        require_positive("least", self.least)

    def forward(self, values: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            below = np.minimum((values - self.least) / self.least, 0.0)
        return np.log(np.maximum(values, self.least)) + np.maximum(below, -_FARTHEST)

    def inverse(self, mapped: FloatArray) -> FloatArray:
        start = np.log(self.least)
        below = self.least * np.minimum(mapped - start, 0.0)
        with np.errstate(over="ignore"):
            return np.exp(np.maximum(mapped, start)) + below

    def log_derivative(self, values: FloatArray) -> FloatArray:
        return -np.log(np.maximum(values, self.least))


@registered
@dataclass(frozen=True)
class Logit(Transform):
    r"""The logit, for columns between two bounds.

    .. math:: z = \log \frac{u}{1 - u}, \qquad u = \frac{x - a}{b - a}

    Nearer to a bound than training has seen any value, it goes on as its tangent, as in
    `Logarithm`.

    Parameters
    ----------
    low, high : float
        The bounds :math:`a` and :math:`b`.
    margin : float
        How near to 0 and 1 the logit goes in :math:`u`.
    """

    low: float
    high: float
    margin: float

    @property
    def word(self) -> str:
        return "bounded"

    def check_consistent(self) -> None:
        """Raise ValueError unless there is room between the bounds."""
        require_number("low", self.low)
        require_number("high", self.high)
        require(self.low < self.high, "the bounds are in the wrong order")
        require(np.isfinite(self.high - self.low), "the bounds are too far apart")
        require_positive("margin", self.margin)
        require(self.margin < 0.5, "the margin leaves no room between the bounds")

    def _parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the position within the bounds, and how far beyond the margin it is."""
        with np.errstate(over="ignore"):
            u = (values - self.low) / (self.high - self.low)
            inner = np.clip(u, self.margin, 1.0 - self.margin)
            beyond = (u - inner) / (self.margin * (1.0 - self.margin))
        return inner, np.clip(beyond, -_FARTHEST, _FARTHEST)

    def forward(self, values: FloatArray) -> FloatArray:
        inner, beyond = self._parts(values)
        return np.log(inner) - np.log1p(-inner) + beyond

    def inverse(self, mapped: FloatArray) -> FloatArray:
        end = np.log1p(-self.margin) - np.log(self.margin)
        inner = np.clip(mapped, -end, end)
        beyond = (mapped - inner) * self.margin * (1.0 - self.margin)
        return self.low + (self.high - self.low) * (1.0 / (1.0 + np.exp(-inner)) + beyond)

    def log_derivative(self, values: FloatArray) -> FloatArray:
        inner, _ = self._parts(values)
        return -np.log(inner) - np.log1p(-inner) - np.log(self.high - self.low)


@registered
@dataclass(frozen=True)
class ColumnShape:
    """The shape of a real column. All defaults together are a plain column.

    Attributes
    ----------
    transform : Transform or None
        Maps the values onto the line where they are modelled; None leaves them.
    spikes : tuple of float
        Values that repeat so often that they are categories of their own: they have a
        probability, and the other values a density.
    whole : bool
        Whether all values are whole numbers. Fills, draws and samples then are as well.
    low, high : float
        Fills, draws and samples are at least and at most this.
    least, most : float
        Means of mapped columns are held between these, the values that the shape was
        chosen by: the mean of a long tail may lie far beyond all rows.
    """

    transform: Transform | None = None
    spikes: tuple[float, ...] = ()
    whole: bool = False
    low: float = -np.inf
    high: float = np.inf
    least: float = -np.inf
    most: float = np.inf

    def check_consistent(self) -> None:
        """Raise ValueError unless this is the shape of a column."""
        if self.transform is not None:
            require_instance("a transform", self.transform, Transform)
        require_instance("spikes", self.spikes, tuple)
        for spike in self.spikes:
            require_instance("a spike", spike, float)
            require_number("a spike", spike)
        require(len(set(self.spikes)) == len(self.spikes), "spikes are not distinct")
        require_instance("whole", self.whole, bool)
        for end in (self.low, self.high, self.least, self.most):
            require_instance("the end of a range", end, float)
        ordered = self.low < self.high and self.least <= self.most
        require(ordered, "the ends of a range are in the wrong order")

    @property
    def is_plain(self) -> bool:
        """Whether the column is modelled and filled as it is."""
        return self == ColumnShape()

    def __str__(self) -> str:
        """Describe the shape in a few words, as schemas and reports show it."""
        words = ["symmetric" if self.transform is None else self.transform.word]
        if self.transform is None and self.low == 0.0:
            words.append("not negative")
        if self.whole:
            words.append("whole numbers")
        if self.spikes:
            listed = [f"{spike:g}" for spike in self.spikes[:_MOST_SHOWN]]
            n_others = len(self.spikes) - len(listed)
            others = [f"{n_others} others"] if n_others else []
            words.append(f"often {', '.join([*listed, *others])}")
        return ", ".join(words)

    def forward(self, values: FloatArray) -> FloatArray:
        """Map values that are not spikes onto the line."""
        return values if self.transform is None else self.transform.forward(values)

    def inverse(self, mapped: FloatArray) -> FloatArray:
        """Undo `forward`, exactly; see `allowed`."""
        return mapped if self.transform is None else self.transform.inverse(mapped)

    def moments(
        self, means: FloatArray, deviations: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and deviations of values whose mapped values are Gaussian.

        Parameters
        ----------
        means, deviations : ndarray
            Of the mapped values.
        """
        if self.transform is None:
            return means, deviations
        first, second = np.zeros_like(means), np.zeros_like(means)
        centre = np.clip(self.inverse(means), -LARGEST, LARGEST)
        for node, weight in zip(*gaussian_quadrature(), strict=True):
            value = self.inverse(means + node * deviations)
            # Differences to the centre keep their digits.
            step = np.clip(value, -LARGEST, LARGEST) - centre
            first += weight * step
            second += weight * step**2
        variances = np.maximum(second - first**2, 0.0)
        return centre + first, np.sqrt(variances)

    def allowed(self, values: FloatArray) -> FloatArray:
        """Return the nearest values that the column may have."""
        # Adding zero makes 0 of -0, which looks like an error in a table.
        values = np.rint(values) + 0.0 if self.whole else values
        return np.clip(values, self.low, self.high)

    def spike_codes(self, values: FloatArray) -> IntArray:
        """Return which spike a value is, from 1 on; 0 for others, -1 where missing.

        Spikes in single precision are known as well.
        """
        codes = np.where(np.isnan(values), -1, 0).astype(np.int32)
        if not self.spikes:
            return codes
        spikes = np.array(self.spikes)
        with np.errstate(over="ignore"):
            rounded = spikes.astype(np.float32).astype(float)
        for known in (rounded, spikes):
            order = np.argsort(known)
            places = np.searchsorted(known, values, sorter=order)
            places = order[np.minimum(places, len(known) - 1)]
            is_spike = known[places] == values
            codes[is_spike] = 1 + places[is_spike]
        return codes
