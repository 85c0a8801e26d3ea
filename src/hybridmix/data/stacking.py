"""Lists of sequences and three-dimensional arrays, stacked into one table of frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hybridmix._text import shown
from hybridmix._typing import BoolArray, IntArray
from hybridmix.data.cells import is_missing, listed
from hybridmix.data.dense import refuse_sparse
from hybridmix.data.frames import as_frame
from hybridmix.data.lengths import read_lengths, refuse_empty

if TYPE_CHECKING:
    from hybridmix.data.frames import Frame


class Stack(Protocol):
    """An array (F, d) or a data frame of F rows and d columns."""

    @property
    def shape(self) -> tuple[int, ...]:
        """F and d."""
        ...


def slice_rows(frames: Stack, start: int, end: int) -> Stack:
    """Return consecutive rows of a table, without a copy of an array."""
    if isinstance(frames, np.ndarray):
        return frames[start:end]
    part: Stack = _frame_of(frames)[start:end].to_native()
    return part


def take_rows(frames: Stack, rows: IntArray) -> Stack:
    """Return a copy of some rows of a table."""
    if isinstance(frames, np.ndarray):
        return frames[rows]
    part: Stack = _frame_of(frames)[rows].to_native()
    return part


def slice_columns(frames: Stack, names: Sequence[str]) -> Stack:
    """Return some columns of a data frame."""
    part: Stack = _frame_of(frames).select(list(names)).to_native()
    return part


def _frame_of(frames: Stack) -> Frame:
    import narwhals.stable.v2 as nw

    return nw.from_native(frames, eager_only=True)


def as_array(name: str, X: object) -> np.ndarray:
    """Return an array, and refuse what NumPy would read wrongly.

    Parameters
    ----------
    name : str
        What is read, for errors.
    X : object
        Whatever was passed.
    """
    refuse_sparse(X, name=name)
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array: call .filled(numpy.nan) on it, by which masked "
            "values become missing ones, and pass the result."
        )
    return np.asarray(X)


def name_columns(frames: Stack, names: Iterable[str]) -> Stack:
    """Make a pandas data frame of an array, for the sake of the names."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(
            "Names of channels need pandas: pip install 'hybridmix[pandas]'."
        ) from None
    columns = list(names)
    if len(columns) != frames.shape[1]:
        raise ValueError(
            f"names has {len(columns)}, but X has {frames.shape[1]} channels."
        )
    return pd.DataFrame(np.asarray(frames), columns=columns)


# Lists ------------------------------------------------------------------------------


def is_list(X: object) -> bool:
    """Return whether X has one item per sequence."""
    if isinstance(X, list | tuple):
        return True
    dtype = getattr(X, "dtype", None)
    return getattr(dtype, "kind", "") == "O" and np.ndim(X) == 1  # type: ignore[arg-type]


def stack_list(items: Sequence[object]) -> tuple[Stack, IntArray]:
    """Stack sequences that are arrays, nested lists or data frames.

    Parameters
    ----------
    items : sequence of length n
        Arrays (T_i, d) or (T_i,), nested lists, or data frames of the same columns.

    Returns
    -------
    frames : ndarray of shape (F, d), or data frame
        All frames.
    lengths : ndarray of int, of shape (n,)
        T_i of each sequence.
    """
    if len(items) == 0:
        raise ValueError("X holds no sequences: at least one is needed.")
    found = [as_frame(item, f"Sequence {number}") for number, item in enumerate(items)]
    frames = [frame for frame in found if frame is not None]
    if not frames:
        return _stack_arrays([_as_sequence(i, item) for i, item in enumerate(items)])
    if len(frames) < len(items):
        number = next(i for i, frame in enumerate(found) if frame is None)
        raise TypeError(
            f"Sequence {number} is a {type(items[number]).__name__}, but others are data "
            "frames: make all of them data frames, or all of them arrays."
        )
    return _stack_frames(frames)


