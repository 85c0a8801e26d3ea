"""Tables in blocks, where estimators read and predict tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix.data.block_labels import LabelColumns
from hybridmix.data.block_readers import is_scannable
from hybridmix.data.block_reading import (
    BlockSource,
    LearnedBlocks,
    Wanted,
    learned_blocks,
)
from hybridmix.data.block_samples import spread_rows
from hybridmix.data.block_sources import source_of
from hybridmix.data.block_targets import LearnedPairs, WantedTargets, learned_pairs
from hybridmix.data.dask_blocks import is_dask_array, is_dask_frame
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.frames import as_frame

if TYPE_CHECKING:
    from hybridmix.estimators.options import MixtureEstimator

Method = TypeVar("Method", bound=Callable[..., Any])


def refuse_blocks(caller: object, X: Any, reason: str) -> None:
    """Refuse tables in blocks where all rows have to be in memory.

    Parameters
    ----------
    caller : estimator or str
        What is to be trained, or the name of a method or function.
    X : object
        What a user gave as a table.
    reason : str
        Why, and what to use instead; whole sentences.
    """
    if is_in_blocks(X):
        name = caller if isinstance(caller, str) else type(caller).__name__
        raise TypeError(
            f"{name} needs its rows in memory, and X comes in blocks. {reason}"
        )


def is_in_blocks(X: Any) -> bool:
    """Return whether a table comes in blocks, or can be read in blocks."""
    is_source = isinstance(X, BlockSource) or is_scannable(X)
    return is_source or is_dask_frame(X) or is_dask_array(X)


def learn_blocks(
    estimator: MixtureEstimator, source: BlockSource, y: Any, sample_weight: Any
) -> tuple[LearnedBlocks, dict[str, Any]]:
    """Read a table in blocks to be trained on; return also what to publish about it.

    Parameters
    ----------
    estimator : MixtureEstimator
        What is trained; its options have been checked.
    source : BlockSource
        The table.
    y, sample_weight : str, Dask series or array, or None
        Columns of labels and of weights. All others are features.
    """
    source, target = _named(source, "y", y)
    source, weight = _named(source, "sample_weight", sample_weight)
    wanted = _wanted(estimator, source, LabelColumns(target, weight), (target, weight))
    learned = learned_blocks(source, wanted)
    return learned, published_columns(wanted, learned.fingerprint)


def learn_pairs(
    estimator: MixtureEstimator,
    source: BlockSource,
    y: Any,
    sample_weight: Any,
    target_shapes: Any,
) -> tuple[LearnedPairs, dict[str, Any]]:
    """Read a table in blocks with real targets; see `learn_blocks`.

    Parameters
    ----------
    estimator, source, sample_weight
        As in `learn_blocks`.
    y : str, list of str, Dask series, data frame or array
        Columns of targets.
    target_shapes : object
        The option of the same name.
    """
    source, targets, n_dimensions = with_targets(source, y)
    source, weight = _named(source, "sample_weight", sample_weight)
    labels = LabelColumns(None, weight)
    wanted = _wanted(estimator, source, labels, (*targets, weight))
    wanted_targets = WantedTargets(
        targets,
        labels,
        None,
        target_shapes,
        "columns",
        has_names=not is_dask_array(y),
        is_vector=n_dimensions == 1,
    )
    learned = learned_pairs(source, wanted, wanted_targets)
    if is_dask_frame(y):  # whose columns may be called like other ones of the table
        names = tuple(map(str, y.columns))
        target_schema = replace(learned.target_schema, names=names)
        learned = replace(learned, target_schema=target_schema)
    return learned, {
        **published_columns(wanted, learned.fingerprint),
        "schema_": learned.schema,
        "target_schema_": learned.target_schema,
        "n_outputs_": len(targets),
        "target_ndim_": n_dimensions,
    }


def with_targets(source: BlockSource, y: Any) -> tuple[BlockSource, tuple[str, ...], int]:
    """Return a table with its targets, their names, and whether they are a vector (1)."""
    if isinstance(y, str):
        return source, (y,), 1
    if isinstance(y, list | tuple) and all(isinstance(name, str) for name in y):
        return source, tuple(y), 2
    added, names = source.added("y", y)
    return added, names, int(y.ndim)


def _named(
    source: BlockSource, argument: str, given: Any
) -> tuple[BlockSource, str | None]:
    """Return a table with labels or weights, and the name of their column."""
    if given is None or isinstance(given, str):
        return source, given
    added, names = source.added(argument, given)
    if len(names) != 1:
        raise ValueError(f"{argument} has {len(names)} columns, and one is needed.")
    return added, names[0]


def _wanted(
    estimator: MixtureEstimator,
    source: BlockSource,
    labels: LabelColumns,
    others: tuple[str | None, ...],
) -> Wanted:
    """Return what to make of all columns that are not labels, targets or weights."""
    features = tuple(name for name in source.names if name not in others)
    return Wanted(
        features,
        labels,
        *estimator._wanted_columns(len(features)),
        estimator._scaling(),
        getattr(estimator, "unlabelled", None),
        getattr(estimator, "class_weight", None),
        source.has_names,
    )


def published_columns(wanted: Wanted, fingerprint: Fingerprint) -> dict[str, Any]:
    """Return what to publish about the columns of a table in blocks."""
    published = {
        "n_features_in_": len(wanted.features),
        "feature_names_in_": np.array(wanted.features, dtype=object),
        "fingerprint_": fingerprint,
    }
    if not wanted.has_names:
        del published["feature_names_in_"]
    return published


def rows_in_memory(
    X: Any, y: Any, sample_weight: Any, features: Any, most: int
) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights in memory, at most this many of a table in blocks.

    Other tables are returned as they are.

    Parameters
    ----------
    X, y, sample_weight : object
        What a user gave as a table, and for its rows.
    features : sequence of str or None
        The columns of the table that are features; None for an array.
    most : int
        The largest number of rows.
    """
    source = source_of(X)
    if source is None:
        return X, y, sample_weight
    names = list(source.names if features is None else features)
    source, target = _named(source, "y", y)
    source, weight = _named(source, "sample_weight", sample_weight)
    others = [name for name in (target, weight) if name is not None]
    frame = spread_rows(source, [*names, *others], most)
    rows = frame.select(names)
    return (
        rows.to_native() if source.has_names else rows.to_numpy(),
        None if target is None else frame[target].to_numpy(),
        None if weight is None else frame[weight].to_numpy(),
    )


