"""Learning from streams: what the estimators with `partial_fit` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridmix._checks import check_number
from hybridmix._parallel import Workers, workers
from hybridmix._require import require_instance
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema
from hybridmix.data.fingerprint import Fingerprint
from hybridmix.data.table import PUBLISHED, read_training_table
from hybridmix.data.weights import read_weights
from hybridmix.estimators.automatic import DensityEstimator
from hybridmix.estimators.blocks import refuse_blocks
from hybridmix.estimators.options import MixtureEstimator, TrainingTable, warn_of
from hybridmix.models.mixture import Mixture
from hybridmix.progress import printing
from hybridmix.solvers import Memory, OnlineEM
from hybridmix.training.streams import Batch, Streamed, StreamTrainer

# Batches whose likelihood is published.
_LONGEST_TRACE = 1000


@dataclass(eq=False, repr=False, kw_only=True)
class StreamEstimator(MixtureEstimator):
    """Base of the estimators that can learn from one batch of rows after the other.

    The option is documented in `MixtureDensity`.
    """

    forgetting: float | None = None

    def _check_init(self) -> None:
        super()._check_init()
        if self.forgetting is not None:
            check_number("forgetting", self.forgetting, 0.0, 1.0)

    def check_consistent(self) -> None:
        """Raise ValueError unless the memory of a stream is one of the model."""
        super().check_consistent()
        memory = vars(self).get("stream_")
        if memory is not None:
            require_instance("stream_", memory, Memory)
            memory.check_consistent()
            memory.statistics.check_like(self._streamed_model().zero_statistics())

    def _streamed_model(self) -> Mixture:
        """Return the model that batches are learned by."""
        return self.model_

    @property
    def _begins_stream(self) -> bool:
        """Whether nothing has been learned so far."""
        return not hasattr(self, "model_")

    def _check_batch(self, X: Any) -> None:
        """Check the options, and refuse whole tables of many batches."""
        refuse_blocks(
            "partial_fit",
            X,
            "Pass one batch after the other: iterating over table = scan(path) yields "
            "blocks, of which next(iter(table)) is the first. fit reads all of them.",
        )
        self._check_options()

    def _read_batch(
        self,
        X: Any,
        sample_weight: Any,
        schema: Schema | None,
        labels: IntArray | None = None,
    ) -> TrainingTable:
        """Read a batch; the first one says what columns are like, unless a schema does.

        `_check_batch` has been called.
        """
        if self._begins_stream and schema is None:
            return self._learn_table(X, sample_weight, labels)
        if self._begins_stream:
            columns, attributes = read_training_table(self, X)
            known = _checked_schema(schema, columns.names, columns.n_columns)
        else:
            _check_unchanged(schema, self.schema_)
            known, columns = self.schema_, self._read(X)
            attributes = {k: v for k, v in vars(self).items() if k in PUBLISHED}
        weights = read_weights(sample_weight, columns.n_rows)
        table = known.encode(columns, strict=True)
        found = Fingerprint.of(table, weights)
        before = vars(self).get("fingerprint_")
        attributes["fingerprint_"] = found if before is None else before.merge(found)
        return TrainingTable(table, weights, attributes)

    def _memory(self) -> Memory:
        """Return what the model remembers; one that was fitted stands for its rows."""
        known = vars(self).get("stream_")
        if known is not None:
            return known
        if not hasattr(self, "fingerprint_"):
            raise ValueError(
                "partial_fit cannot go on from this model, since it does not know how "
                "many rows it was fitted to. Begin anew with a clone."
            )
        return Memory.of_model(self._streamed_model(), float(self.fingerprint_.n_rows))

    def _learned(
        self,
        schema: Schema,
        batch: Batch,
        begin: Callable[[np.random.Generator, Workers], Mixture],
        unlabelled_weight: float | str = 1.0,
        learn_class_prior: bool = True,
    ) -> Streamed:
        """Learn from a batch; the first one begins with a fit.

        Parameters
        ----------
        schema : Schema
            Of the rows of the batch.
        batch : Batch
            The rows.
        begin : callable
            Fits a model to the first batch.
        unlabelled_weight, learn_class_prior
            As in `StreamTrainer`.
        """
        generator = np.random.default_rng([self._seed(), len(self._past_trace())])
        with workers(self.n_jobs) as pool, printing(self.verbose):
            trainer = StreamTrainer(
                OnlineEM(self.forgetting),
                self._estimation(),
                schema,
                unlabelled_weight,
                learn_class_prior,
                generator,
                pool,
            )
            if self._begins_stream:
                return trainer.begun(begin(generator, pool), batch)
            return trainer.continued(self._streamed_model(), self._memory(), batch)

    def _past_trace(self) -> FloatArray:
        """Return the likelihoods of the batches so far."""
        return self.trace_ if hasattr(self, "stream_") else np.empty(0)

    def _stream_attributes(self, streamed: Streamed) -> dict[str, Any]:
        """Return what to publish about a stream, whatever it has taught."""
        n_batches = vars(self).get("n_iter_", 0) if hasattr(self, "stream_") else 0
        trace = np.append(self._past_trace(), streamed.likelihood)[-_LONGEST_TRACE:]
        return {
            "stream_": streamed.memory,
            "converged_": False,
            "interrupted_": False,
            "n_iter_": n_batches + 1,
            "trace_": trace,
        }


class StreamedDensity(StreamEstimator, DensityEstimator):
    """Base of the estimators of one density that can learn from a stream."""

    def _partially_fitted(
        self, X: Any, sample_weight: Any, schema: Schema | None
    ) -> dict[str, Any]:
        """Learn from a batch; return what to publish."""
        self._check_batch(X)
        read = self._read_batch(X, sample_weight, schema)
        labels = np.zeros(read.table.n_rows, np.intp)
        batch = Batch(read.table, labels, read.weights)

        def begin(*_: object) -> Mixture:
            options = replace(self._density_options(), effort="fast")
            fitted = self._fit_table(read, options)[0]
            warn_of(fitted.messages)
            return fitted.model

        streamed = self._learned(read.table.schema, batch, begin)
        return {
            **read.attributes,
            "schema_": read.table.schema,
            "model_": streamed.model,
            **self._derived_attributes(streamed.model, read.table.schema),
            **self._stream_attributes(streamed),
            "bic_": {},
            "leaderboard_": [],
        }


def _checked_schema(
    schema: object, names: tuple[str, ...] | None, n_columns: int
) -> Schema:
    """Refuse a schema of other columns than a table has."""
    if not isinstance(schema, Schema):
        raise TypeError(
            f"schema is a {type(schema).__name__}: it must be a Schema, such as the "
            "schema_ of a fitted model."
        )
    if schema.n_columns != n_columns or schema.names != names:
        raise ValueError(
            f"schema has the {schema.n_columns} columns {_listed(schema.names)}, and X "
            f"has the {n_columns} columns {_listed(names)}."
        )
    return schema


def _listed(names: tuple[str, ...] | None) -> str:
    return "without names" if names is None else ", ".join(map(repr, names[:5]))


def _check_unchanged(schema: object, known: Schema) -> None:
    """Refuse to change a schema after the first batch."""
    if schema is not None and schema is not known:
        raise ValueError(
            "schema can be passed to the first call of partial_fit only: what columns "
            "are like is final from then on."
        )
