"""Tables in blocks, where estimators read and predict tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix.data.block_labels import LabelColumns
from hybridmix.data.block_reading import (
    BlockSource,
    LearnedBlocks,
    Wanted,
    learned_blocks,
)
from hybridmix.data.dask_blocks import DaskTable, is_dask_frame
from hybridmix.data.scanning import scan

if TYPE_CHECKING:
    from hybridmix.estimators.options import MixtureEstimator

Method = TypeVar("Method", bound=Callable[..., Any])


def source_of(X: object) -> BlockSource | None:
    """Return a table in blocks, also for the path of one; None for all other tables."""
    if is_dask_frame(X):
        return DaskTable(cast(Any, X))
    if isinstance(X, str | PathLike):
        return scan(X)
    return X if isinstance(X, BlockSource) else None


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
    y, sample_weight : str, Dask series or None
        Columns of labels and of weights. All others are features.
    """
    if y is not None and not isinstance(y, str):
        source, y = source.added("y", y)
    if sample_weight is not None and not isinstance(sample_weight, str):
        source, sample_weight = source.added("sample_weight", sample_weight)
    labels = LabelColumns(y, sample_weight)
    features = tuple(n for n in source.names if n not in (labels.target, labels.weight))
    categorical, shapes = estimator._wanted_columns(len(features))
    wanted = Wanted(
        features,
        labels,
        categorical,
        shapes,
        estimator._scaling(),
        getattr(estimator, "unlabelled", None),
        getattr(estimator, "class_weight", None),
    )
    learned = learned_blocks(source, wanted)
    return learned, {
        "n_features_in_": len(features),
        "feature_names_in_": np.array(features, dtype=object),
        "fingerprint_": learned.fingerprint,
    }


def over_blocks(method: Method) -> Method:
    """Let a method that has one result per row take a table in blocks as well.

    Columns that the model does not know are ignored.
    """

    @wraps(method)
    def over_any(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        source = source_of(X)
        if source is None:
            return method(self, X, *args, **kwargs)
        check_is_fitted(self)
        features = getattr(self, "feature_names_in_", None)
        columns = list(source.names if features is None else features)
        return source.joined(columns, lambda block: method(self, block, *args, **kwargs))

    return cast(Method, over_any)


def column_of(X: Any, given: Any) -> Any:
    """Return a column of a table in blocks that is given by name; all else as it is."""
    source = source_of(X)
    if source is None or not isinstance(given, str):
        return given
    return np.asarray(source.column(given))
