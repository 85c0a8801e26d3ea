"""What fitted estimators can do, whatever they were fitted by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number
from hybridmix._logsumexp import class_posterior
from hybridmix._parallel import workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Table, read_table
from hybridmix.data.block_sources import source_of
from hybridmix.data.columns import Columns
from hybridmix.data.rows import RowSource
from hybridmix.estimators.blocks import over_blocks, seed_of_block
from hybridmix.estimators.fitted import FittedModel
from hybridmix.estimators.imputation import impute_table
from hybridmix.evaluation import ChunkedRows, log_joint
from hybridmix.models.mixture import Mixture, MixtureEvaluation
from hybridmix.models.typicality import LOG_RARE, log_tail_probability


class FittedMixture(FittedModel):
    """Base of all estimators: prediction by a fitted mixture. It has no options.

    Attributes
    ----------
    schema_ : Schema
        What training learned about the columns.
    model_ : Mixture
        The model, in scaled coordinates.
    fingerprint_ : Fingerprint
        Which rows were in training.
    """

    model_: Mixture
    interrupted_: bool
    purpose: ClassVar[str] = "models the density of the rows by a mixture"
    model_type: ClassVar[type] = Mixture

    # Reading ------------------------------------------------------------------------

    def _read(self, X: Any) -> Columns:
        check_is_fitted(self, "model_")
        return read_table(self, X)

    def _encode(self, X: Any) -> Table:
        columns = self._read(X)
        return self.schema_.encode(columns)

    # Evaluation by chunks -------------------------------------------------------------

    @property
    def _n_threads(self) -> int | None:
        return self.n_jobs

    def _joined(
        self, source: RowSource, read: Callable[[MixtureEvaluation], np.ndarray]
    ) -> np.ndarray:
        """Evaluate all rows on threads; join what is read from the evaluations."""
        with workers(self._n_threads) as pool:
            rows = ChunkedRows(source, self.model_, pool)
            return rows.joined(self.model_, read)  # type: ignore[arg-type]

    def _log_joint(self, table: Table) -> FloatArray:
        """Return ``log p(x, c)`` in the units of the table, (C, n)."""
        with workers(self._n_threads) as pool:
            return log_joint(self.model_, table, pool) - table.log_volume()

    def _best_component(self, table: Table) -> IntArray:
        return self._joined(
            table, lambda evaluation: evaluation.component_posterior().argmax(axis=0)
        )

    # Public -----------------------------------------------------------------------------

    @over_blocks
    def score_samples(self, X: Any) -> FloatArray:
        """Return the log density of each row, over the columns that it has.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are marginalised.

        Returns
        -------
        log_density : ndarray of shape (n,)
            Natural logarithm, in the units of the table. Where a value is a spike of its
            column (`schema_.shapes`), its probability takes the place of a density.
        """
        return class_posterior(self._log_joint(self._encode(X)))[0]

    @over_blocks
    def typicality(self, X: Any) -> FloatArray:
        r"""Return how typical each row is, at most 0; the lower, the more of an outlier.

        .. math:: \log P\big( p(X_o) \le p(x_o) \big),

        the logarithm of the probability that the model itself produces a row of no higher
        density, over the columns that the row has. Rows with holes can be compared
        with complete ones. Below log 0.01 lie at most about one in a hundred rows of the
        model: where components overlap, the probability is an upper bound. Densities are
        those of mapped columns where these have a transform, and spikes count like
        categories.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are marginalised.

        Returns
        -------
        log_probability : ndarray of shape (n,)
            Natural logarithm; it does not depend on the units of the table.
        """
        return self._typicality(self._encode(X))

    def _typicality(self, source: RowSource) -> FloatArray:
        return self._joined(source, log_tail_probability)

    def impute(self, X: Any, draw: bool = False, random_state: Any = None) -> Any:
        """Fill the holes of a table.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            The table.
        draw : bool, default=False
            Draw from the conditional distribution instead of taking its mean (mode for
            categories and spikes).
        random_state : int, RandomState or None, default=None
            For draws; None uses the estimator's own.

        Returns
        -------
        X : ndarray or data frame of shape (n, d)
            A completed copy.
        """
        seed = self._seed(random_state) if draw else None
        return self._completed(X, self.model_, seed)

    def _completed(self, X: Any, model: Mixture, seed: int | None) -> Any:
        """Fill the holes of a table by a mixture; None for means, or a seed of draws."""
        check_is_fitted(self, "model_")
        source = source_of(X)
        if source is not None:

            def completed(block: object, number: int) -> Any:
                own = None if seed is None else seed_of_block(seed, number)
                return self._completed(block, model, own)

            return source.completed(completed)
        columns = self._read(X)
        with workers(self._n_threads) as pool:
            return impute_table(model, self.schema_, columns, seed, pool)

    def _sample_rows(self, n_samples: int, random_state: Any) -> tuple[Any, IntArray]:
        check_is_fitted(self)
        check_number("n_samples", n_samples, 1, whole=True)
        generator = np.random.default_rng(self._seed(random_state))
        rows, components = self.model_.sample(n_samples, generator)
        order = generator.permutation(n_samples)
        return self.schema_.decode(rows[order]), components[order]


def outlier_level(estimator: object) -> float:
    """Return the typicality below which rows are outliers: a detector has its own."""
    return float(getattr(estimator, "offset_", LOG_RARE))
