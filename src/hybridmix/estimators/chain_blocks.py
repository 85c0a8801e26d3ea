"""Sequences in blocks, where estimators of sequences read and predict them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix.data.block_labels import LabelColumns
from hybridmix.data.block_reading import Wanted
from hybridmix.data.long_frames import Arrangement
from hybridmix.data.sequence_list import Sequences
from hybridmix.data.sequence_source import (
    LearnedSequences,
    SequenceTable,
    learned_sequences,
)
from hybridmix.data.shape_options import ShapeOption
from hybridmix.data.stacking import slice_columns, take_rows
from hybridmix.estimators.blocks import is_in_blocks, published_columns

Method = TypeVar("Method", bound=Callable[..., Any])


def learn_sequence_blocks(
    table: SequenceTable,
    y: Any,
    sample_weight: Any,
    categorical_features: Any,
    column_shapes: ShapeOption,
    scaling: str,
    unlabelled: Any = None,
    class_weight: Any = None,
) -> tuple[LearnedSequences, dict[str, Any]]:
    """Read sequences in blocks to be trained on; return also what to publish about them.

    Parameters
    ----------
    table : SequenceTable
        The sequences.
    y, sample_weight : str or None
        Columns of labels and of weights, with one value for each sequence.
    categorical_features, column_shapes, scaling
        As in `Schema.learn`.
    unlabelled, class_weight
        As in `HybridHMMClassifier`.
    """
    for argument, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None and not isinstance(given, str):
            raise TypeError(
                f"{argument} must name a column of the table, since that is read block "
                f"by block; got a {type(given).__name__}."
            )
    features = tuple(name for name in table.names if name not in (y, sample_weight))
    wanted = Wanted(
        features,
        LabelColumns(y, sample_weight),
        categorical_features,
        column_shapes,
        scaling,
        unlabelled,
        class_weight,
    )
    learned = learned_sequences(table, wanted)
    return learned, published_columns(wanted, learned.fingerprint)


def refuse_tables(estimator: object, X: Any) -> None:
    """Refuse tables in blocks that do not say which of their rows are a sequence."""
    if is_in_blocks(X):
        raise TypeError(
            f"{type(estimator).__name__} needs to know which rows of X are a sequence. "
            "Pass Sequences.from_long(X, 'id', 'time'), with the names of its columns of "
            "ids and times, which reads tables block by block."
        )


def refuse_arrays(**given: Any) -> None:
    """Refuse lengths and labels of sequences in blocks, which are not in memory."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be given for sequences of a table in blocks: its columns "
                "say all of it."
            )


# Predictions ----------------------------------------------------------------------------

# What a method returns for the sequences of a block, as an array of sequences or of rows.
Reader = Callable[[Any, Arrangement], np.ndarray]


def each_sequence(made: np.ndarray, _: Arrangement) -> np.ndarray:
    """Return what there is for each sequence."""
    return made


def each_row(made: list[np.ndarray], arrangement: Arrangement) -> np.ndarray:
    """Return what there is for each frame, in the order of the rows of a block."""
    by_frame = np.concatenate(made)
    by_row = np.empty_like(by_frame)
    by_row[arrangement.order] = by_frame
    return by_row


def path_scores(made: tuple[np.ndarray, Any], _: Arrangement) -> np.ndarray:
    """Return the scores of the best paths of sequences."""
    return made[0]


def path_states(
    made: tuple[Any, list[np.ndarray]], arrangement: Arrangement
) -> np.ndarray:
    """Return the states of the best paths, in the order of the rows of a block."""
    return each_row(made[1], arrangement)


def over_sequence_blocks(*readers: Reader) -> Callable[[Method], Method]:
    """Let a method of fitted models take sequences in blocks as well.

    Parameters
    ----------
    *readers : callables
        Turn what the method returns for a block into an array. The result is what one of
        them returns for all blocks, or a tuple of what several return.
    """

    def decorated(method: Method) -> Method:
        @wraps(method)
        def over_any(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(X, SequenceTable):
                return method(self, X, *args, **kwargs)
            options = signature(method).bind(self, X, *args, **kwargs).arguments
            refuse_arrays(**{k: options.pop(k, None) for k in ("lengths", "y")})
            model, table = options.pop("self"), options.pop("X")
            results = tuple(
                _joined_results(
                    model, table, partial(_read, method, reader, model, options)
                )
                for reader in readers
            )
            return results if len(results) > 1 else results[0]

        return cast(Method, over_any)

    return decorated


def _read(
    method: Callable[..., Any],
    reader: Reader,
    model: Any,
    options: dict[str, Any],
    sequences: Sequences,
    arrangement: Arrangement,
) -> np.ndarray:
    return reader(method(model, sequences, **options), arrangement)


def _joined_results(
    model: Any, table: SequenceTable, function: Callable[[Sequences, Arrangement], Any]
) -> Any:
    """Put what a function returns for the sequences of every block one after the other.

    Columns that the fitted model does not know are ignored.
    """
    check_is_fitted(model)
    features = list(getattr(model, "feature_names_in_", table.names))
    table.source.check_columns(features)
    return table.joined(features, _OnSequences(features, function))


@dataclass(frozen=True)
class _OnSequences:
    """Applies a function to the sequences of a block."""

    features: list[str]
    function: Callable[[Sequences, Arrangement], Any]

    def __call__(self, block: Any, arrangement: Arrangement) -> Any:
        frames = take_rows(slice_columns(block, self.features), arrangement.order)
        sequences = Sequences(frames, arrangement.lengths, arrangement.ids)
        return self.function(sequences, arrangement)


def labels_in_memory(X: Any, y: Any) -> Any:
    """Return the labels of sequences in blocks that are given by name; others as is."""
    return X.column(y) if isinstance(X, SequenceTable) and isinstance(y, str) else y
