"""How much effort a search may take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from numbers import Real

from hybridmix._checks import check_number

EFFORTS = ("fast", "balanced", "thorough")


def check_effort(name: str, value: object) -> None:
    """Refuse an effort that is neither a known word nor a positive number of seconds.

    Parameters
    ----------
    name : str
        The option.
    value : object
        What was given.
    """
    if isinstance(value, str) and value in EFFORTS:
        return
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(
            f"{name}={value!r} is not one of {', '.join(EFFORTS)}, nor a number of "
            "seconds."
        )
    check_number(name, value, 1e-9)


@dataclass(frozen=True)
class Budget:
    """An effort, from the moment when it is made.

    Attributes
    ----------
    effort : str or float
        "fast", "balanced", "thorough" or seconds; checked when made.
    started : float
        When the clock started, in the seconds of `time.perf_counter`.
    """

    effort: str | float
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        check_effort("effort", self.effort)

    @property
    def searches(self) -> bool:
        """Whether there is anything to spend on a search."""
        return self.effort != "fast"

    @property
    def is_thorough(self) -> bool:
        """Whether to search as far as possible: also if only the seconds limit it."""
        return self.effort == "thorough" or not isinstance(self.effort, str)

    @property
    def elapsed(self) -> float:
        """Seconds since the clock started."""
        return time.perf_counter() - self.started

    def is_spent(self, reserve: float = 0.0) -> bool:
        """Return whether the seconds are over; words have no limit of time.

        Parameters
        ----------
        reserve : float
            Seconds that something else still needs, such as the final fit.
        """
        if isinstance(self.effort, str):
            return False
        return self.elapsed + reserve >= float(self.effort)
