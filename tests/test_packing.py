"""Sequences side by side: the order of their frames, and what families read of them."""

import numpy as np
import pytest
from helpers import families
from sequence_helpers import make_sequences

from hybridmix.data.lengths import stacked_rows
from hybridmix.data.rows import Rows
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.models.packed import PreparedSequences, with_previous
from hybridmix.models.packing import Packing

PACKINGS = {
    "one sequence": ([4], None, 1),
    "one frame each": ([1, 1, 1], None, 1),
    "all lengths": ([3, 1, 5, 5, 2, 1], None, 1),
    "groups": ([3, 1, 5, 5, 2, 1], [1, 0, 1, 0, 0, 1], 2),
    "a group without sequences": ([3, 1, 4], [0, 2, 2], 3),
    "groups that end at different times": ([1, 1, 6], [0, 0, 1], 2),
}


def make_packing(kind):
    lengths, groups, n_groups = PACKINGS[kind]
    groups = None if groups is None else np.array(groups)
    return Packing(np.array(lengths), groups, n_groups)


def time_of(packing):
    """Time of each column."""
    return np.repeat(np.arange(len(packing.sizes)), packing.sizes.sum(axis=1))


@pytest.mark.parametrize("kind", PACKINGS)
def test_columns_are_frames_in_order_of_time(kind):
    lengths = np.array(PACKINGS[kind][0])
    packing = make_packing(kind)
    assert (packing.n_sequences, packing.n_frames) == (len(lengths), lengths.sum())
    time = time_of(packing)
    # Every frame has one column, and the sequence and time of its number.
    np.testing.assert_array_equal(np.sort(packing.source), np.arange(lengths.sum()))
    sequence = packing.order[packing.lane]
    starts = np.cumsum(lengths) - lengths
    np.testing.assert_array_equal(packing.source, starts[sequence] + time)
    np.testing.assert_array_equal(packing.lengths, lengths[packing.order])
    np.testing.assert_array_equal(packing.order[packing.inverse], np.arange(len(lengths)))
    np.testing.assert_array_equal(packing.lane[: len(lengths)], np.arange(len(lengths)))


@pytest.mark.parametrize("kind", PACKINGS)
def test_neighbours_in_time(kind):
    packing = make_packing(kind)
    n, time = packing.n_sequences, time_of(packing)
    np.testing.assert_array_equal(packing.lane[packing.before], packing.lane[n:])
    np.testing.assert_array_equal(time[packing.before], time[n:] - 1)
    np.testing.assert_array_equal(packing.lane[packing.last], np.arange(n))
    np.testing.assert_array_equal(time[packing.last], packing.lengths - 1)
    visited = []
    for number, (columns, blocks) in enumerate(packing.steps, start=1):
        assert set(time[columns]) == {number}
        for block in blocks:
            here, before = packing.lane[block.here], packing.lane[block.before]
            np.testing.assert_array_equal(here, before)
            assert set(packing.group_of[here]) == {block.group}
            visited.extend(range(block.here.start, block.here.stop))
        assert blocks[-1].here.stop == columns.stop
    assert visited == list(range(n, packing.n_frames))


@pytest.mark.parametrize("kind", PACKINGS)
def test_columns_of_groups(kind):
    packing = make_packing(kind)
    group = packing.group_of[packing.lane]
    for number, columns in enumerate(packing.columns_of):
        np.testing.assert_array_equal(columns, np.flatnonzero(group == number))
    arrivals = []
    everything = np.arange(packing.n_frames)
    for number, before, here in packing.arrivals(3):
        before, here = everything[before], everything[here]
        assert 0 < len(before) == len(here) <= 3
        np.testing.assert_array_equal(packing.lane[before], packing.lane[here])
        np.testing.assert_array_equal(
            time_of(packing)[before], time_of(packing)[here] - 1
        )
        assert set(group[here]) == {number}
        arrivals.extend(here.tolist())
    assert sorted(arrivals) == list(range(packing.n_sequences, packing.n_frames))


