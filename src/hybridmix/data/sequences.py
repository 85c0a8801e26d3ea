"""Whatever sequences are in: read, and given back in the same form."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np

from hybridmix.data.dense import refuse_sparse
from hybridmix.data.frames import as_frame
from hybridmix.data.lengths import read_lengths, refuse_other_lengths
from hybridmix.data.long_frames import arrange_index, has_levels
from hybridmix.data.sequence_list import WAYS_IN, Sequences, as_stack
from hybridmix.data.sequence_source import SequenceTable
from hybridmix.data.stacking import (
    as_array,
    counted_frames,
    is_list,
    stack_list,
    stack_panel,
    take_rows,
)

__all__ = ["Sequences", "read_sequences", "restore"]


def read_sequences(X: object, lengths: object = None) -> Sequences:
    """Read sequences from whatever they are in.

    Parameters
    ----------
    X : Sequences, list of arrays or data frames, array of shape (n, T, d), or table
        - A list, tuple or array of objects has one item per sequence: an array (T_i, d),
          an array (T_i,) if there is one column, nested lists, or a data frame.
        - A table (F, d), array or data frame, has all frames, one sequence after the
          other, and needs `lengths`.
        - A pandas data frame with an index of at least two levels, ids and times, is read
          by `Sequences.from_index`.
    lengths : array-like of int, of shape (n,), optional
        Number of frames of each sequence; in an array (n, T, d), the first frames that
        count.

    Returns
    -------
    sequences : Sequences
        At least one sequence of at least one frame.
    """
    refuse_sparse(X)
    if isinstance(X, SequenceTable):
        raise TypeError(
            "This needs sequences in memory, and X has those of a table in blocks. Pass "
            "some of them: Sequences.from_long of a part of the table, such as a "
            "partition of a Dask data frame, frame.get_partition(0).compute()."
        )
    form = _form_of(X, lengths)
    if form == "sequences":
        sequences = cast(Sequences, X)
        refuse_other_lengths(sequences.lengths, lengths)
    elif form == "list":
        sequences = Sequences(*stack_list(list(X)))  # type: ignore[call-overload]
        refuse_other_lengths(sequences.lengths, lengths)
    elif form == "panel":
        sequences = Sequences(*stack_panel(as_array("X", X), lengths))
    elif form == "index":
        sequences = Sequences.from_index(X)
    elif lengths is None:
        raise ValueError(
            f"X is one table, and where its sequences end is unknown. {WAYS_IN}"
        )
    else:
        sequences = Sequences(X, lengths)
    if len(sequences) == 0:
        raise ValueError("X holds no sequences: at least one is needed.")
    return sequences


def restore(X: object, frames: object, lengths: object = None) -> object:
    """Give frames the form in which sequences were passed.

    Parameters
    ----------
    X : object
        What `read_sequences` has read.
    frames : array-like of shape (F, d) or data frame
        Frames in the order of ``read_sequences(X, lengths).frames``, such as filled ones.
    lengths : array-like of int, of shape (n,), optional
        What was passed to `read_sequences`.

    Returns
    -------
    like_X : Sequences, list, ndarray or data frame
        A list for a list, tuple or array of objects. In an array (n, T, d), frames that
        do not count are those of X.
    """
    form = _form_of(X, lengths)
    stack = as_stack(frames)
    if form == "sequences":
        given = cast(Sequences, X)
        return Sequences(stack, given.lengths, given.ids)
    if form == "list":
        items = list(X)  # type: ignore[call-overload]
        parts = Sequences(stack, [len(item) for item in items]).split(stack)
        return [
            part[:, 0] if isinstance(part, np.ndarray) and np.ndim(item) == 1 else part
            for item, part in zip(items, parts, strict=True)
        ]
    if form == "panel":
        return _unstacked(np.asarray(X), np.asarray(stack), lengths)
    if form == "index":
        order = arrange_index(X.index).order  # type: ignore[attr-defined]
        return take_rows(stack, np.argsort(order))
    return stack


def _unstacked(panel: np.ndarray, frames: np.ndarray, lengths: object) -> np.ndarray:
    """Return frames as sequences of an array (n, T, d)."""
    n_sequences, longest = panel.shape[:2]
    if lengths is None:
        return frames.reshape(n_sequences, longest, -1)
    counted = counted_frames(read_lengths(lengths, n_sequences), longest)
    result = panel.astype(np.result_type(panel, frames))
    result[counted] = frames
    return result


def _form_of(
    X: object, lengths: object
) -> Literal["sequences", "list", "panel", "index", "table"]:
    """Return what sequences are in."""
    if isinstance(X, Sequences):
        return "sequences"
    if is_list(X):
        return "list"
    if as_frame(X) is not None:
        return "index" if lengths is None and has_levels(X) else "table"
    shape = np.shape(cast(np.ndarray, X))
    if len(shape) == 3:
        return "panel"
    if len(shape) == 2:
        return "table"
    found = f"the shape {shape}" if shape else type(X).__name__
    hint = " A single sequence of one column is passed as [X]." if len(shape) == 1 else ""
    raise ValueError(f"X must hold sequences; got: {found}. {WAYS_IN}{hint}")
