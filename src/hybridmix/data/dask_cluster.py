"""Computations on a Dask cluster that may go away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dask.delayed import Delayed

# Of tasks of any kind.
Results: TypeAlias = tuple[Any, ...]
_LOST = (
    "The Dask cluster was lost: there is no connection to its scheduler. Start it again, "
    "and call this once more."
)


def computed(parts: Sequence[Delayed]) -> Results:
    """Return the results of some tasks, all of which are computed at once."""
    from dask.base import compute

    with _connected():
        results: Results = compute(*parts)
    return results


def persisted(parts: Sequence[Delayed]) -> Results:
    """Begin to compute some tasks, whose results stay on the workers."""
    from dask.base import persist

    with _connected():
        tasks: Results = persist(*parts)
    return tasks


@contextmanager
def _connected() -> Iterator[None]:
    """Raise ConnectionError at once if the scheduler of a cluster is gone.

    Dask itself waits for 30 seconds and longer for a scheduler to come back, which would
    know nothing of encoded rows.
    """
    from dask.base import get_scheduler

    # The scheduler of a cluster is a method of its client.
    client = getattr(get_scheduler(), "__self__", None)
    if getattr(client, "status", "running") != "running":
        raise ConnectionError(_LOST)
    try:
        yield
    except CancelledError as error:
        raise ConnectionError(_LOST) from error
