"""Blocks on the workers of a Dask cluster, spread so that all have as much to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from hybridmix.data.dask_cluster import computed, current_client, persisted

if TYPE_CHECKING:
    from dask.delayed import Delayed

T = TypeVar("T")
# Blocks are moved while a worker has this many times as many rows as the mean.
_TOO_MUCH = 1.05
# Workers without work may take tasks from those that were asked to do them, as long as
# Dask does not know that it takes no time. Then blocks are moved again.
_ROUNDS = 3


def balanced(blocks: Sequence[Delayed]) -> list[Delayed]:
    """Move blocks from workers that have many rows to workers that have few.

    Workers read blocks as fast as they can, which may leave one of them with most of the
    rows. Every iteration would wait for it.

    Parameters
    ----------
    blocks : sequence of Delayed
        Blocks that stay on the workers, each with a number of rows, ``n_rows``.
    """
    client, result = current_client(), list(blocks)
    if client is None:
        return result
    from distributed import futures_of

    for _ in range(_ROUNDS):
        sizes = computed([block.n_rows for block in result])
        known = client.who_has(futures_of(result))
        holders = [next(iter(known.get(block.key, ())), "") for block in result]
        moved = moves(sizes, holders, client.nthreads())
        if not moved:
            break
        for number, worker in moved.items():
            [result[number]] = persisted([_sent(result[number])], worker)
    return result


def _sent(block: Delayed) -> Delayed:
    from dask.delayed import delayed

    return delayed(_itself)(block)


def moves(
    sizes: Sequence[int], holders: Sequence[str], threads: Mapping[str, int]
) -> dict[int, str]:
    """Return which blocks to move, and to which workers.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of rows of the blocks.
    holders : sequence of str
        The workers that have the blocks; those of unknown ones stay where they are.
    threads : mapping of str to int
        Numbers of threads of all workers.
    """
    held: dict[str, set[int]] = defaultdict(set)
    rows = dict.fromkeys(threads, 0)
    for number, worker in enumerate(holders):
        if worker in rows:
            held[worker].add(number)
            rows[worker] += sizes[number]
    enough = _TOO_MUCH * sum(rows.values()) / max(sum(threads.values()), 1)
    moved: dict[int, str] = {}
    while rows:
        loads = {worker: rows[worker] / threads[worker] for worker in rows}
        most, least = max(loads, key=loads.__getitem__), min(loads, key=loads.__getitem__)
        # The larger one of both loads after the move of each block.
        after = {
            number: max(
                (rows[most] - sizes[number]) / threads[most],
                (rows[least] + sizes[number]) / threads[least],
            )
            for number in held[most]
        }
        best = min(after, key=after.__getitem__, default=None)
        if best is None or loads[most] <= enough or after[best] >= loads[most]:
            break
        held[most].remove(best)
        held[least].add(best)
        rows[most] -= sizes[best]
        rows[least] += sizes[best]
        moved[best] = least
    return moved


def _itself(block: T) -> T:
    return block
