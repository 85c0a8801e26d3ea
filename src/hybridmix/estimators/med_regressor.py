"""Regression by maximum entropy discrimination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hybridmix._checks import check_number, check_word
from hybridmix._registered import registered
from hybridmix._require import require
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data import Rows, Schema
from hybridmix.data.block_sources import source_of
from hybridmix.data.columns import Columns
from hybridmix.data.shape_options import PLAIN
from hybridmix.data.suspects import warn_of_suspects
from hybridmix.data.table import read_table, read_training_table
from hybridmix.data.targets import check_observed, read_targets
from hybridmix.data.weights import read_weights
from hybridmix.estimators.blocks import column_of, over_blocks
from hybridmix.estimators.machines import (
    FUNCTIONS,
    MachineEstimator,
    training_attributes,
    training_messages,
)
from hybridmix.estimators.med_blocks import (
    closing_blocks,
    kept_rows,
    read_block_matrix,
    refuse_unless_linear,
)
from hybridmix.estimators.med_densities import conjugate_for
from hybridmix.estimators.med_published import function_attributes, target_multipliers
from hybridmix.estimators.options import warn_of
from hybridmix.estimators.targets import RealTargets
from hybridmix.med.machines import LinearMachine, StackedMachine
from hybridmix.med.margins import TubeMargin
from hybridmix.progress import printing
from hybridmix.training.discrimination import stacked
from hybridmix.training.tubes import TargetRows, TrainTarget, TubeFunctions, TubeRatios

_RATIO = "independent"
_TRANSDUCTIONS = ("gaussian",)


@registered
@dataclass(eq=False, repr=False)
class MEDRegressor(RealTargets, MachineEstimator):
    r"""Predict numbers with a distribution over functions, trained with tubes.

    Of all distributions over functions (and over the width :math:`\gamma` of a tube
    around each target), maximum entropy discrimination takes the one that is closest to
    the prior and has the targets in their tubes in expectation:

    .. math:: \min_p\; \mathrm{KL}(p \,\|\, p_0) \quad \text{so that} \quad
              E_p\big[ \gamma_n - (y_n - f(x_n)) \big] \ge 0, \quad
              E_p\big[ \gamma'_n - (f(x_n) - y_n) \big] \ge 0.

    Tubes are at most ``epsilon`` wide with a uniform prior, and wider ones are less and
    less probable. A linear or kernel function with a normal prior makes it a support
    vector regression with a smooth loss; ``smoothness=0`` is scikit-learn's `SVR` with
    the same ``C`` and ``epsilon``, both in units of the target. Switches of columns
    (``inclusion``) select features. Several targets are trained apart.

    Parameters
    ----------
    model : str or callable, default="linear"
        Functions: "linear"; with a kernel, "rbf", "poly", "precomputed" (X is then the
        kernel matrix) or a function of two arrays of rows that returns their kernel
        matrix. Or "independent": log ratios of two densities of independent columns, real
        or categorical, whose holes are left out exactly.
    C : float, default=1.0
        Largest multiplier of a row: the slope of the loss of a large error.
    epsilon : float, default=0.1
        Width of the tube, in units of the target.
    smoothness : float or "auto", default="auto"
        :math:`\tau`, how smooth the loss is. 0 is that of a support vector regression;
        with switches, it takes many more iterations. Errors up to about
        ``smoothness / C`` cost nothing: where that is more than the targets vary, nothing
        is learned. "auto" is ``C * epsilon``, for which errors up to ``1.25 * epsilon``
        cost nothing, whatever ``C`` is.
    bias : "flat" or float, default="flat"
        Standard deviation of the bias a priori; 0 for none.
    inclusion : float, default=1.0
        Prior probability that a column, or one of several kernels, is included. Below 1,
        each has a switch, and `inclusion_` is its posterior probability.
    kernels : sequence of {"linear", "rbf", "poly"}, callable or Kernel, default=None
        Several kernels instead of one, whose functions are added; with ``inclusion``,
        some of them are chosen.
    gamma : float or "scale", default="scale"
        Of "rbf" and "poly"; "scale" is one over the number of columns times the variance
        of all cells.
    degree, coef0 : int and float, default=3 and 1.0
        Of "poly".
    transduction : {"gaussian"} or None, default=None
        What rows without a target (NaN) are for. "gaussian" takes their targets for
        normal, with mean and variance of the others, and integrates them out, so that
        predictions for them stay in the range of the targets. None leaves them out.
    unlabelled_weight : float, default=1.0
        What a row without a target counts in transduction, compared with other rows.
    prior_strength : float, default=1.0
        How much each row counts in the priors of the two densities of
        ``model="independent"``, which are like the table: the larger, the less they can
        differ.
    categorical_features : sequence, default=None
        Columns that are categorical whatever their type, for densities.
    solver : str, default="auto"
        "newton" for linear functions, "pairs" for kernels with a flat bias, "axes" and
        "learned" for kernels with a bias that has a standard deviation, "ascent" for all.
    tol : float, default=1e-4
        Largest gap between primal and dual, relative to the objective.
    max_iter : int, default=1000
        Largest number of iterations.
    cache_size : float, default=200.0
        Megabytes that rows of a kernel matrix may take.
    verbose : int, default=0
        Print progress.

    Attributes
    ----------
    coef_ : ndarray of shape (p,) or (t, p)
        Expected weights of linear functions; the latter for targets of shape (n, t).
    intercept_ : float or ndarray of shape (t,)
        Expected biases.
    multipliers_ : ndarray of shape (n, 2) or (n, t, 2)
        Multipliers of the training rows: of targets above the tube, which raise the
        function, and of those below it.
    support_ : ndarray of int
        Rows that have a multiplier.
    inclusion_ : ndarray of shape (p,) or (M,), or (t, p) or (t, M)
        Posterior probabilities of the switches. They rank well, but are not calibrated.
    dual_value_, dual_gap_ : float
        Value of the dual, and how far it may be from its maximum, summed over targets.
    machine_ : LinearMachine, KernelMachine, RatioMachine or StackedMachine
        What predicts.
    n_iter_ : int
        Iterations of the solver, the most of any target.
    converged_, interrupted_ : bool
        Whether the gap met the tolerance; whether the user stopped training.
    n_outputs_, target_ndim_ : int
        Number of targets; 1 if they came as a vector, else 2.
    schema_ : Schema
        Types, categories and scales of the columns, for densities.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MixtureRegressor : Predictive distributions, by mixtures that are exact with holes.

    References
    ----------
    Jebara, T. (2004). Machine learning: discriminative and generative. Kluwer.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hybridmix import MEDRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), MEDRegressor(epsilon=10.0))
    >>> bool(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.4)
    True
    """

    _: KW_ONLY
    epsilon: float = 0.1
    smoothness: float | str = "auto"
    transduction: str | None = None
    unlabelled_weight: float = 1.0
    prior_strength: float = 1.0
    categorical_features: Sequence[int | str | bool] | None = None

    _models: ClassVar[tuple[str, ...]] = (*FUNCTIONS, _RATIO)
    _smoothness_word: ClassVar[str | None] = "auto"
    _remedy: ClassVar[str] = (
        "Linear and kernel models need complete rows: fill the holes with a "
        "MixtureImputer in a pipeline, or use MixtureRegressor or model='independent', "
        "which leave missing cells out exactly."
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.input_tags.allow_nan = self._has_densities
        tags.input_tags.categorical = tags.input_tags.string = self._has_densities
        return tags

    @property
    def _has_densities(self) -> bool:
        return isinstance(self.model, str) and self.model == _RATIO

    # Training -------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the distribution over functions.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Training rows; a kernel matrix for ``model="precomputed"``. Linear functions
            take tables in blocks, with names of columns as the other arguments.
        y : array-like or data frame of shape (n,) or (n, t), str or list of str
            Targets; NaN, None and pandas.NA are missing, see ``transduction``.
        sample_weight : array-like of shape (n,) or str, default=None
            A row of weight two counts like two rows.

        Returns
        -------
        self : MEDRegressor
        """
        self._check_options()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        source, given = source_of(X), (y, sample_weight)
        if source is not None:
            refuse_unless_linear(self, X)
            y, sample_weight = column_of(X, y), column_of(X, sample_weight)
        columns, n_dimensions = read_targets(y)
        if source is None:
            features, attributes = self._read_features(X)
        else:
            features, attributes = read_block_matrix(source, given, self._remedy)
        with closing_blocks(features):
            self._fit_features(features, columns, sample_weight, n_dimensions, attributes)
        return self

    def _fit_features(
        self,
        features: Any,
        columns: Columns,
        sample_weight: Any,
        n_dimensions: int,
        attributes: dict[str, Any],
    ) -> None:
        """Fit the distribution to rows and targets that have been read."""
        n_rows = features.n_rows if isinstance(features, Rows) else features.shape[0]
        check_consistent_length(np.empty(n_rows), np.empty(columns.n_rows))
        weights = read_weights(sample_weight, n_rows)
        check_observed(columns, weights)
        targets = columns.real(range(columns.n_columns))
        filled = np.ones(n_rows) if weights is None else weights
        used = [(filled > 0.0) & self._takes_part(own) for own in targets.T]
        train = self._procedure(features, weights, attributes.get("schema_"))
        parts = []
        with printing(self.verbose):
            for own, rows in zip(targets.T, used, strict=True):
                parts.append(self._train(train, TargetRows(features, own, filled), rows))
        trained = stacked(parts)
        several = n_dimensions == 2
        found = {
            **attributes,
            **training_attributes(trained),
            **({} if self._is_precomputed else function_attributes(trained, several)),
            **target_multipliers(parts, used, several),
            "n_outputs_": columns.n_columns,
            "target_ndim_": n_dimensions,
        }
        if len(parts) == 1:
            found["machine_"] = parts[0].machine
        self._publish(found)
        warn_of(training_messages(trained, self.max_iter))

    def _takes_part(self, targets: FloatArray) -> BoolArray:
        """Return which rows training looks at."""
        if self.transduction is not None:
            return np.ones(len(targets), dtype=bool)
        return ~np.isnan(targets)

    def _train(self, train: TrainTarget, rows: TargetRows, used: BoolArray) -> Any:
        """Train on some rows; a precomputed kernel has as many columns as rows."""
        if used.all():
            return train(rows)
        places = np.flatnonzero(used)
        if not self._is_precomputed:
            return train(kept_rows(rows, places))
        square = TargetRows(rows.features[:, places], rows.targets, rows.weights)
        trained = train(square[places])
        machine: Any = trained.machine
        coef = np.zeros((1, len(used)))
        coef[:, places] = machine.coef
        return replace(trained, machine=LinearMachine(coef, machine.bias))

    def _procedure(
        self, features: Any, weights: FloatArray | None, schema: Schema | None
    ) -> TrainTarget:
        """Return how a target is trained on."""
        C, epsilon = float(self.C), float(self.epsilon)
        tau = C * epsilon if self.smoothness == "auto" else float(self.smoothness)
        prior = TubeMargin(C, tau, epsilon)
        if not self._has_densities:
            options = self._options(features, prior, weights)
            return TubeFunctions(options, float(self.unlabelled_weight))
        options = self._options(np.zeros((1, 1)), prior)
        conjugate = conjugate_for(self.model, features, schema)
        return TubeRatios(options, conjugate, float(self.prior_strength))

    # Reading and predicting -----------------------------------------------------------

    def _read_features(self, X: Any) -> tuple[Any, dict[str, Any]]:
        """Read the training table: a matrix, or encoded rows for densities."""
        if not self._has_densities:
            return self._read_training(X)
        columns, found = read_training_table(self, X)
        schema = Schema.learn(columns, self.categorical_features, PLAIN)
        warn_of_suspects(columns, schema, self.categorical_features)
        return schema.encode(columns)[:], {**found, "schema_": schema}

    def _outputs(self, X: Any) -> FloatArray:
        if not self._has_densities:
            return super()._outputs(X)
        check_is_fitted(self, "machine_")
        return self.machine_.outputs(self.schema_.encode(read_table(self, X))[:])

    @over_blocks
    def predict(self, X: Any) -> FloatArray:
        """Return the expected targets of rows.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Rows; kernel values with the training rows for ``model="precomputed"``.

        Returns
        -------
        y : ndarray of shape (n,) or (n, t)
            Predictions, in the form that the targets of training had.
        """
        return self._shaped(self._outputs(X))

    # Checks ---------------------------------------------------------------------------

    def _check_options(self) -> None:
        super()._check_options()
        check_number("epsilon", self.epsilon, 0.0, 1e12)
        check_number("unlabelled_weight", self.unlabelled_weight, 1e-12, 1e6)
        check_number("prior_strength", self.prior_strength, 1e-6, 1e6)
        if self.transduction is not None:
            check_word("transduction", self.transduction, _TRANSDUCTIONS)
            if self.solver not in ("auto", "ascent"):
                raise ValueError(
                    f"solver={self.solver!r} does not suit transduction: use "
                    "solver='auto'."
                )
        if self._has_densities:
            self._check_densities()

    def _check_densities(self) -> None:
        """Refuse options that densities do not have."""
        if self.kernels is not None:
            raise ValueError(f"kernels are not for densities: model={self.model!r}.")
        if self.transduction is not None:
            raise ValueError(
                f"transduction is not for densities: model={self.model!r}. Use "
                "MixtureRegressor, which learns from rows without a target."
            )
        if self.solver not in ("auto", "ascent"):
            raise ValueError(
                f"solver={self.solver!r} does not suit densities: use solver='auto'."
            )

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        machine = self.machine_
        found = len(
            machine.parts if isinstance(machine, StackedMachine) else machine.bias
        )
        require(found == self.n_outputs_, "machine_ has other outputs than targets")
        self._require_dimensions()
        has_schema = isinstance(getattr(self, "schema_", None), Schema)
        require(has_schema == self._has_densities, "schema_ is wrong")
