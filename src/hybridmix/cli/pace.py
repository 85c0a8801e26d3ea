"""How long work takes that has begun, in lines for files and pipes."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from hybridmix.progress import Step

# Seconds before the first line of a task, and between two lines.
_FIRST, _PAUSE = 5.0, 30.0
# Tasks that others are part of, such as the steps of a solver; these say nothing.
_WHOLE = ("search", "members", "cross-validation", "report")


class Pace:
    """Says how far long work is and how long the rest will take at this pace.

    Parameters
    ----------
    say : callable
        Shows a line.
    clock : callable, default=time.perf_counter
        Returns the time in seconds.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = perf_counter
    ) -> None:
        self._say = say
        self._clock = clock
        # When each task began, how much of it was done then, and when to speak next.
        self._began: dict[str, tuple[float, int]] = {}
        self._next = 0.0

    def __call__(self, step: Step) -> None:
        """Take note of a step; say something if enough time has passed."""
        if step.task not in _WHOLE:
            return
        now = self._clock()
        began, first = self._began.setdefault(step.task, (now, step.done))
        if step.done <= first:  # it begins, or begins again
            self._began[step.task] = now, step.done
            self._next = max(self._next, now + _FIRST)
            return
        seconds, n_done, n_left = now - began, step.done - first, step.total - step.done
        if now < self._next or n_left <= 0:
            return
        self._next = now + _PAUSE
        left = in_words(seconds * n_left / n_done)
        self._say(f"{step.task} {step.done}/{step.total}, about {left} left")


def in_words(seconds: float) -> str:
    """Write a duration, rounded."""
    if seconds < 90.0:
        return f"{max(seconds, 1.0):.0f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} minutes" if minutes < 90.0 else f"{minutes / 60.0:.1f} hours"