# Predictions ----------------------------------------------------------------------------


def over_blocks(method: Method) -> Method:
    """Let a method that has one result per row take a table in blocks as well.

    Columns that the model does not know are ignored.
    """

    @wraps(method)
    def over_any(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        source = source_of(X)
        if source is None:
            return method(self, X, *args, **kwargs)

        def on_block(block: object, _number: int) -> np.ndarray:
            return method(self, block, *args, **kwargs)

        return source.joined(known_columns(self, source), on_block)

    return cast(Method, over_any)


def known_columns(model: Any, source: BlockSource) -> list[str]:
    """Return the columns of a table in blocks that a fitted model knows."""
    check_is_fitted(model)
    features = getattr(model, "feature_names_in_", None)
    if features is None or not source.has_names:
        return list(source.names)
    return list(features)


def split_columns(block: Any, features: list[str], targets: tuple[str, ...]) -> Any:
    """Return the features of a block, and its targets as an array, (n,) or (n, t)."""
    frame = as_frame(block)
    if frame is None:
        X, y = np.split(block, [len(features)], axis=1)
    else:
        X = frame.select(features).to_native()
        y = np.column_stack([frame[name].to_numpy() for name in targets])
    return X, y[:, 0] if len(targets) == 1 else y


def seed_of_block(seed: int, number: int) -> int:
    """Return a seed for what is drawn for a block, which is another one for each."""
    [state] = np.random.SeedSequence([seed, number]).generate_state(1)
    return int(state) >> 1


def column_of(X: Any, given: Any) -> Any:
    """Return columns of a table in blocks that are given by name; all else as it is.

    A list of names stands for a table of targets.
    """
    source = source_of(X)
    if source is None or given is None:
        return given
    if isinstance(given, str):
        return np.asarray(source.column(given))
    # A list of labels may be one of text as well.
    if isinstance(given, list) and all(value in source.names for value in given):
        return np.column_stack([np.asarray(source.column(name)) for name in given])
    return np.asarray(given)
