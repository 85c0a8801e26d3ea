"""What the training on all rows may take.

It is counted in multiplications, not in seconds: the same table gives the same committee
on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridmix.training.trials import Score, Search

# Multiplications that all members may take for a step on the rows that they are trained
# on: minutes of training. EM of the density has more steps, and may take fewer in each.
_MOST_OF_ALL, _MOST_OF_DENSITY = 3e10, 1e10
# More rows improve a model little, and take more time and memory.
ENOUGH_ROWS = 200_000


def affordable_members(
    scores: Sequence[Score], search: Search, n_rows: int
) -> list[Score]:
    """Return what may be a member of a committee, at least by itself."""
    return _affordable(scores, search, n_rows, _MOST_OF_ALL)


def affordable_densities(
    scores: Sequence[Score], search: Search, n_rows: int
) -> list[Score]:
    """Return what may be the density of a committee."""
    return _affordable(scores, search, n_rows, _MOST_OF_DENSITY)


def taken_together(scores: Sequence[Score], search: Search, n_rows: int) -> list[Score]:
    """Return the entries that are affordable together; the first ones are preferred."""
    taken: list[Score] = []
    left = _MOST_OF_ALL
    for score in scores:
        work = _work(score, search, n_rows)
        if not taken or work <= left:
            taken.append(score)
            left -= work
    return taken


def _affordable(
    scores: Sequence[Score], search: Search, n_rows: int, most: float
) -> list[Score]:
    """Return the entries that are allowed what they take; the cheapest, if none is."""
    work = [_work(score, search, n_rows) for score in scores]
    pairs = zip(scores, work, strict=True)
    cheap = [score for score, own in pairs if own <= most]
    return cheap or [scores[int(np.argmin(work))]]


def _work(score: Score, search: Search, n_rows: int) -> int:
    """Return about how many multiplications an entry takes for a step on its rows."""
    return min(n_rows, ENOUGH_ROWS) * search.work(score.entry)
