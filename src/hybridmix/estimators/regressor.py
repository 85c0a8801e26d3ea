"""Regression by the joint density of rows and targets."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from hybridmix._checks import check_word
from hybridmix._parallel import workers
from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix.data import Schema
from hybridmix.data.shape_options import check_shape_option
from hybridmix.data.targets import TargetPlaces, joined_schema
from hybridmix.estimators.chosen import is_auto
from hybridmix.estimators.options import warn_of
from hybridmix.estimators.paired import (
    check_targets_given,
    grouped_parts,
    reading_targets,
)
from hybridmix.estimators.predictions import MixtureForecaster
from hybridmix.estimators.streaming import StreamEstimator
from hybridmix.estimators.streaming_targets import (
    can_stream,
    largest_member,
    learned_targets,
)
from hybridmix.models.mixture import Mixture
from hybridmix.progress import printing
from hybridmix.training.candidates import Choice
from hybridmix.training.classes import Components, component_range
from hybridmix.training.covariances import COVARIANCE_TYPES, covariance_type_of
from hybridmix.training.families import Structure
from hybridmix.training.leaderboard import leaderboard
from hybridmix.training.regression import (
    FittedRegression,
    Member,
    RegressionOptions,
    fit_regressor,
    pooled,
)
from hybridmix.training.starts import METHODS


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class MixtureRegressor(MixtureForecaster, StreamEstimator):
    r"""Predict numbers, with intervals, from mixture densities of rows and targets.

    .. math:: p_m(x, y) = \sum_k \alpha_{mk}\, p_m(x, y \mid k), \qquad
              p(y \mid x) = \sum_m s_m\, \frac{p_m(x, y)}{\int p_m(x, y')\, dy'}

    Within a component the target is linear in the row, with Gaussian noise, and the
    component is more or less probable given the row: together, a smooth function with a
    spread, a skew and a number of modes that depend on the row. Where cells are missing,
    the predictions are those of the exact marginal of what the row has. Rows without a
    target are learned from as well.

    By default, candidates (covariances, numbers of components, tradeoffs) compete on
    held-out rows. Predictive densities of at most eight of them are averaged, with shares
    :math:`s_m` by stacking; each is itself the average of several starts.

    Parameters
    ----------
    n_components : int, iterable of int or "auto", default="auto"
        Numbers of components to try.
    tradeoff : float or "auto", default="auto"
        Training maximises :math:`\log p(x, y) + \lambda \log p(y \mid x)`, by L-BFGS from
        the result of EM, unless this weight :math:`\lambda` is 0. "auto" tries 0, 1
        and 10; it is 0 with ``effort="fast"``.
    n_starts : int or "auto", default="auto"
        How many starts of EM are averaged. "auto" is two in a search, four in a thorough
        one, as far as time allows, and one otherwise.
    n_steps : int, default=30
        Largest number of iterations of L-BFGS; "auto" tradeoffs share them.
    calibrate : bool or "auto", default="auto"
        Correct the spread of the predictive distributions by held-out rows. With fixed
        options this takes more fits, and "auto" does not do it.
    target_shapes : {"auto", "range", "plain"} or dict, default="auto"
        Shapes of the targets, as ``column_shapes`` has those of columns; the keys of a
        dictionary are numbers of targets.
    covariance_type : {"auto", "full", "tied", "diag", "spherical", "subspace"}, \
            default="auto"
        As in `MixtureDensity`, of rows and targets together. "auto" tries "full" and
        "diag", and "subspace" instead of "full" for many columns.
    effort : {"fast", "balanced", "thorough"} or float, default="balanced"
        How much to spend on what is "auto". "fast" fits one structure that suits the size
        of the table. "thorough" tries more numbers of components. A number of seconds
        ends a thorough search after about this time.
    init : {"kmeans", "k-means++"}, default="kmeans"
        Where EM begins.
    n_init, max_iter, tol, n_factors, noise, covariance_prior, variance_floor, \
    smoothing, categorical_features, column_shapes, forgetting, dtype, n_jobs, \
    random_state, verbose
        As in `MixtureDensity`. In a search that includes full covariances, an automatic
        prior is tried with a strength of 1 as well.

    Attributes
    ----------
    predictive_ : Predictive
        The mixtures of rows and targets that predictions are averaged over, their shares,
        and the spread.
    members_ : list of MixtureRegressor
        The same by candidate, by descending share, with explicit options.
    leaderboard_ : list of dict
        What the search has tried, best first: "candidate", "score" (mean held-out log
        predictive density, in the units of the targets), its "standard_error", "seconds",
        and "share" in the predictions. Empty without a search.
    n_searched_ : int
        Number of rows that the search has seen, if there was one.
    spread_ : float
        What the conditional deviations of all components are multiplied by; 1 unless
        calibrated.
    target_schema_ : Schema
        What training learned about the targets.
    n_outputs_ : int
        Number of targets.
    target_ndim_ : int
        Whether the targets were a vector (1) or a table (2).
    schema_, model_ : Schema, Mixture
        Of the rows alone: the marginal of the EM fit of the best held-out density, which
        gives densities, fills, typicality and sampled rows. It also gives ``mixing_``,
        ``means_`` and the other attributes of `MixtureDensity`.
    n_components_ : int
        Number of components of ``model_``.
    converged_, interrupted_, n_iter_, history_, trace_
        As in `MixtureDensity`, of the fit of ``model_`` with the targets.
    n_features_in_, feature_names_in_, stream_
        As in `MixtureDensity`.

    See Also
    --------
    MixtureDensity : The density of rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from hybridmix import MixtureRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X[::3, 2] = np.nan          # holes
    >>> y[::5] = np.nan             # rows without a target
    >>> model = MixtureRegressor(effort="fast", random_state=0).fit(X, y)
    >>> model.predict_interval(X[:2], coverage=0.9).shape
    (2, 2)
    """

    n_components: Components | str = field(default="auto", kw_only=False)
    tradeoff: float | str = "auto"
    n_starts: int | str = "auto"
    n_steps: int = 30
    calibrate: bool | str = "auto"
    target_shapes: Any = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit mixtures of rows and targets.

        Parameters
        ----------
        X : array-like, data frame or scanned table of shape (n, d)
            Training table; NaN, None and pandas.NA are missing values. A table that does
            not fit into memory is read by `scan`.
        y : array-like or data frame of shape (n,) or (n, t), str or list of str
            Targets; rows in which they are missing are learned from as well. Of a scanned
            table, the name of their column, or several.
        sample_weight : array-like of shape (n,), or str, default=None
            A row of weight two counts like two rows. Of a scanned table, the name of the
            column.
        groups : array-like of shape (n,), default=None
            Groups of rows that are held out together.

        Returns
        -------
        self : MixtureRegressor
        """
        self._check_options()
        check_targets_given(self, y)
        with reading_targets(self, X, y, sample_weight, self.target_shapes) as rows:
            parts = None if groups is None else grouped_parts(rows.order, groups)
            generator = np.random.default_rng(self._seed())
            with workers(self.n_jobs) as pool, printing(self.verbose):
                fitted = fit_regressor(
                    self._options(),
                    rows.dataset,
                    parts,
                    joined_schema(rows.schema, rows.target_schema),
                    TargetPlaces.of(rows.schema, rows.target_schema),
                    generator,
                    pool,
                )
        self._publish(self._learned_attributes(fitted, rows.attributes))
        warn_of(fitted.messages)
        return self

    @available_if(can_stream)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        schema: Schema | None = None,
    ) -> Self:
        """Learn from a batch of rows and targets by online EM, and keep none of them.

        Only with a ``tradeoff`` of 0 or "auto", which is then 0. The first batch is
        fitted like a table, with ``effort="fast"`` for what is "auto", one start, and no
        calibration. It says what columns and targets are like for good, unless a schema
        does: kinds, categories, shapes and scales. A fitted model goes on learning; of
        several mixtures, the one of the largest share does, alone.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            The batch; NaN, None and pandas.NA are missing values.
        y : array-like or data frame of shape (n,) or (n, t)
            Targets; rows in which they are missing are learned from as well.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.
        schema : Schema, default=None
            What the columns of ``X`` are like, such as the ``schema_`` of another model;
            for the first call only.

        Returns
        -------
        self : MixtureRegressor
        """
        self._publish(learned_targets(self, X, y, sample_weight, schema))
        return self

    def _streamed_model(self) -> Mixture:
        return largest_member(self.predictive_)

    def _learned_attributes(
        self, fitted: FittedRegression, about: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what training has learned, as it is published."""
        schema = about["schema_"]
        kept = range(len(schema.real)), range(len(schema.code_sizes))
        model = fitted.density.marginal(*map(list, kept))
        found = {
            **about,
            **self._derived_attributes(model, schema),
            "model_": model,
            "converged_": fitted.converged,
            "interrupted_": fitted.interrupted,
            "n_iter_": fitted.n_iter,
            "history_": dict(fitted.history),
            "trace_": fitted.history.get("value", np.empty(0)),
            "spread_": fitted.spread,
            "predictive_": fitted.predictive(),
        }
        members = [self._member(own, fitted, found) for own in fitted.members]
        searched = {"n_searched_": fitted.n_searched} if fitted.trials else {}
        return {
            **found,
            **searched,
            "leaderboard_": leaderboard(fitted.trials),
            "members_": members,
        }

    def _member(
        self, own: Member, fitted: FittedRegression, attributes: dict[str, Any]
    ) -> MixtureRegressor:
        """Return a member as a regressor with explicit options."""
        member = copy(self)
        member.__dict__.update(own.options, calibrate=False)
        predictive = pooled([replace(own, share=1.0)], fitted.spread)
        member._publish({**attributes, "predictive_": predictive})
        return member

    def _of_target(self, target: int) -> dict[str, Any]:
        found = super()._of_target(target)
        # Members themselves have none.
        if members := vars(self).get("members_"):
            found["members_"] = [member.for_target(target) for member in members]
        return found

    def check_consistent(self) -> None:
        """Raise ValueError unless members and spread are those of the predictions."""
        super().check_consistent()
        learned = vars(self)
        same = learned.get("spread_", self.predictive_.spread) == self.predictive_.spread
        require(same, "spread_ is not that of predictive_")
        require_instance("members_", learned.get("members_", []), list)
        for member in learned.get("members_", []):
            require_instance("members_", member, MixtureForecaster)

    # Options --------------------------------------------------------------------------

    @property
    def _choice(self) -> Choice:
        return Choice(is_auto(self.covariance_type), is_auto(self.n_components))

    def _structure(self) -> Structure:
        kind = "full" if is_auto(self.covariance_type) else self.covariance_type
        return self._structure_of(kind)

    def _scaling(self) -> str:
        # Candidates share one scaling, and subspaces may be among them.
        if is_auto(self.covariance_type):
            return COVARIANCE_TYPES["subspace"].scaling
        return super()._scaling()

    def _check_components(self) -> None:
        if not is_auto(self.n_components):
            component_range(self.n_components, or_auto=True)

    def _check_init(self) -> None:
        super()._check_init()
        check_word("init", self.init, METHODS)

    def _check_options(self) -> None:
        super()._check_options()
        check_shape_option(self.target_shapes, "target_shapes")
        self._options()

    def _options(self) -> RegressionOptions:
        numbers = [1]
        if not is_auto(self.n_components):
            numbers = component_range(self.n_components, or_auto=True)
        searches = self._choice.is_free or is_auto(self.tradeoff) or len(numbers) > 1
        given: Any = self.calibrate
        return RegressionOptions(
            self._structure(),
            self._estimation(),
            numbers,
            self._choice,
            self.tradeoff,
            self.n_steps,
            self.n_starts,
            searches if is_auto(given) else given,
            self.effort,
            self.init,
        )

    def _derived_attributes(self, model: Mixture, schema: Schema) -> dict[str, Any]:
        return {
            **super()._derived_attributes(model, schema),
            "covariance_type_": covariance_type_of(model.family),
        }
