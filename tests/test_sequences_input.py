"""Sequences: what may be passed, how it is read, sliced and given back."""

import copy
import pickle
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from hybridmix import Sequences
from hybridmix.data import encode_labels, read_training_table
from hybridmix.data.columns import read_columns
from hybridmix.data.sequences import read_sequences, restore

LENGTHS = [3, 1, 2]
FRAMES = np.arange(12.0).reshape(6, 2)
LIST = [FRAMES[:3], FRAMES[3:4], FRAMES[4:]]
PANEL = np.arange(24.0).reshape(2, 4, 3)
# Rows of the sequences b, a, c, which begin in this order.
LONG = {
    "who": ["b", "a", "b", "c", "a"],
    "when": [2, 1, 1, 1, 0],
    "x": [1.0, 2.0, 3.0, 4.0, 5.0],
    "kind": ["u", "v", "u", "w", "v"],
    "y": ["no", "yes", "no", "no", "yes"],
}
LIBRARIES = pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])


def frame_of(array, library=pd.DataFrame):
    return library({"a": array[:, 0], "b": array[:, 1]})


def values(frames):
    """Rows of an array or data frame."""
    if isinstance(frames, pa.Table):
        frames = frames.to_pandas()
    return np.asarray(frames).tolist()


def column(frames, name):
    """A column of a data frame of any library, as a list."""
    return (
        frames[name].to_pylist() if isinstance(frames, pa.Table) else list(frames[name])
    )