def _as_sequence(number: int, item: object) -> np.ndarray:
    """Return one sequence as an array of one or two axes."""
    try:
        array = as_array(f"Sequence {number}", item)
    except ValueError:
        raise ValueError(
            f"Sequence {number} is ragged: each of its frames needs the same number of "
            "values. Use NaN or None for a value that is missing."
        ) from None
    if array.dtype.kind in "US" and isinstance(item, list | tuple):
        cells = np.asarray(item, dtype=object)
        # NumPy writes numbers as text when they stand next to text.
        if not all(isinstance(cell, str | bytes) for cell in cells.flat):
            array = cells
    if array.ndim not in (1, 2):
        found = f"the shape {array.shape}" if array.ndim else type(item).__name__
        raise ValueError(
            f"Sequence {number} must be an array (frames, columns), or of one axis if "
            f"there is one column; got: {found}."
        )
    return array


def _stack_arrays(arrays: list[np.ndarray]) -> tuple[np.ndarray, IntArray]:
    lengths = np.array([len(array) for array in arrays], dtype=np.intp)
    refuse_empty(lengths)
    if any(array.ndim == 1 for array in arrays):
        arrays = [array[:, None] if array.ndim == 1 else array for array in arrays]
    _refuse_other_widths([array.shape[1] for array in arrays])
    if len(arrays) == 1:
        return arrays[0], lengths  # not copied
    return np.concatenate(_of_one_kind(arrays)), lengths


