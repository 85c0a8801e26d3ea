"""Lengths of sequences: how they are read, and which rows of a stack they stand for."""

from __future__ import annotations

from numbers import Real

import numpy as np

from hybridmix._typing import IntArray

# Whole numbers up to here are exact as floats, and their sums fit.
_LONGEST = 2**53


def read_lengths(lengths: object, n_sequences: int | None = None) -> IntArray:
    """Check numbers of frames.

    Parameters
    ----------
    lengths : array-like of int, of shape (n,)
        What the user gave. Floats will do if they are whole.
    n_sequences : int or None
        n, if it is known.

    Returns
    -------
    lengths : ndarray of int, of shape (n,)
        Each at least 1.
    """
    array = _as_array(lengths)
    if array is None or array.ndim != 1:
        raise ValueError(
            "lengths must be a list with the number of frames of each sequence, such as "
            f"[len(X)] for a single one; got {lengths!r}."
        )
    if n_sequences is not None and len(array) != n_sequences:
        raise ValueError(
            f"lengths has {len(array)} numbers, but X has {n_sequences} sequences: one "
            "number is needed for each."
        )
    for number in np.flatnonzero(~_are_whole(array))[:1]:
        raise ValueError(
            f"lengths[{number}] is {array[number]!s}: it must be a whole number."
        )
    refuse_empty(array)
    return array.astype(np.intp)


def _as_array(lengths: object) -> np.ndarray | None:
    """Return lengths as an array; None if they are not one."""
    try:
        array = np.asarray(lengths)
    except ValueError:  # lists of differing lengths
        return None
    return array.astype(np.intp) if array.shape == (0,) else array


def _are_whole(array: np.ndarray) -> np.ndarray:
    """Return which values are whole numbers, as a mask."""
    if array.dtype.kind == "O":
        are_numbers = [isinstance(v, Real) and not isinstance(v, bool) for v in array]
        if not all(are_numbers):
            return np.array(are_numbers, dtype=bool)
        array = array.astype(np.float64)
    if array.dtype.kind not in "iuf":
        return np.zeros(len(array), dtype=bool)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(array) <= _LONGEST) & (np.floor(array) == array))


def refuse_empty(lengths: np.ndarray) -> None:
    """Refuse sequences without frames."""
    for number in np.flatnonzero(lengths < 1)[:1]:
        problem = "is empty" if lengths[number] == 0 else "has a negative length"
        raise ValueError(
            f"Sequence {number} {problem} ({lengths[number]!s} frames): a sequence needs "
            "at least one frame. Leave it out, together with its label."
        )


def refuse_other_lengths(found: IntArray, lengths: object) -> None:
    """Refuse lengths that differ from those that the sequences have themselves."""
    if lengths is None:
        return
    given = read_lengths(lengths, len(found))
    for number in np.flatnonzero(given != found)[:1]:
        raise ValueError(
            f"Sequence {number} has {found[number]} frames, but lengths says "
            f"{given[number]}. Leave lengths out: these sequences have lengths of their "
            "own."
        )


def stacked_rows(starts: IntArray, lengths: IntArray) -> IntArray:
    """Return the rows of sequences, one sequence after the other.

    Parameters
    ----------
    starts, lengths : ndarray of int, of shape (n,)
        The first row of each sequence, and the number of its rows.

    Returns
    -------
    rows : ndarray of int, of shape (F,)
        Row numbers, where F is the sum of the lengths.
    """
    new_starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - new_starts, lengths)
