"""Classification by maximum entropy discrimination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from hybridmix._checks import check_flag, check_number, check_seed, check_word
from hybridmix._registered import registered
from hybridmix._require import require
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import UNLABELLED, Schema, encode_labels
from hybridmix.data.block_sources import source_of
from hybridmix.data.weights import filled_weights
from hybridmix.estimators.blocks import column_of
from hybridmix.estimators.labelled import (
    check_labels_given,
    check_mark,
    class_weighted,
)
from hybridmix.estimators.machines import (
    FUNCTIONS,
    training_attributes,
    training_messages,
)
from hybridmix.estimators.med_blocks import (
    closing_blocks,
    kept_rows,
    read_block_matrix,
    refuse_unless_linear,
    rows_in_memory,
)
from hybridmix.estimators.med_densities import (
    DENSITIES,
    TABLES,
    check_density_options,
    conjugate_for,
)
from hybridmix.estimators.med_published import (
    machine_attributes,
    row_attributes,
    training_bounds,
)
from hybridmix.estimators.med_reading import TableMachine
from hybridmix.estimators.med_scores import ScoredClassifier, check_classes
from hybridmix.estimators.options import warn_of
from hybridmix.med.machines import StackedMachine
from hybridmix.med.margins import (
    ExponentialMargin,
    GaussianMargin,
    LaplaceMargin,
    MarginPrior,
)
from hybridmix.models.calibration import Calibration
from hybridmix.progress import printing
from hybridmix.training.discrimination import (
    PRIORS,
    TRANSDUCTIONS,
    Densities,
    Functions,
    LabelledRows,
    Train,
    calibrated,
)

_MARGIN_PRIORS: dict[str, Callable[[float, float, float], MarginPrior]] = {
    "exponential": ExponentialMargin,
    "laplace": LaplaceMargin,
    "gaussian": GaussianMargin,
}


@registered
@dataclass(eq=False, repr=False)
class MEDClassifier(ScoredClassifier, TableMachine):
    r"""Classify rows with a distribution over models that is trained with margins.

    Of all distributions over models :math:`\Theta` (and over margins :math:`\gamma` of
    the rows), maximum entropy discrimination takes the one that is closest to the prior
    and classifies the training rows in expectation:

    .. math:: \min_p\; \mathrm{KL}(p \,\|\, p_0) \quad \text{so that} \quad
              E_p\big[ y_n f(x_n; \Theta) - \gamma_n \big] \ge 0.

    A linear or kernel function with a normal prior makes it a support vector machine with
    a smooth loss, which has LIBSVM's solution as a limit (``smoothness=0``). Switches of
    columns (``inclusion``) rank features of wide tables. And the functions may be log
    ratios of densities (``model="independent"`` and others), which then train generative
    models by margins.

    Parameters
    ----------
    model : str or callable, default="linear"
        Discriminant functions: "linear"; with a kernel, "rbf", "poly", "precomputed" (X
        is then the kernel matrix) or a function of two arrays of rows that returns their
        kernel matrix. Or log densities of the classes: "gaussian" (full covariances of
        complete real columns), "independent" (real and categorical columns with holes,
        which are left out exactly), "tree" (a distribution over all trees that connect
        the complete categorical columns), "poisson" and "multinomial" (counts).
    C : float, default=1.0
        Largest multiplier of a row: the larger, the less a row may lack a margin.
    margin : float or "auto", default="auto"
        Mean :math:`l` of the margins a priori. Rows that have more do not matter. "auto"
        is 1 for functions. For densities it is the median of the margins that the
        training rows have under the prior, but at least 1 and at most 30.
    smoothness : float, default=1.0
        :math:`\tau`, how smooth the loss of a lacking margin is; 0 is the hinge of a
        support vector machine.
    margin_prior : {"exponential", "laplace", "gaussian"}, default="exponential"
        Margins a priori: at most a level, around their mean with heavy tails, or normal,
        which leads to the squared hinge and has no largest multiplier.
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
    multi_class : {"joint", "one-vs-rest"}, default="joint"
        More than two classes: one margin for each rival of the label, or one classifier
        for each class. Densities are trained jointly.
    prior : {"empirical", "flat"}, default="empirical"
        Of the parameters of densities: like the rows of the class, or like the table.
    prior_strength : float, default=1.0
        How much each row counts in an empirical prior: the larger, the closer to the
        likelihood of the classes.
    transduction : {"gaussian", "mean_field"} or None, default=None
        What unlabelled rows are for. Their labels may be normal a priori and be
        integrated out, or be estimated in turn with the function. None leaves the rows
        out.
    label_precision : float, default=3.0
        :math:`\kappa` of normal labels, one over their standard deviation.
    unlabelled : object, default=-1
        The mark of unlabelled rows in ``y``, besides None and NaN; None for no other
        mark.
    unlabelled_weight : float, default=0.1
        What an unlabelled row counts, compared with a labelled one.
    class_weight : "balanced", mapping or None, default=None
        Weights of the classes, as in scikit-learn.
    calibrate : bool, default=True
        Fit the scale of the outputs to held-out rows of three folds, for
        `predict_proba`. Precomputed kernels are not calibrated.
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
    random_state : int, RandomState or None, default=None
        For the folds of the calibration.
    verbose : int, default=0
        Print progress.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels.
    coef_ : ndarray of shape (1, p) or (C, p)
        Expected weights of linear functions.
    intercept_ : ndarray of shape (1,) or (C,)
        Expected biases.
    multipliers_ : ndarray of shape (n,) or (n, C)
        Multipliers of the training rows: by rivals, 0 for the label itself, if classes
        are joint, and by classes if they are apart.
    support_ : ndarray of int
        Rows that have a multiplier.
    inclusion_ : ndarray of shape (p,), (C, p) or (M,)
        Posterior probabilities of the switches. They rank well, but are not calibrated.
    edge_probabilities_ : ndarray of shape (C, k, k)
        Of ``model="tree"``: how probable it is that categorical columns are connected.
    bounds_ : Bounds
        Bounds of the error on new rows, with their assumptions; for two classes.
    dual_value_, dual_gap_ : float
        Value of the dual, and how far it may be from its maximum.
    margin_ : float
        The mean margin.
    machine_ : LinearMachine, KernelMachine, DensityMachine or StackedMachine
        What predicts.
    temperature_, uniform_share_ : float
        Of the calibration.
    n_iter_ : int
        Iterations of the solver.
    converged_, interrupted_ : bool
        Whether the gap met the tolerance; whether the user stopped training.
    schema_ : Schema
        Types, categories and scales of the columns, for densities.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MEDFeatureSelector : Rank columns by their switches.
    HybridMixtureClassifier : Mixtures that are trained to discriminate.

    References
    ----------
    Jebara, T. (2004). Machine learning: discriminative and generative. Kluwer.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hybridmix import MEDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), MEDClassifier(random_state=0))
    >>> bool(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95)
    True
    """

    _: KW_ONLY
    margin: float | str = "auto"
    margin_prior: str = "exponential"
    multi_class: str = "joint"
    prior: str = "empirical"
    prior_strength: float = 1.0
    transduction: str | None = None
    label_precision: float = 3.0
    unlabelled: Any = -1
    unlabelled_weight: float = 0.1
    class_weight: Any = None
    calibrate: bool = True
    random_state: Any = None

    _models: ClassVar[tuple[str, ...]] = (*FUNCTIONS, *DENSITIES)
    _remedy: ClassVar[str] = (
        "Linear and kernel models need complete rows: fill the holes with a "
        "MixtureImputer in a pipeline, or use model='independent', which leaves missing "
        "cells out exactly."
    )
    _n_folds: ClassVar[int] = 3

    # Training -------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the distribution over models.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Training rows; a kernel matrix for ``model="precomputed"``. Linear machines
            take tables in blocks, with names of columns as the other arguments.
        y : array-like of shape (n,), or str
            Labels of any kind; see ``unlabelled`` for rows without one.
        sample_weight : array-like of shape (n,) or str, default=None
            A row of weight two counts like two rows.

        Returns
        -------
        self : MEDClassifier
        """
        self._check_options()
        check_labels_given(self, y)
        source, given = source_of(X), (y, sample_weight)
        if source is not None:
            refuse_unless_linear(self, X)
            y, sample_weight = column_of(X, y), column_of(X, sample_weight)
        classes, labels = encode_labels(y, self.unlabelled)
        sample_weight = class_weighted(self.class_weight, classes, labels, sample_weight)
        if source is None:
            features, weights, attributes = self._read_features(X, sample_weight)
        else:
            features, attributes = read_block_matrix(source, given, self._remedy)
            weights = filled_weights(sample_weight, features.shape[0])
        with closing_blocks(features):
            self._fit_features(features, labels, classes, weights, attributes)
        return self

    def _fit_features(
        self,
        features: Any,
        labels: IntArray,
        classes: np.ndarray,
        weights: FloatArray,
        attributes: dict[str, Any],
    ) -> None:
        """Fit the distribution to rows that have been read."""
        n_rows = len(weights)
        check_consistent_length(weights, labels)
        used = (weights > 0.0) & self._takes_part(labels)
        check_classes(labels[used], classes)
        rows = LabelledRows(features, labels, len(classes), weights)
        rows = kept_rows(rows, np.flatnonzero(used))
        train = self._procedure(rows, attributes)
        with printing(self.verbose):
            trained = train(rows)
            calibration = Calibration()
            if self.calibrate and not trained.interrupted and not self._is_precomputed:
                seed = check_random_state(self.random_state).randint(2**31 - 1)
                calibration = calibrated(train, rows_in_memory(rows), self._n_folds, seed)
        margin = trained.least
        if margin is None:
            margin = 1.0 if self.margin == "auto" else float(self.margin)
        found = {
            **attributes,
            "margin_": margin,
            "classes_": classes,
            **training_attributes(trained),
            **row_attributes(trained, rows, np.flatnonzero(used), n_rows),
            "temperature_": calibration.temperature,
            "uniform_share_": calibration.uniform_share,
        }
        if not self._is_precomputed:
            found |= machine_attributes(trained)
        if len(classes) == 2:
            has_columns = not self._is_precomputed
            found["bounds_"] = training_bounds(trained, rows, margin, has_columns)
        self._publish(found)
        warn_of(training_messages(trained, self.max_iter))

    def _takes_part(self, labels: IntArray) -> Any:
        """Return which rows training looks at."""
        if self.transduction is None or self._has_densities():
            return labels != UNLABELLED
        return np.ones(len(labels), dtype=bool)

    def _procedure(self, rows: LabelledRows, attributes: dict[str, Any]) -> Train:
        """Return how rows are trained on."""
        margin = None if self.margin == "auto" else float(self.margin)
        prior = _MARGIN_PRIORS[self.margin_prior](
            float(self.C), float(self.smoothness), 1.0 if margin is None else margin
        )
        if self._has_densities():
            options = self._options(np.zeros((1, 1)), prior)
            schema = attributes.get("schema_")
            conjugate = conjugate_for(self.model, rows.features, schema)
            return Densities(
                options, conjugate, self.prior, float(self.prior_strength), margin
            )
        if sparse.issparse(rows.features) and self.transduction == "gaussian":
            raise ValueError(
                "transduction='gaussian' needs a dense table: use X.toarray(), or "
                "transduction='mean_field'."
            )
        apart = self.multi_class == "one-vs-rest"
        if self.transduction is not None and rows.n_classes > 2 and not apart:
            raise ValueError(
                "transduction with more than two classes needs multi_class='one-vs-rest'."
            )
        return Functions(
            self._options(rows.features, prior, rows.weights),
            apart,
            self.transduction,
            float(self.label_precision) ** 2,
            float(self.unlabelled_weight),
        )

    # Checks ---------------------------------------------------------------------------

    def _check_options(self) -> None:
        super()._check_options()
        check_number("margin", self.margin, 1e-12, 1e12, or_word="auto")
        check_word("margin_prior", self.margin_prior, _MARGIN_PRIORS)
        if self.margin_prior == "gaussian":
            check_number("smoothness", self.smoothness, 1e-12, 1e12)
        check_word("multi_class", self.multi_class, ("joint", "one-vs-rest"))
        check_word("prior", self.prior, PRIORS)
        check_number("prior_strength", self.prior_strength, 1e-6, 1e6)
        check_number("label_precision", self.label_precision, 1e-6, 1e6)
        check_number("unlabelled_weight", self.unlabelled_weight, 1e-12, 1e6)
        check_flag("calibrate", self.calibrate)
        check_seed(self.random_state)
        check_mark(self.unlabelled)
        if self.transduction is not None:
            check_word("transduction", self.transduction, TRANSDUCTIONS)
        if self._has_densities():
            check_density_options(self)

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        n_outputs = 1 if len(self.classes_) == 2 and not self._has_densities() else None
        wanted = n_outputs or len(self.classes_)
        machine = self.machine_
        found = len(
            machine.parts if isinstance(machine, StackedMachine) else machine.bias
        )
        require(found == wanted, "machine_ has other outputs than classes_")
        has_schema = isinstance(getattr(self, "schema_", None), Schema)
        require(has_schema == self._has_densities(TABLES), "schema_ is wrong")