def _of_one_kind(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return arrays that NumPy can concatenate without making text of numbers."""
    kinds = {array.dtype.kind for array in arrays}
    if len(kinds) == 1 or kinds <= set("iuf"):
        return arrays
    return [array.astype(object) for array in arrays]


def _refuse_other_widths(widths: list[int]) -> None:
    for number, width in enumerate(widths):
        if width != widths[0] or width == 0:
            raise ValueError(
                f"Sequence {number} has {width} columns, and sequence 0 has {widths[0]}. "
                "Frames have the same columns in all sequences, and at least one."
            )


def _stack_frames(frames: list[Frame]) -> tuple[Stack, IntArray]:
    lengths = np.array([len(frame) for frame in frames], dtype=np.intp)
    refuse_empty(lengths)
    first = frames[0]
    names = list(first.columns)
    aligned = [
        _aligned(number, frame, first, names) for number, frame in enumerate(frames)
    ]
    return _concatenated(aligned), lengths


def _aligned(number: int, frame: Frame, first: Frame, names: list[str]) -> Frame:
    """Return a frame with its columns in the order of the first one."""
    if frame.implementation is not first.implementation:
        raise TypeError(
            f"Sequence {number} is a data frame of {frame.implementation.value}, and "
            f"sequence 0 one of {first.implementation.value}. Use one library for all."
        )
    columns = list(frame.columns)
    if columns == names:
        return frame
    if set(columns) != set(names):
        raise ValueError(
            f"Sequence {number} has other columns than sequence 0. Only in sequence "
            f"0: {_difference(names, columns)}. Only in sequence {number}: "
            f"{_difference(columns, names)}."
        )
    return frame[:, [columns.index(name) for name in names]]


def _difference(names: list[str], others: list[str]) -> str:
    """List the names that others lack."""
    left = [shown(name) for name in names if name not in others]
    return listed(left) or "none"


def _concatenated(frames: list[Frame]) -> Stack:
    import narwhals.stable.v2 as nw

    library = nw.get_native_namespace(frames[0])
    native: Stack
    if frames[0].implementation.is_pandas():
        native = _concatenated_pandas(frames, library)
    elif frames[0].implementation.is_polars():
        # A column may be of whole numbers, or of nothing, in some of the sequences.
        native = library.concat(
            [frame.to_native() for frame in frames], how="vertical_relaxed"
        )
    else:
        native = nw.concat(frames, how="vertical").to_native()
    return native


def _concatenated_pandas(frames: list[Frame], pandas: ModuleType) -> Stack:
    """Concatenate, and keep categories, which pandas drops where sequences differ."""
    natives = [frame.to_native() for frame in frames]
    joined: Stack = pandas.concat(natives)
    dtypes = [native.dtypes.tolist() for native in natives]
    for position, of_column in enumerate(zip(*dtypes, strict=True)):
        if len(set(of_column)) > 1 and _have_a_union(of_column):
            columns = [native.iloc[:, position] for native in natives]
            union = pandas.api.types.union_categoricals(columns, ignore_order=True)
            joined.isetitem(position, union)  # type: ignore[attr-defined]
    return joined


def _have_a_union(dtypes: Iterable[object]) -> bool:
    """Return whether types of pandas are of categories, all text or all numbers."""
    categories = [getattr(dtype, "categories", None) for dtype in dtypes]
    types = {getattr(known, "dtype", None) for known in categories}
    return len(types) == 1 and None not in types


# Arrays of three axes ---------------------------------------------------------------


def stack_panel(panel: np.ndarray, lengths: object = None) -> tuple[np.ndarray, IntArray]:
    """Stack the sequences of an array, without a copy if its layout allows it.

    Parameters
    ----------
    panel : ndarray of shape (n, T, d)
        Sequences.
    lengths : array-like of int, of shape (n,), or None
        The first frames of each sequence that count; None for all T.

    Returns
    -------
    frames : ndarray of shape (F, d)
        All frames that count.
    lengths : ndarray of int, of shape (n,)
        Lengths as given, or T.
    """
    n_sequences, longest, n_columns = _checked_shape(panel)
    if lengths is None:
        _warn_of_empty_ends(panel)
        return panel.reshape(-1, n_columns), np.full(n_sequences, longest, dtype=np.intp)
    checked = read_lengths(lengths, n_sequences)
    for number in np.flatnonzero(checked > longest)[:1]:
        raise ValueError(
            f"lengths[{number}] is {checked[number]}, but the sequences of X have "
            f"{longest} frames."
        )
    if np.all(checked == longest):
        return panel.reshape(-1, n_columns), checked
    return panel[counted_frames(checked, longest)], checked


def counted_frames(lengths: IntArray, longest: int) -> BoolArray:
    """Return the frames of a panel that count, as a mask (n, T)."""
    mask: BoolArray = np.arange(longest) < lengths[:, None]
    return mask


def unpadded_lengths(panel: np.ndarray) -> IntArray:
    """Return the number of frames up to the last one that has a value.

    Parameters
    ----------
    panel : ndarray of shape (n, T, d)
        Sequences, padded at their ends.
    """
    _checked_shape(panel)
    has_values = np.any(~_is_missing_cell(panel), axis=2)
    padding = np.argmax(has_values[:, ::-1], axis=1)
    for number in np.flatnonzero(~has_values.any(axis=1))[:1]:
        raise ValueError(
            f"Sequence {number} is empty: none of its frames has a value. Leave it out, "
            "together with its label."
        )
    return np.asarray(panel.shape[1] - padding, dtype=np.intp)


def _checked_shape(panel: np.ndarray) -> tuple[int, int, int]:
    """Return the shape of a panel, none of whose axes may be empty."""
    if panel.ndim != 3:
        raise ValueError(
            "X must be an array (sequences, frames, columns), but it has the shape "
            f"{panel.shape}."
        )
    n_sequences, longest, n_columns = panel.shape
    if panel.size == 0:
        raise ValueError(
            f"X has {n_sequences} sequences of {longest} frames and {n_columns} columns: "
            "at least one of each is needed."
        )
    return n_sequences, longest, n_columns


def _warn_of_empty_ends(panel: np.ndarray) -> None:
    """Say that frames without values are not taken for padding."""
    n_sequences, longest = panel.shape[:2]
    n_empty = int(_is_missing_cell(panel[:, -1]).all(axis=1).sum())
    if n_empty:
        warnings.warn(
            f"{n_empty} of {n_sequences} sequences end with frames without values. "
            "They are kept, as frames with missing values. If they are padding, drop "
            "them: pass the lengths of the sequences as lengths=, or use "
            f"Sequences.from_padded. If not, pass lengths=[{longest}] * {n_sequences}.",
            UserWarning,
            stacklevel=4,
        )


def _is_missing_cell(array: np.ndarray) -> BoolArray:
    if array.dtype.kind in "fc":
        return np.isnan(array)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    if array.dtype.kind == "O":
        return np.frompyfunc(is_missing, 1, 1)(array).astype(bool)
    return np.zeros(array.shape, dtype=bool)
