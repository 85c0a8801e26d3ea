"""Memory that the work on chunks of rows uses again."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sequence_helpers import make_chains, make_sequences

from hybridmix._scratch import empty, lasting, release, reused


@pytest.fixture(autouse=True)
def _nothing_kept():
    release()
    yield
    release()


def arrays_of_a_chunk() -> list[np.ndarray]:
    with reused():
        arrays = [empty((3, 50)), empty((7,))]
        for number, array in enumerate(arrays):
            array[...] = number
        assert arrays[0].min() == arrays[0].max() == 0.0
    return arrays


def test_memory_is_used_again():
    arrays_of_a_chunk()  # finds out how much it takes
    first, second = arrays_of_a_chunk(), arrays_of_a_chunk()
    for one, other in zip(first, second, strict=True):
        assert np.shares_memory(one, other)
        assert one.ctypes.data % 64 == first[0].ctypes.data % 64
    assert not np.shares_memory(*first)


def test_arrays_last_outside_of_a_chunk_and_where_this_is_asked_for():
    arrays_of_a_chunk()
    kept = [empty((3, 50)), empty((3, 50))]
    with reused():
        with lasting():
            kept.append(empty((3, 50)))
            with reused():
                inner = empty((3, 50))
        outer = empty((3, 50))
        kept.append(inner)
        assert np.shares_memory(inner, outer)  # what is inside has ended
    for number, array in enumerate(kept[:3]):
        others = [other for place, other in enumerate(kept) if place != number]
        assert not any(np.shares_memory(array, other) for other in others)


def test_arrays_around_an_inner_chunk_keep_their_memory():
    arrays_of_a_chunk()
    with reused():
        outer = empty((3, 20))
        with reused():
            inner = empty((3, 20))
        assert not np.shares_memory(inner, outer)


def test_inner_arrays_count_in_what_is_kept():
    def addresses() -> list[int]:
        with reused():
            outer = empty((3, 20))
            with reused():
                return [outer.ctypes.data, empty((1000, 20)).ctypes.data]

    addresses()  # finds out how much it takes
    one, other = addresses(), addresses()
    assert one == other
    assert abs(one[1] - one[0]) < 3000 * 8  # both are cut from the same memory


def test_threads_have_their_own_memory():
    arrays_of_a_chunk()
    found: list[np.ndarray] = []

    def run() -> None:
        arrays_of_a_chunk()
        found.extend(arrays_of_a_chunk())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not np.shares_memory(found[0], arrays_of_a_chunk()[0])


def test_prepared_sequences_outlast_the_work_on_a_chunk():
    rows = make_sequences([5, 3, 4])
    model = make_chains("diag x categorical")
    expected = model.evaluate(model.prepare(rows)).log_joint
    prepared = model.prepare(rows)
    with reused():  # makes room for all that follows
        empty((100_000,))
    for _ in range(3):
        with reused():
            found = model.evaluate(prepared).log_joint
            np.testing.assert_array_equal(found, expected)
        with reused():  # of another chunk
            empty((100_000,))[...] = np.nan
