"""Sequences of frames: a list whose frames are kept in one table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from numbers import Integral
from typing import NoReturn, cast, overload

import numpy as np

from hybridmix._typing import IntArray
from hybridmix.data.block_sources import source_of
from hybridmix.data.frames import as_frame
from hybridmix.data.lengths import read_lengths, refuse_other_lengths, stacked_rows
from hybridmix.data.long_frames import (
    Arrangement,
    arrange_frame,
    arrange_index,
    as_ids,
    has_levels,
    labels_of,
    without_columns,
)
from hybridmix.data.sequence_source import SequenceTable
from hybridmix.data.stacking import (
    Stack,
    as_array,
    is_list,
    name_columns,
    slice_rows,
    stack_list,
    stack_panel,
    take_rows,
    unpadded_lengths,
)

# pandas has numbers for names where a frame was made of an array.
ColumnName = str | int

WAYS_IN = (
    "Pass a list with one array or data frame per sequence, an array (sequences, frames, "
    "columns), or a table of all frames together with lengths=, which is [len(X)] if it "
    "is a single sequence. Sequences.from_long reads data frames with a column of ids, "
    "Sequences.from_panel arrays (sequences, channels, time)."
)


class Sequences:
    """A list of sequences, whose frames are kept in one table.

    A frame is what is measured at one time: a row of numbers, categories or both. Read
    sequences once, and slice, split and cross-validate them by sequence: scikit-learn's
    tools see a list of `n` items.

    Parameters
    ----------
    frames : array-like of shape (F, d), pandas or polars data frame
        All frames, one sequence after the other. They are not copied.
    lengths : array-like of int, of shape (n,)
        Number of frames of each sequence, at least 1, with sum F.
    ids : array-like of shape (n,), optional
        What the sequences are called.

    Attributes
    ----------
    frames : ndarray of shape (F, d) or data frame
        All frames.
    lengths : ndarray of int, of shape (n,)
        Number of frames of each sequence.
    ids : ndarray of shape (n,) or None
        What the sequences are called.

    See Also
    --------
    from_long : Reads a data frame with a column of ids.
    from_index : Reads a pandas data frame with an index of ids and times.
    from_panel : Reads arrays (sequences, channels, time), as of aeon and sktime.
    from_padded : Drops the padding at the ends of sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import Sequences
    >>> s = Sequences(np.arange(10.0).reshape(5, 2), lengths=[3, 2], ids=["a", "b"])
    >>> s
    Sequences(2 sequences of 2 to 3 frames, 2 columns, numpy)
    >>> s[1]
    array([[6., 7.],
           [8., 9.]])
    >>> s[[1, 0]].ids.tolist()
    ['b', 'a']
    """

    def __init__(
        self, frames: object, lengths: object, ids: Iterable[Hashable] | None = None
    ) -> None:
        self.frames = as_stack(frames)
        self.lengths = read_lengths(lengths)
        n_rows = self.frames.shape[0]
        if self.lengths.sum() != n_rows:
            raise ValueError(
                f"lengths sum to {self.lengths.sum()}, but there are {n_rows} frames. "
                "They must be the same number."
            )
        self.ids = None if ids is None else _read_ids(ids, len(self.lengths))
        # Where sequences begin follows from it.
        self.lengths.setflags(write=False)

    # Reading --------------------------------------------------------------------------

    @overload
    @classmethod
    def from_long(
        cls,
        frame: object,
        sequence: ColumnName | list[ColumnName],
        time: ColumnName | None = None,
        target: None = None,
    ) -> Sequences: ...

    @overload
    @classmethod
    def from_long(
        cls,
        frame: object,
        sequence: ColumnName | list[ColumnName],
        time: ColumnName | None = None,
        *,
        target: ColumnName,
    ) -> tuple[Sequences, np.ndarray]: ...

    @classmethod
    def from_long(
        cls,
        frame: object,
        sequence: ColumnName | list[ColumnName],
        time: ColumnName | None = None,
        target: ColumnName | None = None,
    ) -> Sequences | SequenceTable | tuple[Sequences | SequenceTable, np.ndarray | str]:
        """Read a data frame with one row per frame and a column of ids.

        Rows of a sequence need not be next to each other. Sequences are in order of their
        first rows. Tables in blocks (a scanned table or a Dask data frame) are not read
        yet, except for the ids; every sequence must be whole in one block or partition.

        Parameters
        ----------
        frame : pandas, polars or Dask data frame, path, or scanned table
            The rows.
        sequence : str or list of str
            The column that names the sequence of each row, or several columns that do so
            together.
        time : str, optional
            The column by which the rows of a sequence are sorted: numbers or dates. A
            sequence has at most one row at a time. By default, rows are in order.
        target : str, optional
            A column of labels. All rows of a sequence have the same label, or none.

        Returns
        -------
        sequences : Sequences, or SequenceTable of a table in blocks
            Sequences of the other columns.
        y : ndarray of shape (n,)
            Only with `target`: the labels of the sequences; NaN or None for those that
            have none. Of a table in blocks, the name of their column.
        """
        names = sequence if isinstance(sequence, list) else [sequence]
        _refuse_repeated([*names, *(n for n in (time, target) if n is not None)])
        source = source_of(frame)
        if source is not None:
            blocks = SequenceTable.of(source, sequence, time, target)
            return blocks if target is None else (blocks, str(target))
        table = as_frame(frame, "frame")
        if table is None:
            raise TypeError(
                f"from_long reads data frames; got: {type(frame).__name__}. {WAYS_IN}"
            )
        if not names or len(table) == 0:
            raise ValueError(
                f"The frame has {len(table)} rows and {len(names)} columns that name "
                "sequences: at least one of each is needed."
            )
        arranged = arrange_frame(table, names, time)
        columns = without_columns(table, [*names, time, target]).to_native()
        sequences = _arranged(columns, arranged)
        if target is None:
            return sequences
        return sequences, labels_of(table, target, arranged)

    @classmethod
    def from_index(cls, frame: object) -> Sequences:
        """Read a pandas data frame with an index of ids and times.

        This is the format "pd-multiindex" of sktime. Rows are sorted by time within each
        sequence.

        Parameters
        ----------
        frame : pandas data frame
            The last level of its index is the time; the others name the sequence.
        """
        if not has_levels(frame):
            raise TypeError(
                "from_index reads pandas data frames whose index has two levels or more, "
                f"ids and times. {WAYS_IN}"
            )
        arranged = arrange_index(frame.index)  # type: ignore[attr-defined]
        return _arranged(cast(Stack, frame), arranged)

    @classmethod
    def from_panel(
        cls, X: object, lengths: object = None, names: Iterable[str] | None = None
    ) -> Sequences:
        """Read arrays whose last axis is time, as those of aeon and sktime.

        Parameters
        ----------
        X : array-like of shape (n, channels, time) or (n, time), or list of arrays
            Sequences. A list has an array (channels, time_i) or (time_i,) for each.
        lengths : array-like of int, of shape (n,), optional
            The first times of each sequence that count; all by default.
        names : iterable of str, optional
            Names of the channels. The frames are then a pandas data frame.
        """
        if is_list(X):
            items = list(X)  # type: ignore[call-overload]
            frames, found = stack_list([as_array("X", item).T for item in items])
            refuse_other_lengths(found, lengths)
        else:
            panel = as_array("X", X)
            panel = panel[:, None, :] if panel.ndim == 2 else panel
            if panel.ndim != 3:
                raise ValueError(
                    "X must be an array (sequences, channels, time), but it has the "
                    f"shape {panel.shape}."
                )
            frames, found = stack_panel(panel.transpose(0, 2, 1), lengths)
        return cls(frames if names is None else name_columns(frames, names), found)

    @classmethod
    def from_padded(cls, X: object) -> Sequences:
        """Read an array of sequences that are padded at their ends.

        Parameters
        ----------
        X : array-like of shape (n, T, d)
            Sequences. Frames at their ends without any value are dropped; those in
            between are kept, as frames whose values are missing.
        """
        panel = as_array("X", X)
        return cls(*stack_panel(panel, unpadded_lengths(panel)))

    # A list of sequences --------------------------------------------------------------

    @property
    def shape(self) -> tuple[int]:
        """(n,), by which scikit-learn knows that sequences can be chosen by arrays."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, key: int) -> Stack: ...

    @overload
    def __getitem__(self, key: slice | list[int] | np.ndarray) -> Sequences: ...

    def __getitem__(self, key: object) -> Stack | Sequences:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # as scikit-learn takes rows of arrays
        if isinstance(key, Integral) and not isinstance(key, bool):
            number = int(key) + (len(self) if key < 0 else 0)
            if not 0 <= number < len(self):
                raise IndexError(f"There is no sequence {key}: there are {len(self)}.")
            start = int(self._starts[number])
            return slice_rows(self.frames, start, start + int(self.lengths[number]))
        chosen = np.arange(len(self))[_read_choice(key, len(self))]
        ids = None if self.ids is None else self.ids[chosen]
        return Sequences(self._frames_of(chosen), self.lengths[chosen], ids)

    def __iter__(self) -> Iterator[Stack]:
        return iter(self.split(self.frames))

    def __repr__(self) -> str:
        n_sequences = _counted(len(self), "sequence")
        n_columns = _counted(self.frames.shape[1], "column")
        frame = as_frame(self.frames)
        kind = "numpy" if frame is None else frame.implementation.value
        lengths = _range(self.lengths)
        return f"Sequences({n_sequences} of {lengths}, {n_columns}, {kind})"

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "Sequences are not a single array, and whatever asked for one reads tables. "
            "All frames are in .frames; list(sequences) has an array or data frame for "
            "each sequence."
        )

    def split(self, values: object) -> list[Stack]:
        """Split values with one row per frame into one part per sequence.

        Parameters
        ----------
        values : array-like of shape (F, ...) or data frame of F rows
            Such as the frames, or a probability for each of them.

        Returns
        -------
        parts : list of length n
            Views of arrays, or data frames.
        """
        frame = as_frame(values)
        rows = np.asarray(values) if frame is None else frame
        if rows.shape[:1] != self.frames.shape[:1]:
            raise ValueError(
                f"values must have a row for each of the {self.frames.shape[0]} frames, "
                f"but the shape is {rows.shape}."
            )
        ends = np.cumsum(self.lengths).tolist()
        bounds = zip([0, *ends], ends, strict=False)
        if frame is None:
            return [rows[start:end] for start, end in bounds]
        return [frame[start:end].to_native() for start, end in bounds]

    @property
    def _starts(self) -> IntArray:
        return np.cumsum(self.lengths) - self.lengths

    def _frames_of(self, chosen: IntArray) -> Stack:
        """Return the frames of some sequences; not copied if they are in a row."""
        lengths = self.lengths[chosen]
        if len(chosen) and np.all(np.diff(chosen) == 1):
            start = int(self._starts[chosen[0]])
            return slice_rows(self.frames, start, start + int(lengths.sum()))
        return take_rows(self.frames, stacked_rows(self._starts[chosen], lengths))


