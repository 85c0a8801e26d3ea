"""Imputation in a pipeline, single and multiple."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number
from hybridmix._parallel import workers
from hybridmix._registered import registered
from hybridmix._require import require_instance
from hybridmix.estimators.automatic import DensityEstimator
from hybridmix.estimators.options import warn_of
from hybridmix.training.density import bootstrapped


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class MixtureImputer(OneToOneFeatureMixin, TransformerMixin, DensityEstimator):
    """Fill missing cells with what a mixture expects, given the observed cells.

    A real value is filled by its conditional mean, a category by the most probable one.
    `draw` completes a table several times instead, by draws that show how uncertain the
    filled values are (multiple imputation).

    Parameters
    ----------
    n_components : int, iterable of int or "auto", default="auto"
        As in `MixtureDensity`; "auto" chooses what fills hidden cells best.
    n_draws : int or None, default=None
        Number of completed tables that `draw` returns. Each is drawn from a mixture that
        was fitted to another bootstrap sample of the rows, so that the tables also
        differ by the uncertainty of the model.
    column_shapes : {"range", "auto", "plain"} or dict, default="range"
        As in `MixtureDensity`. The default maps no column, which fills worse on most
        tables that were tried, but fills no negative value into a column without any, and
        whole numbers into columns of whole numbers.
    covariance_type, n_factors, noise, covariance_prior, variance_floor, smoothing, \
    categorical_features
        As in `MixtureDensity`.
    init, n_init, max_iter, tol, effort, dtype, n_jobs, random_state, verbose
        As in `MixtureDensity`.

    Attributes
    ----------
    leaderboard_ : list of dict
        As in `MixtureDensity`, but the score is minus the mean squared error of hidden
        cells of held-out rows, in standard deviations of the columns; a wrong category
        counts like an error of one. The means of the columns, which is what a single
        component with diagonal covariances fills in, are always among the candidates.
    n_components_, covariance_type_, covariance_prior_, n_searched_, mixing_, means_, \
    covariances_, loading_, noise_variances_, category_probabilities_, categories_, \
    spike_probabilities_, bic_, converged_, interrupted_, n_iter_, trace_, \
    n_features_in_, feature_names_in_
        As in `MixtureDensity`.

    Notes
    -----
    A table comes back as it came: arrays as arrays, data frames as data frames, with the
    categories that they had; a column of whole numbers (also pandas' ``Int64``) becomes
    one of floats where holes were filled, even if all values happen to be whole. A column
    without any observed value in training is left as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MixtureImputer
    >>> X = np.array([[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, np.nan]])
    >>> imputer = MixtureImputer(1, covariance_type="full", covariance_prior=0)
    >>> imputer.fit_transform(X).round(1)[-1]
    array([4. , 7.9])
    """

    purpose = "fills the holes of a table from a mixture density"
    fitted_attributes = (*DensityEstimator.fitted_attributes, "draw_models_")

    n_draws: int | None = None

    @property
    def _fills(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture that fills the holes.

        Parameters
        ----------
        X : array-like, data frame, scanned table or path, of shape (n, d)
            Training table, with holes. One that does not fit into memory is read by
            `scan`, or by its path.
        y : ignored
            For pipelines.
        sample_weight : array-like of shape (n,), or str, default=None
            A row of weight two counts like two rows. Of a scanned table, the name of the
            column.

        Returns
        -------
        self : MixtureImputer
        """
        with (
            self._fitting(X, sample_weight) as (fitted, dataset, attributes),
            workers(self.n_jobs) as pool,
        ):
            generator = np.random.default_rng([self._seed(), 1])
            attributes["draw_models_"] = bootstrapped(
                fitted.model,
                dataset,
                self.n_draws or 0,
                self._estimation(),
                generator,
                pool,
            )
        n_drawn, n_asked = len(attributes["draw_models_"]), self.n_draws or 0
        messages = list(fitted.messages)
        if n_drawn < n_asked:
            messages.append(f"Interrupted: {n_drawn} of {n_asked} draws are kept.")
        self._publish(attributes)
        warn_of(messages)
        return self

    def _check_options(self) -> None:
        super()._check_options()
        if self.n_draws is not None:
            check_number("n_draws", self.n_draws, 1, whole=True)

    def check_consistent(self) -> None:
        """Raise ValueError unless all models are of the same table."""
        super().check_consistent()
        require_instance("draw_models_", self.draw_models_, list)
        for model in self.draw_models_:
            self._check_model("draw_models_", model)

    def transform(self, X: Any) -> Any:
        """Return a copy of a table with its holes filled.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            The table.

        Returns
        -------
        X : ndarray or data frame of shape (n, d)
        """
        check_is_fitted(self)
        return self._completed(X, self.model_, None)

    def draw(self, X: Any, random_state: Any = None) -> list[Any]:
        """Return ``n_draws`` completed copies of a table.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            The table.
        random_state : int, RandomState or None, default=None
            None uses the estimator's own.

        Returns
        -------
        tables : list of ndarray or data frame of shape (n, d)
        """
        check_is_fitted(self)
        if not self.draw_models_:
            raise ValueError(
                "draw needs an imputer that was fitted with n_draws, such as "
                "MixtureImputer(n_draws=5)."
            )
        seeds = np.random.default_rng(self._seed(random_state)).integers(
            2**31, size=len(self.draw_models_)
        )
        pairs = zip(self.draw_models_, seeds.tolist(), strict=True)
        return [self._completed(X, model, seed) for model, seed in pairs]