@pytest.mark.parametrize("kind", PACKINGS)
def test_some_lanes(kind):
    packing = make_packing(kind)
    lanes = np.arange(packing.n_sequences)[::2]
    part, columns = packing.of_lanes(lanes)
    own = lanes[part.order]
    np.testing.assert_array_equal(part.lengths, packing.lengths[own])
    np.testing.assert_array_equal(part.group_of, packing.group_of[own])
    np.testing.assert_array_equal(packing.lane[columns], own[part.lane])
    np.testing.assert_array_equal(time_of(packing)[columns], time_of(part))


# What families read ------------------------------------------------------------------


def test_frames_are_prepared_in_packed_order():
    family = families()["full x categorical"]
    rows = make_sequences([2, 5, 3], 0.3)
    prepared = PreparedSequences(rows, family, 2, False)
    packed = prepared.all_classes
    assert not packed.looks_at_own
    assert prepared.all_classes is packed
    [piece] = packed.pieces
    assert (piece.group, piece.columns) == (0, slice(0, 10))
    assert piece.frames() is piece.frames()
    components = family.start(rows.frames, np.full((2, 10), 0.5))
    found, _ = family.evaluate(piece.frames(), components)
    expected, _ = family.evaluate(family.prepare(rows.frames), components)
    np.testing.assert_allclose(found, expected[:, packed.packing.source])


def test_only_classes_with_sequences_are_prepared():
    family = families()["diag"]
    rows = make_sequences([2, 5, 3])
    packed = PreparedSequences(rows, family, 4, False).own_classes(np.array([3, 0, 3]))
    assert packed.looks_at_own
    assert packed.packing.n_groups == 4
    assert [piece.group for piece in packed.pieces] == [0, 3]
    components = family.start(rows.frames, np.ones((1, 10)))
    expected, _ = family.evaluate(family.prepare(rows.frames), components)
    for piece in packed.pieces:
        found, _ = family.evaluate(piece.frames(), components)
        source = packed.packing.source[piece.columns]
        np.testing.assert_allclose(found, expected[:, source])


@pytest.mark.parametrize("has_holes", [False, True])
def test_frames_with_those_before(has_holes):
    real = np.arange(12.0).reshape(2, 6)
    observed = np.ones((2, 6), dtype=bool)
    if has_holes:
        observed[1, 3] = False
    codes = np.arange(6, dtype=np.int32)[None] % 3
    rows = Rows(real, observed if has_holes else None, codes)
    read = with_previous(SequenceRows(rows, np.array([2, 1, 3])))
    values = np.where(read.observed, read.real, np.nan)
    own = np.where(observed, real, np.nan)
    np.testing.assert_array_equal(values[2:], own)
    before = np.column_stack([np.full(2, np.nan), own[:, :-1]])
    before[:, [0, 2, 3]] = np.nan  # first frames
    np.testing.assert_array_equal(values[:2], before)
    np.testing.assert_array_equal(read.codes, codes)


def test_rows_of_sequences():
    rows = make_sequences([2, 3, 1, 4])
    np.testing.assert_array_equal(rows.starts, [0, 2, 5, 6])
    neighbours = rows[1:3]
    assert np.shares_memory(neighbours.frames.real, rows.frames.real)
    np.testing.assert_array_equal(neighbours.frames.real, rows.frames.real[:, 2:6])
    chosen = rows[np.array([3, 0])]
    np.testing.assert_array_equal(chosen.lengths, [4, 2])
    np.testing.assert_array_equal(
        chosen.frames.real, rows.frames.real[:, [6, 7, 8, 9, 0, 1]]
    )
    assert rows[:0].n_rows == 0
    np.testing.assert_array_equal(
        stacked_rows(np.array([5, 1]), np.array([2, 3])), [5, 6, 1, 2, 3]
    )
