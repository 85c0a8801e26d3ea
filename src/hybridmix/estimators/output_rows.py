"""Rows for a mixture, and the same rows with targets for an output layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hybridmix._parallel import Workers
from hybridmix.data import Dataset, TrainingRows
from hybridmix.data.block_sources import source_of
from hybridmix.data.shape_options import PLAIN
from hybridmix.estimators.blocks import learn_pairs
from hybridmix.estimators.options import MixtureEstimator
from hybridmix.estimators.paired import PairOrder, read_pairs
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.readout import Readout
from hybridmix.training.blocked_output import (
    BlockedTargets,
    TargetReader,
    without_targets,
)
from hybridmix.training.linear_output import GivenTargets, TargetRows


@dataclass(frozen=True)
class OutputRows:
    """Rows to train a mixture on, and an output layer for targets.

    Attributes
    ----------
    dataset : Dataset or BlockedDataset
        The rows, without targets.
    targets : callable
        Returns features and targets, given what prepares features, and threads.
    attributes : dict
        What to publish about the table and the targets.
    """

    dataset: TrainingRows
    targets: Callable[[Readout, Workers], GivenTargets]
    attributes: dict[str, Any]


@contextmanager
def reading_outputs(
    estimator: MixtureEstimator, X: Any, y: Any, sample_weight: Any
) -> Iterator[OutputRows]:
    """Read a training table with its targets, in memory or in blocks.

    Targets and weights of a table in blocks are columns of it, given by their names. The
    table is closed at the end.
    """
    source = source_of(X)
    if source is None:
        order, attributes = read_pairs(estimator, X, y, sample_weight, PLAIN)
        labels = np.zeros(order.rows.n_rows, np.intp)
        dataset = Dataset.arrange(order.rows.features, labels, order.weights)
        yield OutputRows(dataset, partial(_in_memory, order), attributes)
        return
    learned, attributes = learn_pairs(estimator, source, y, sample_weight, PLAIN)
    n_real = len(learned.schema.real)
    with closing(learned.dataset) as pairs:

        def in_blocks(readout: Readout, pool: Workers) -> GivenTargets:
            return BlockedTargets(pairs, TargetReader(readout, n_real, pool))

        rows = pairs.mapped(partial(without_targets, n_real=n_real), n_classes=1)
        yield OutputRows(rows, in_blocks, attributes)


def _in_memory(order: PairOrder, readout: Readout, pool: Workers) -> TargetRows:
    rows = order.targets[:]
    weights = np.ones(rows.n_rows) if order.weights is None else order.weights
    chunked = ChunkedRows(order.rows.features, readout, pool, keep=True)
    return TargetRows(
        chunked,
        lambda number: chunked.prepared(number, readout),
        rows.real,
        rows.mask * weights,
    )
