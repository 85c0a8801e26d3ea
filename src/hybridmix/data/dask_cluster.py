"""Computations on a Dask cluster that may go away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from distributed import Client

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


def persisted(parts: Sequence[Delayed], worker: str | None = None) -> Results:
    """Begin to compute some tasks, whose results stay on the workers.

    They are computed on a given worker of a cluster, unless it is lost.
    """
    from dask.base import persist

    options = {"workers": [worker], "allow_other_workers": True} if worker else {}
    with _connected():
        tasks: Results = persist(*parts, **options)
    return tasks


def current_client() -> Client | None:
    """Return the client of the cluster that is in use; None if there is none."""
    from dask.base import get_scheduler

    # The scheduler of a cluster is a method of its client.
    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "who_has") else None


@contextmanager
def _connected() -> Iterator[None]:
    """Raise ConnectionError at once if the scheduler of a cluster is gone.

    Dask itself waits for 30 seconds and longer for a scheduler to come back, which would
    know nothing of encoded rows.
    """
    client = current_client()
    if getattr(client, "status", "running") != "running":
        raise ConnectionError(_LOST)
    try:
        yield
    except CancelledError as error:
        raise ConnectionError(_LOST) from error