def _arranged(frame: Stack, arranged: Arrangement) -> Sequences:
    rows = frame if arranged.is_sorted else take_rows(frame, arranged.order)
    return Sequences(rows, arranged.lengths, arranged.ids)


def _refuse_repeated(names: list[ColumnName]) -> None:
    """Refuse a column that is to be several things at once."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"Column {name!r} is given twice: the ids, the times and the target are "
                "in different columns."
            )


def as_stack(frames: object) -> Stack:
    """Return frames as they are, if they are a table."""
    if as_frame(frames, "frames") is not None:
        return cast(Stack, frames)
    array = as_array("X", frames)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            "Frames must be a table (frames, columns) of at least one column, but the "
            f"shape is {array.shape}. {WAYS_IN}"
        )
    return array


def _read_ids(ids: Iterable[Hashable], n_sequences: int) -> np.ndarray:
    names = ids if isinstance(ids, np.ndarray) else as_ids(list(ids))
    if names.shape != (n_sequences,):
        raise ValueError(
            f"ids has the shape {names.shape}, but there are {n_sequences} sequences: "
            "each needs an id."
        )
    return names


def _read_choice(key: object, n_sequences: int) -> slice | np.ndarray:
    """Check what sequences are chosen by."""
    if isinstance(key, slice):
        return key
    array = np.asarray(key)
    if array.ndim == 1 and array.dtype.kind in "biu":
        if array.dtype.kind != "b" or len(array) == n_sequences:
            return array
    elif array.shape == (0,):
        return array.astype(np.intp)
    raise IndexError(
        f"Sequences are chosen by a number, a slice, a list of numbers or a mask of "
        f"{n_sequences} flags; got {key!r}."
    )


def _range(lengths: IntArray) -> str:
    least, most = (lengths.min(), lengths.max()) if len(lengths) else (0, 0)
    return _counted(most, "frame") if least == most else f"{least} to {most} frames"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