class NearestMean(ClassifierMixin, BaseEstimator):
    """Classifies sequences by their mean values."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y, lengths=None):
        means = self._means(X, lengths)
        self.classes_ = np.unique(y)
        self.means_ = np.array([means[y == label].mean() for label in self.classes_])
        return self

    def predict(self, X, lengths=None):
        distances = np.abs(self._means(X, lengths)[:, None] - self.means_)
        return self.classes_[np.argmin(distances, axis=1)]

    def _means(self, X, lengths):
        sequences = read_sequences(X, lengths)
        parts = sequences.split(np.asarray(sequences.frames))
        return np.array([part.mean() + self.shift for part in parts])


@pytest.fixture
def labelled():
    """Twenty sequences of two classes that are far apart, with their labels."""
    rng = np.random.default_rng(0)
    y = np.repeat(["high", "low"], 10)
    shift = {"high": 10.0, "low": 0.0}
    items = [rng.normal(shift[label], 1.0, (rng.integers(1, 6), 2)) for label in y]
    lengths = [len(item) for item in items]
    return Sequences(np.concatenate(items), lengths, np.arange(20)), y


# The container ----------------------------------------------------------------------


def test_it_is_a_list_of_sequences():
    s = Sequences(FRAMES, LENGTHS, ids=["a", "b", "c"])
    assert len(s) == _num_samples(s) == 3
    assert s.frames is FRAMES
    assert s.lengths.tolist() == LENGTHS
    assert s.ids.tolist() == ["a", "b", "c"]
    for number, part in enumerate(s):
        np.testing.assert_array_equal(part, LIST[number])
        np.testing.assert_array_equal(s[number], LIST[number])
        np.testing.assert_array_equal(s[np.int64(number - 3)], LIST[number])
    assert np.shares_memory(s[0], FRAMES)
    assert repr(s) == "Sequences(3 sequences of 1 to 3 frames, 2 columns, numpy)"
    with pytest.raises(IndexError):
        s[3]
    with pytest.raises(ValueError, match="read-only"):
        s.lengths[0] = 5


@pytest.mark.parametrize(
    ("key", "chosen"),
    [
        (slice(1, None), [1, 2]),
        (slice(None, None, -1), [2, 1, 0]),
        ([2, 0], [2, 0]),
        (np.array([1, 1, -1]), [1, 1, 2]),
        (np.array([True, False, True]), [0, 2]),
        ([True, False, False], [0]),
        ((np.array([2, 1]), Ellipsis), [2, 1]),
        ([], []),
        (slice(0, 0), []),
        (np.uint8([1]), [1]),
    ],
)
@pytest.mark.parametrize("library", [np.asarray, frame_of, pl.DataFrame])
def test_slices_keep_frames_lengths_and_ids_together(key, chosen, library):
    frames = library(FRAMES)
    part = Sequences(frames, LENGTHS, ["a", "b", "c"])[key]
    assert isinstance(part, Sequences)
    assert type(part.frames) is type(frames)
    assert part.lengths.tolist() == [LENGTHS[k] for k in chosen]
    assert part.ids.tolist() == ["abc"[k] for k in chosen]
    assert [values(item) for item in part] == [LIST[k].tolist() for k in chosen]


def test_consecutive_sequences_are_not_copied():
    assert np.shares_memory(Sequences(FRAMES, LENGTHS)[1:].frames, FRAMES)
    assert np.shares_memory(Sequences(FRAMES, LENGTHS)[[0, 1]].frames, FRAMES)


@pytest.mark.parametrize("key", ["a", 1.5, [0.5], [True], None, [[0]], True])
def test_other_keys_are_refused(key):
    with pytest.raises(IndexError, match="mask of 3 flags"):
        Sequences(FRAMES, LENGTHS)[key]


@pytest.mark.parametrize("number", [3, -4])
def test_numbers_of_sequences_are_checked(number):
    with pytest.raises(IndexError, match=f"no sequence {number}: there are 3"):
        Sequences(FRAMES, LENGTHS)[number]


def test_ids_may_be_tuples_and_stay_numbers():
    assert Sequences(FRAMES, LENGTHS, [(1, "a"), (1, "b"), (2, "a")]).ids[1] == (1, "b")
    assert Sequences(FRAMES, LENGTHS, range(3)).ids.dtype.kind == "i"
    with pytest.raises(ValueError, match=r"shape \(2,\), but there are 3 sequences"):
        Sequences(FRAMES, LENGTHS, "ab")


def test_it_can_be_copied_and_pickled():
    s = Sequences(frame_of(FRAMES), LENGTHS, "abc")
    for other in (copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert other.ids.tolist() == s.ids.tolist()
        assert values(other[2]) == values(s[2])


def test_split_follows_the_sequences():
    s = Sequences(FRAMES, LENGTHS)
    parts = s.split(np.arange(6))
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3], [4, 5]]
    assert [part.shape for part in s.split(np.zeros((6, 4, 2)))][1] == (1, 4, 2)
    assert [len(part) for part in s.split(pl.DataFrame(FRAMES))] == LENGTHS
    with pytest.raises(
        ValueError, match=r"each of the 6 frames, but the shape is \(5,\)"
    ):
        s.split(np.zeros(5))


def test_it_is_not_an_array():
    for convert in (np.asarray, StandardScaler().fit, encode_labels):
        with pytest.raises(TypeError, match=r"All frames are in \.frames"):
            convert(Sequences(FRAMES[:4], [2, 2]))


@pytest.mark.parametrize("frames", [FRAMES[0], PANEL, np.empty((6, 0)), 3.0])
def test_frames_are_a_table(frames):
    with pytest.raises(ValueError, match="Frames must be a table"):
        Sequences(frames, LENGTHS)


# scikit-learn -----------------------------------------------------------------------


def test_scikit_learn_slices_sequences(labelled):
    s, y = labelled
    part = _safe_indexing(s, np.array([3, 1]))
    assert isinstance(part, Sequences)
    assert part.ids.tolist() == [3, 1]
    assert _safe_indexing(s, [False] * 19 + [True]).ids.tolist() == [19]
    train, test, y_train, y_test = train_test_split(s, y, stratify=y, random_state=0)
    assert sorted([*train.ids, *test.ids]) == list(range(20))
    assert y_train.tolist() == y[train.ids].tolist()
    assert y_test.tolist() == y[test.ids].tolist()
    np.testing.assert_array_equal(test[0], s[test.ids[0]])


@pytest.mark.parametrize("form", ["sequences", "frames", "list", "objects"])
def test_cross_validation_works_on_all_lists(labelled, form):
    s, y = labelled
    X = {
        "sequences": s,
        "frames": Sequences(frame_of(s.frames), s.lengths),
        "list": list(s),
        "objects": np.array([*s, None], dtype=object)[:-1],
    }[form]
    assert cross_val_score(NearestMean(), X, y, cv=3).tolist() == [1.0, 1.0, 1.0]
    splits = StratifiedKFold(3, shuffle=True, random_state=0)
    assert cross_val_predict(NearestMean(), X, y, cv=splits).tolist() == y.tolist()
    search = GridSearchCV(NearestMean(), {"shift": [0.0, 1.0]}, cv=2).fit(X, y)
    assert search.best_score_ == 1.0
    pipeline = make_pipeline(FunctionTransformer(), NearestMean())
    assert cross_val_score(pipeline, X, y, cv=2).tolist() == [1.0, 1.0]


def test_cross_validation_slices_lengths_of_panels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 5, 2)), np.repeat([0, 1], 6)
    X[y == 1] += 10.0
    lengths = rng.integers(1, 6, 12)
    scores = cross_val_score(NearestMean(), X, y, cv=3, params={"lengths": lengths})
    assert scores.tolist() == [1.0, 1.0, 1.0]


# Reading lists ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_arrays(kind):
    s = read_sequences(kind(LIST))
    np.testing.assert_array_equal(s.frames, FRAMES)
    assert s.lengths.tolist() == LENGTHS
    assert s.ids is None
    assert read_sequences(s) is s
    assert read_sequences(LIST, lengths=LENGTHS).lengths.tolist() == LENGTHS


def test_lists_of_other_things():
    nested = [item.tolist() for item in LIST]
    np.testing.assert_array_equal(read_sequences(nested).frames, FRAMES)
    objects = np.empty(3, dtype=object)
    objects[:] = LIST
    np.testing.assert_array_equal(read_sequences(objects).frames, FRAMES)
    series = pd.Series(LIST, index=[5, 6, 7])
    np.testing.assert_array_equal(read_sequences(series).frames, FRAMES)
    np.testing.assert_array_equal(read_sequences([FRAMES]).frames, FRAMES)
    assert np.shares_memory(read_sequences([FRAMES]).frames, FRAMES)


@pytest.mark.parametrize("kind", [np.array, list, pd.Series, pl.Series])
def test_lists_of_one_column(kind):
    items = [kind([1.0, 2.0]), kind([3.0])]
    s = read_sequences(items)
    assert s.frames.tolist() == [[1.0], [2.0], [3.0]]
    restored = restore(items, -s.frames)
    assert [part.tolist() for part in restored] == [[-1.0, -2.0], [-3.0]]
    assert read_sequences([*items, np.ones((2, 1))]).lengths.tolist() == [2, 1, 2]


def test_cells_stay_what_they_are():
    assert read_sequences([np.array([[1, 2]]), np.array([[3, 4]])]).frames.dtype == int
    assert read_sequences([np.array([[1]]), np.array([[0.5]])]).frames.dtype == float
    assert read_sequences([np.array([[True]]), np.array([[False]])]).frames.dtype == bool
    mixed = read_sequences([[[1.5, "a"]], [[2.5, None], [3, "b"]]]).frames
    assert mixed.tolist() == [[1.5, "a"], [2.5, None], [3, "b"]]
    mixed = read_sequences([np.array([["a"]]), np.array([[1.0]])]).frames
    assert mixed.tolist() == [["a"], [1.0]]
    assert read_sequences([[["a"]], [["bc"]]]).frames.dtype.kind == "U"


@LIBRARIES
def test_lists_of_data_frames(library):
    items = [frame_of(item, library) for item in LIST]
    s = read_sequences(items)
    assert type(s.frames) is type(items[0])
    assert values(s.frames) == FRAMES.tolist()
    assert [values(part) for part in s] == [item.tolist() for item in LIST]
    restored = restore(items, s.frames)
    assert [values(part) for part in restored] == [item.tolist() for item in LIST]
    assert [type(part) for part in restored] == [type(item) for item in items]


@LIBRARIES
def test_columns_of_lists_of_data_frames(library):
    first, second = library({"a": [1.0], "b": [2.0]}), library({"b": [4.0], "a": [3.0]})
    assert values(read_sequences([first, second]).frames) == [[1.0, 2.0], [3.0, 4.0]]
    message = "Sequence 1 has other columns .* sequence 0: 'a'. Only in sequence 1: 'c'"
    with pytest.raises(ValueError, match=message):
        read_sequences([first, library({"b": [4.0], "c": [3.0]})])
    with pytest.raises(
        TypeError, match="Sequence 1 is a ndarray, but others are data fr"
    ):
        read_sequences([first, np.ones((1, 2))])
    with pytest.raises(ValueError, match="Sequence 1 is empty"):
        read_sequences([first, library({"a": [], "b": []})])


def test_data_frames_of_several_libraries_are_refused():
    with pytest.raises(TypeError, match="Sequence 1 is a data frame of polars"):
        read_sequences([frame_of(FRAMES), frame_of(FRAMES, pl.DataFrame)])
    with pytest.raises(TypeError, match="Sequence 1 is a lazy table"):
        read_sequences([frame_of(FRAMES), pl.LazyFrame({"a": [1]})])


def test_categories_of_pandas_are_united():
    items = [
        pd.DataFrame(
            {"c": pd.Categorical([word]), "n": pd.Categorical([number]), "i": [number]},
            index=["row"],
        )
        for word, number in [("u", 1), ("v", 2), ("u", 3)]
    ]
    frames = read_sequences(items).frames
    assert frames["c"].cat.categories.tolist() == ["u", "v"]
    assert frames["n"].cat.categories.tolist() == [1, 2, 3]
    assert frames["c"].tolist() == ["u", "v", "u"]
    assert frames["i"].dtype == int
    assert frames.index.tolist() == ["row"] * 3
    other = pd.DataFrame({"c": pd.Categorical([5])})
    assert read_sequences([items[0][["c"]], other]).frames["c"].tolist() == ["u", 5]


def test_ordered_categories_and_those_of_some_sequences():
    order = pd.CategoricalDtype(["s", "m", "l"], ordered=True)
    items = [pd.DataFrame({"c": pd.Series([size], dtype=order)}) for size in "sl"]
    assert read_sequences(items).frames["c"].dtype == order
    items.append(pd.DataFrame({"c": ["m"]}))
    assert read_sequences(items).frames["c"].tolist() == ["s", "l", "m"]


def test_types_of_polars_are_united():
    items = [
        pl.DataFrame({"x": [1], "y": [None]}),
        pl.DataFrame({"x": [0.5], "y": ["a"]}),
    ]
    frames = read_sequences(items).frames
    assert frames.rows() == [(1.0, None), (0.5, "a")]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "holds no sequences"),
        ([FRAMES, []], "Sequence 1 is empty"),
        ([FRAMES, np.empty((0, 2))], "Sequence 1 is empty"),
        ([FRAMES, [[1.0, 2.0], [3.0]]], "Sequence 1 is ragged"),
        ([FRAMES, FRAMES[:, :1]], "Sequence 1 has 1 columns, and sequence 0 has 2"),
        ([np.empty((2, 0))], "Sequence 0 has 0 columns"),
        ([FRAMES, PANEL], "Sequence 1 must be .*; got: the shape"),
        ([1.0, 2.0], "Sequence 0 must be .*; got: float"),
        (["abc"], "Sequence 0 must be .*; got: str"),
        ([FRAMES, None], "Sequence 1 must be .*; got: NoneType"),
        (np.array([None, None]), "Sequence 0 must be .*; got: NoneType"),
    ],
)
def test_lists_that_are_refused(items, message):
    with pytest.raises(ValueError, match=message):
        read_sequences(items)


def test_lengths_of_lists_must_be_theirs():
    with pytest.raises(ValueError, match="Sequence 2 has 2 frames, but lengths says 1"):
        read_sequences(LIST, [3, 1, 1])
    with pytest.raises(ValueError, match="has 2 numbers, but X has 3 sequences"):
        read_sequences(Sequences(FRAMES, LENGTHS), [3, 3])


# Reading arrays ---------------------------------------------------------------------


def test_panels_are_not_copied():
    s = read_sequences(PANEL)
    assert np.shares_memory(s.frames, PANEL)
    assert s.lengths.tolist() == [4, 4]
    np.testing.assert_array_equal(s[1], PANEL[1])
    assert np.shares_memory(read_sequences(PANEL, [4, 4]).frames, PANEL)
    table = FRAMES[:, ::-1]
    assert read_sequences(table, LENGTHS).frames is table


def test_panels_with_lengths():
    s = read_sequences(PANEL, lengths=[1, 3])
    np.testing.assert_array_equal(s[0], PANEL[0, :1])
    np.testing.assert_array_equal(s[1], PANEL[1, :3])
    restored = restore(PANEL, -s.frames, [1, 3])
    np.testing.assert_array_equal(restored[1, :3], -PANEL[1, :3])
    np.testing.assert_array_equal(restored[1, 3:], PANEL[1, 3:])
    assert PANEL[1, 0, 0] > 0
    with pytest.raises(ValueError, match=r"lengths\[1\] is 5, but .* have 4 frames"):
        read_sequences(PANEL, [4, 5])


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_empty_panels_are_refused(shape):
    with pytest.raises(ValueError, match="at least one of each is needed"):
        read_sequences(np.empty(shape))


@pytest.mark.parametrize("dtype", [float, np.float32, object])
def test_padding_is_never_guessed(dtype):
    padded = PANEL.astype(dtype)
    padded[1, 2:] = None
    padded[0, 1, :] = None
    padded[0, 3, 1:] = None
    with pytest.warns(UserWarning, match="1 of 2 sequences end .*from_padded") as caught:
        s = read_sequences(padded)
    assert caught[0].filename == __file__
    assert s.lengths.tolist() == [4, 4]
    assert read_sequences(padded, [4, 4]).lengths.tolist() == [4, 4]
    dropped = Sequences.from_padded(padded)
    assert dropped.lengths.tolist() == [4, 2]
    assert dropped.frames.dtype == padded.dtype
    padded[1] = None
    with pytest.raises(ValueError, match="Sequence 1 is empty: none of its frames"):
        Sequences.from_padded(padded)


def test_padding_of_arrays_that_hold_no_nan():
    assert Sequences.from_padded(np.ones((2, 3, 1), int)).lengths.tolist() == [3, 3]
    with pytest.raises(ValueError, match=r"the shape \(6, 2\)"):
        Sequences.from_padded(FRAMES)


@pytest.mark.parametrize("X", [FRAMES, frame_of(FRAMES), frame_of(FRAMES, pl.DataFrame)])
def test_tables_need_lengths(X):
    s = read_sequences(X, LENGTHS)
    assert s.frames is X
    assert values(s[2]) == LIST[2].tolist()
    assert restore(X, s.frames, LENGTHS) is X
    assert len(read_sequences(X, [len(X)])) == 1
    for way in ("list", r"lengths=.*\[len\(X\)\]", "from_long", "from_panel"):
        with pytest.raises(ValueError, match=way):
            read_sequences(X)
    with pytest.raises(ValueError, match="lengths sum to 5, but there are 6 frames"):
        read_sequences(X, [3, 2])


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (6, r"such as \[len\(X\)\] for a single one; got 6"),
        ([[6]], "list with the number of frames"),
        ([[1], [2, 3]], "list with the number of frames"),
        ([7, -1], "Sequence 1 has a negative length"),
        ([6, 0], r"Sequence 1 is empty \(0 frames\)"),
        ([5.5, 0.5], r"lengths\[0\] is 5.5: it must be a whole number"),
        ([6, np.nan], r"lengths\[1\] is nan"),
        ([6, np.inf], r"lengths\[1\] is inf"),
        ([6, 1e300], r"lengths\[1\] is 1e\+300"),
        ([6, None], r"lengths\[1\] is None"),
        ([6, 2**80], r"lengths\[1\] is 120892"),
        (["6"], r"lengths\[0\] is 6"),
        ([True] * 6, r"lengths\[0\] is True"),
        ([], "lengths sum to 0"),
    ],
)
def test_lengths_that_are_refused(lengths, message):
    with pytest.raises(ValueError, match=message):
        read_sequences(FRAMES, lengths)


@pytest.mark.parametrize(
    "lengths",
    [
        np.array(LENGTHS, np.uint8),
        [3.0, 1.0, 2.0],
        pd.Series(LENGTHS, dtype="Int64"),
        pl.Series(LENGTHS),
        tuple(map(np.int32, LENGTHS)),
    ],
)
def test_lengths_of_all_kinds(lengths):
    assert read_sequences(FRAMES, lengths).lengths.tolist() == LENGTHS


@pytest.mark.parametrize(
    "X", [3.0, None, "abc", {"a": FRAMES}, np.zeros((1, 1, 1, 1)), (x for x in LIST)]
)
def test_other_input_is_refused(X):
    with pytest.raises(ValueError, match="X must hold sequences; got"):
        read_sequences(X)


def test_an_array_of_one_axis_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"of one column is passed as \[X\]"):
        read_sequences(np.arange(3.0))
    with pytest.raises(TypeError, match=r"Call \.collect\(\)"):
        read_sequences(pl.LazyFrame({"a": [1]}), [1])


def test_sparse_matrices_are_refused():
    for X, lengths in ((csr_matrix(FRAMES), LENGTHS), ([csr_matrix(FRAMES)], None)):
        with pytest.raises(TypeError, match=r"csr_matrix.* \.toarray\(\)"):
            read_sequences(X, lengths)


def test_masked_arrays_are_refused():
    masked = np.ma.masked_less(PANEL, 3.0)
    for X in (masked, list(masked)):
        with pytest.raises(TypeError, match=r"masked array: call \.filled\(numpy\.nan\)"):
            read_sequences(X)
    assert len(read_sequences(list(masked.filled(np.nan)))) == 2


def test_no_sequences_are_refused():
    with pytest.raises(ValueError, match="holds no sequences"):
        read_sequences(Sequences(FRAMES, LENGTHS)[:0])


def test_many_short_sequences_are_read_quickly():
    items = list(np.zeros((100_000, 10, 2)))
    began = time.process_time()  # the clock would count other programs as well
    s = read_sequences(items)
    s[np.arange(0, len(s), 2)]
    assert time.process_time() - began < 1.0
    assert s.frames.shape == (1_000_000, 2)


# Long frames ------------------------------------------------------------------------


@LIBRARIES
def test_long_frames(library):
    s = Sequences.from_long(library(LONG), "who", "when")
    assert s.ids.tolist() == ["b", "a", "c"]
    assert s.lengths.tolist() == [2, 2, 1]
    assert column(s.frames, "x") == [3.0, 1.0, 5.0, 2.0, 4.0]
    assert column(s[1], "kind") == ["v", "v"]
    assert s.frames.shape == (5, 3)
    in_order = Sequences.from_long(library(LONG), "who")
    assert column(in_order.frames, "x") == [1.0, 3.0, 2.0, 5.0, 4.0]
    assert column(in_order.frames, "when") == [2, 1, 1, 0, 1]


@LIBRARIES
def test_labels_of_long_frames(library):
    s, y = Sequences.from_long(library(LONG), "who", "when", target="y")
    assert y.tolist() == ["no", "yes", "no"]
    assert s.frames.shape == (5, 2)
    classes = encode_labels(y)[0]
    assert classes.tolist() == ["no", "yes"]
    some = library({**LONG, "y": [None, "yes", None, "no", None]})
    y = Sequences.from_long(some, "who", target="y")[1]
    assert y.tolist() == [None, "yes", "no"]
    assert encode_labels(y)[1].tolist() == [-1, 1, 0]
    changing = library({**LONG, "y": ["no", "yes", "no", "no", "no"]})
    with pytest.raises(ValueError, match="Sequence 'a' has several labels in column 'y'"):
        Sequences.from_long(changing, "who", target="y")


@LIBRARIES
def test_labels_that_are_numbers(library):
    y = Sequences.from_long(library({**LONG, "y": [1, 0, 1, 2, 0]}), "who", target="y")[1]
    assert y.tolist() == [1, 0, 2]
    assert y.dtype.kind == "i"
    some = library({**LONG, "y": [None, 0, None, 2, 0]})
    y = Sequences.from_long(some, "who", target="y")[1]
    assert np.isnan(y[0])
    assert encode_labels(y)[1].tolist() == [-1, 0, 1]
    flags = library({**LONG, "y": [True, False, True, True, False]})
    y = Sequences.from_long(flags, "who", target="y")[1]
    assert encode_labels(y)[1].tolist() == [1, 0, 1]


def test_nan_is_missing_in_polars_as_well():
    frame = pl.DataFrame({"id": [1.0, np.nan], "x": [0.0, 1.0]})
    with pytest.raises(ValueError, match="Row 1 has no value in column 'id'"):
        Sequences.from_long(frame, "id")
    frame = pl.DataFrame({"id": [1, 2], "x": [0.0, 1.0], "y": [np.nan, 3.0]})
    assert np.isnan(Sequences.from_long(frame, "id", target="y")[1][0])


@LIBRARIES
def test_several_columns_may_name_a_sequence(library):
    s = Sequences.from_long(library({**LONG, "day": [1, 1, 2, 1, 1]}), ["who", "day"])
    assert s.ids.tolist() == [("b", 1), ("a", 1), ("b", 2), ("c", 1)]
    assert s.lengths.tolist() == [1, 2, 1, 1]
    assert s[[0, 2]].ids.tolist() == [("b", 1), ("b", 2)]


@pytest.mark.parametrize(
    "times",
    [
        pd.DatetimeIndex(np.array([2, 1, 1, 1, 0], "M8[D]"), tz="Europe/Vienna"),
        pd.PeriodIndex(["2024-02", "2024-01", "2024-01", "2024-01", "2023-01"], freq="M"),
        pd.to_timedelta([2, 1, 1, 1, 0], "s"),
        pd.array([2, 1, 1, 1, 0], dtype="Int64"),
        np.array([2.5, 1, 1, 1, 0], dtype=object),
    ],
)
def test_times_of_all_kinds(times):
    s = Sequences.from_long(pd.DataFrame({**LONG, "when": times}), "who", "when")
    assert s.frames["x"].tolist() == [3.0, 1.0, 5.0, 2.0, 4.0]


@LIBRARIES
@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"when": [1, 1, 1, 1, 0]}, {"time": "when"}, "'b' has two frames .* 0 and 2"),
        (
            {"when": [2, None, 1, 1, 0]},
            {"time": "when"},
            "Row 1 has no value in .*'when'",
        ),
        ({"who": ["b", None, "b", "c", "a"]}, {}, "Row 1 has no value in column 'who'"),
        ({}, {"time": "hour"}, "time='hour' is not a column of the frame. It has: 'who'"),
        ({}, {"target": "z"}, "target='z' is not a column"),
        ({}, {"sequence": []}, "0 columns that name sequences"),
        ({}, {"sequence": [*LONG]}, "no column besides"),
        ({}, {"target": "who"}, "Column 'who' is given twice"),
    ],
)
def test_long_frames_that_are_refused(library, changes, options, message):
    with pytest.raises(ValueError, match=message):
        Sequences.from_long(
            library({**LONG, **changes}), **{"sequence": "who", **options}
        )


@LIBRARIES
def test_text_is_not_a_time(library):
    with pytest.raises(TypeError, match="Column 'kind' has text for times"):
        Sequences.from_long(library(LONG), "who", "kind")


def test_errors_name_ids_as_the_table_has_them():
    frame = pd.DataFrame({"id": [7, 7], "x": [0.0, 1.0], "label": [0, 1]})
    with pytest.raises(ValueError, match=r"^Sequence 7 has several labels"):
        Sequences.from_long(frame, "id", target="label")


def test_other_long_input_is_refused():
    with pytest.raises(TypeError, match="from_long reads data frames; got: ndarray"):
        Sequences.from_long(FRAMES, "who")
    with pytest.raises(ValueError, match="The frame has 0 rows"):
        Sequences.from_long(pd.DataFrame({"who": [], "x": []}), "who")
    lists = pd.DataFrame({**LONG, "y": [[1]] * 5})
    with pytest.raises(TypeError, match="The ids must be single values"):
        Sequences.from_long(lists, "y")
    with pytest.raises(TypeError, match="The labels must be single values"):
        Sequences.from_long(lists, "who", target="y")
    mixed = pd.DataFrame({**LONG, "when": [1, 2, pd.Timestamp("2024"), 3, 4]})
    with pytest.raises(TypeError, match="cannot be compared"):
        Sequences.from_long(mixed, "who", "when")


def test_sorted_frames_are_not_copied_and_numbers_name_columns():
    frame = pd.DataFrame({0: [1, 1, 2], 1: [0.5, 1.5, 2.5]})
    s = Sequences.from_long(frame, 0)
    assert s.frames.columns.tolist() == [1]
    assert s.ids.tolist() == [1, 2]
    assert np.shares_memory(s.frames[1].to_numpy(), frame[1].to_numpy())


# An index of two levels -------------------------------------------------------------


def indexed():
    frame = pd.DataFrame(LONG).set_index(["who", "when"])
    return frame[["x", "kind"]]


def test_frames_with_an_index_of_ids_and_times():
    for s in (Sequences.from_index(indexed()), read_sequences(indexed())):
        assert s.ids.tolist() == ["b", "a", "c"]
        assert s.lengths.tolist() == [2, 2, 1]
        assert s.frames["x"].tolist() == [3.0, 1.0, 5.0, 2.0, 4.0]
    restored = restore(indexed(), s.frames)
    pd.testing.assert_frame_equal(restored, indexed())
    assert restore(indexed(), s.frames[["x"]].to_numpy())[:, 0].tolist() == LONG["x"]
    assert read_sequences(indexed(), [5]).lengths.tolist() == [5]


def test_more_levels_name_a_sequence_together():
    frame = pd.DataFrame(LONG).assign(day=1).set_index(["who", "day", "when"])
    assert Sequences.from_index(frame).ids.tolist() == [("b", 1), ("a", 1), ("c", 1)]


def test_indices_that_are_refused():
    with pytest.raises(TypeError, match="two levels or more"):
        Sequences.from_index(pd.DataFrame(LONG))
    with pytest.raises(TypeError, match="two levels or more"):
        Sequences.from_index(FRAMES)
    frame = pd.DataFrame({**LONG, "when": [1] * 5}).set_index(["who", "when"])
    with pytest.raises(ValueError, match="Sequence 'b' has two frames at the time 1"):
        read_sequences(frame)
    frame = pd.DataFrame({**LONG, "when": [1, 2, None, 3, 4]}).set_index(["who", "when"])
    with pytest.raises(ValueError, match="no value in level 1 of row 2"):
        read_sequences(frame)
    frame = pd.DataFrame(LONG).set_index(["who", "kind"])
    with pytest.raises(TypeError, match="last level of the index has text for times"):
        read_sequences(frame)


# Channels by time -------------------------------------------------------------------


def test_arrays_of_channels_by_time():
    panel = np.arange(24.0).reshape(2, 3, 4)
    s = Sequences.from_panel(panel)
    assert s.frames.shape == (8, 3)
    np.testing.assert_array_equal(s[1], panel[1].T)
    s = Sequences.from_panel(panel, lengths=[4, 2], names=["x", "y", "z"])
    assert s.frames.columns.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(s[1], panel[1].T[:2])
    ragged = Sequences.from_panel([panel[0], panel[1][:, :2]])
    np.testing.assert_array_equal(ragged.frames, s.frames)
    single = Sequences.from_panel(panel[:, 0])
    np.testing.assert_array_equal(single[1][:, 0], panel[1, 0])
    np.testing.assert_array_equal(Sequences.from_panel(list(panel))[1], panel[1].T)


def test_arrays_of_channels_that_are_refused():
    with pytest.raises(ValueError, match=r"the shape \(3,\)"):
        Sequences.from_panel(np.arange(3.0))
    with pytest.raises(ValueError, match="names has 2, but X has 3 channels"):
        Sequences.from_panel(PANEL.transpose(0, 2, 1), names=["x", "y"])
    padded = PANEL.transpose(0, 2, 1).copy()
    padded[0, :, 3] = np.nan
    with pytest.warns(UserWarning, match="1 of 2 sequences end"):
        Sequences.from_panel(padded)


# Giving back ------------------------------------------------------------------------


def test_sequences_are_given_back_as_sequences():
    s = Sequences(FRAMES, LENGTHS, "abc")
    restored = restore(s, frame_of(-FRAMES))
    assert isinstance(restored, Sequences)
    assert restored.ids.tolist() == ["a", "b", "c"]
    assert values(restored[1]) == (-FRAMES[3:4]).tolist()


def test_panels_are_given_back_as_panels():
    s = read_sequences(PANEL)
    np.testing.assert_array_equal(restore(PANEL, s.frames), PANEL)
    halves = restore(PANEL.astype(int), s.frames[1:] + 0.5, [3, 4])
    assert halves[1, 0, 0] == PANEL[1, 0, 0] + 0.5


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_are_read_and_replaced_as_tables(library):
    """What estimators do with frames, whose index repeats in a list of frames."""
    items = [
        library({"x": [1.0, np.nan], "c": ["u", "v"]}),
        library({"x": [3.0], "c": ["u"]}),
    ]
    s = read_sequences(items)
    columns, attributes = read_training_table(NearestMean(), s.frames)
    assert attributes["n_features_in_"] == 2
    filled = columns.replaced({0: np.array([1.0, 2.0, 3.0])})
    restored = restore(items, filled)
    assert [column(part, "x") for part in restored] == [[1.0, 2.0], [3.0]]
    assert [column(part, "c") for part in restored] == [["u", "v"], ["u"]]
    assert read_columns(filled).n_rows == 3
