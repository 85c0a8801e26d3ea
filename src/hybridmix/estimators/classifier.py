"""The class-conditional mixture classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from hybridmix._registered import registered
from hybridmix.data import Schema
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.chosen import (
    USUAL_TRADEOFF,
    automatic_options,
    is_auto,
    search_attributes,
)
from hybridmix.estimators.components import committee_of
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.labelled import (
    LabelledRows,
    check_label_options,
    check_labels_given,
    class_attributes,
    components_by_class,
    read_validation,
    reading_labelled,
)
from hybridmix.estimators.options import warn_of
from hybridmix.estimators.streaming import StreamEstimator
from hybridmix.estimators.streaming_labels import can_stream, learned_labels
from hybridmix.estimators.trained import trained
from hybridmix.models.mixture import Mixture
from hybridmix.objectives import Objective
from hybridmix.solvers import Solver
from hybridmix.training.classes import Components
from hybridmix.training.covariances import covariance_type_of
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.families import Structure
from hybridmix.training.record import Fitted
from hybridmix.training.run import ClassifierOptions


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class HybridMixtureClassifier(MixtureClassifier, StreamEstimator):
    r"""Classify rows with mixture densities for each class.

    .. math:: p_m(x, c) = \pi_c \sum_{k=1}^{K_c} \alpha_{ck}\, p(x \mid c, k), \qquad
              p(c \mid x) = \sum_m s_m\, \frac{p_m(x, c)}{\sum_{c'} p_m(x, c')}

    By default, candidates (covariances, numbers of components, tradeoffs, weights of
    unlabelled rows) compete on held-out rows, and a committee of at most five of them
    votes with shares :math:`s_m`. Where unlabelled rows are many, a larger mixture may
    join it that has learned from the classes it is sure of. Options that are given are
    not searched; if none is left to choose, or with ``effort="fast"``, there is a single
    mixture :math:`p(x, c)`.

    Rows with missing features are trained on and classified by the exact marginal of what
    they have; rows without a label are learned from by EM over their classes.

    Parameters
    ----------
    objective : {"hybrid", "likelihood", "conditional", "margin"}, default="hybrid"
        What training maximises: the likelihood of rows and labels plus ``tradeoff`` times
        a discriminative term; the likelihood alone, by EM; the likelihood of the labels
        given the rows; or a margin term alone. All but the likelihood go on from the
        result of EM.
    tradeoff : float or "auto", default="auto"
        Weight of the discriminative term in the hybrid objective. 0 is the likelihood;
        the larger, the more the model serves classification alone. "auto" tries 10 and
        100; it is 10 with ``effort="fast"`` and if ``init`` is a fitted model.
    margin : float or "auto", default="auto"
        Log margin between the joint densities of the label and of its best rival up to
        which rows count in the discriminative term, for all losses but "log". "auto" is
        0.4 for every column.
    loss : {"auto", "log", "hinge", "ramp", "scaled"} or Objective, default="auto"
        The discriminative term: the log probability of the label; minus the soft hinge
        loss of the margin; the same, but bounded for rows far on the wrong side, which
        makes it robust against wrong labels; or the bounded function of Pernkopf and
        Wohlmayr. "auto" is "log" for the hybrid objective and "hinge" for the margin
        alone. An object of `hybridmix.objectives` has its own margin.
    solver : {"lbfgs", "baum-welch"} or solver, default="lbfgs"
        How the discriminative objectives are maximised: L-BFGS in whitened coordinates,
        or extended Baum-Welch steps that never lower the objective. An object of
        `hybridmix.solvers` has its own number of iterations and, for L-BFGS, curvature.
    n_steps : int, default=50
        Largest number of iterations of this solver; "auto" tradeoffs share them.
    validation_fraction : float or None, default=None
        Share of the labelled rows to hold out. With fixed options, the iterate with the
        fewest errors on them is kept; in a search, they are what candidates compete on.
        None trains on all rows, for all steps.
    patience : int, default=10
        With fixed options and validation rows: stop after this many iterations without
        fewer errors.
    generalisation_loss : float or None, default=None
        Likewise: stop when the error has risen by this share of the lowest error so far
        (0.1 for ten per cent).
    calibrate : bool or "auto", default="auto"
        Correct the class probabilities by a temperature and a share of equal
        probabilities, fitted to held-out rows: in a search, those of the search, for
        every member and for the committee. With fixed options it takes five more fits,
        unless there are validation rows, and "auto" does not do it.
    n_components : int, iterable of int, dict or "auto", default="auto"
        Components of each class: a number, numbers from which the Bayesian information
        criterion chooses for each class, or a dictionary from labels to either. "auto"
        tries 1, 4, 16 and 64, as far as the classes have rows for them.
    covariance_type : {"auto", "full", "tied", "diag", "spherical", "subspace"}, \
            default="auto"
        As in `MixtureDensity`; "tied" and "subspace" are common to all classes. "auto"
        tries "diag", "tied" and "full", and "subspace" instead of "full" for many
        columns.
    refine_subspace : bool, default=False
        Let the discriminative objective also move the subspace and its noise, not only
        the components. Only for L-BFGS.
    covariance_prior : float or "auto", default="auto"
        Strength of the prior of the covariances, in rows; 0 for maximum likelihood. It
        draws "full" and "subspace" covariances to the one within all classes, and the
        others to its diagonal. "auto" is the number of real columns for "full" and
        "tied", that of factors for "subspace", and 1 for the others.
    class_prior : {"empirical", "uniform"} or array-like of shape (n_classes,), \
            default="empirical"
        Class probabilities: estimated, equal, or given in the order of the sorted labels.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by which sample weights of labelled rows are multiplied;
        "balanced" gives all classes the same total weight.
    unlabelled : object, default=-1
        The mark of unlabelled rows in ``y``, besides None and NaN; None for no other
        mark. Labels that are only -1 and 1 are taken for two classes, with a warning.
    unlabelled_weight : float or "auto", default="auto"
        What an unlabelled row counts, compared with a labelled one. In a search, "auto"
        tries 0 and 0.1. With fixed options it is the best on held-out labels, by three
        folds of EM, among: a weight with which all unlabelled rows together count at
        most as much as all labelled ones; a tenth of it; and 0.
    effort : {"fast", "balanced", "thorough"} or float, default="balanced"
        How much to spend on what is "auto". "fast" does not search: it fits one
        structure that suits the number of columns, with one component per class, and
        calibrates it. "thorough" tries more numbers of components. A number of seconds
        ends a thorough search after about this time: the result then depends on the
        machine. With more than 200 classes there is no search: one structure is fitted,
        by EM unless a tradeoff is given, and not calibrated.
    cv : int, splitter, iterable of splits or None, default=None
        Folds of the labelled rows that candidates compete on. None is three folds for up
        to 1,000 labelled rows, and otherwise one split; both train on at most 6,000
        rows.
    init : {"kmeans", "k-means++"}, HybridMixtureClassifier or \
            HybridMixtureClassifierCV, default="kmeans"
        Where EM begins: k-means within each class, k-means++ centres, or a fitted model,
        such as one of ``members_``; not a committee. The discriminative objectives go on
        from a fitted model without EM or search. Its numbers of components and its
        subspace are kept.
    n_init, max_iter, tol, n_factors, noise, variance_floor, smoothing, \
    categorical_features, column_shapes, forgetting, dtype, n_jobs, random_state, verbose
        As in `MixtureDensity`; starts are those of each class. L-BFGS holds to the
        floor for each column given those before it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    leaderboard_ : list of dict
        What the search has tried, best first: "candidate", "score" (mean held-out log
        probability of the label), its "standard_error", "seconds", and "share" in the
        committee. Absent without a search.
    n_searched_ : int
        Rows that the search has seen, a sample of large tables; only after a search.
    members_ : list of HybridMixtureClassifier
        The fitted members, by descending share, with explicit options. Only for a
        committee.
    committee_ : Committee
        Their models, shares and calibrations. Only for a committee.
    class_prior_, mixing_ : ndarray of shape (n_classes,), (n_all_components,)
        Class probabilities, and proportions of the components within their class. These
        and all attributes below, up to ``trace_``, are those of ``model_``: for a
        committee, this is the EM fit of the best held-out density, which gives
        densities, fills, typicality and sampled rows, while the committee gives classes.
    n_components_ : ndarray of shape (n_classes,)
        Number of components of each class.
    component_classes_ : ndarray of shape (n_all_components,)
        Position in ``classes_`` of the class of each component.
    means_, covariances_, loading_, noise_variances_, category_probabilities_, \
    categories_, spike_probabilities_
        As in `MixtureDensity`, for all components of all classes.
    bic_ : list of dict
        For each class: the criterion for each number of components that was tried, on
        the first rows that a search was trained on; empty if ``init`` is a model.
    unlabelled_weight_ : float
        What an unlabelled row counted.
    n_iter_ : int
        Iterations of the last solver; with EM class by class, the most of any class.
    history_ : dict of str to ndarray
        What changed along these iterations, from the start: "value"; the means over the
        rows of "likelihood" and "margin" or "conditional", as far as they are maximised;
        "training_error" and "validation_error".
    trace_ : ndarray
        The "value": mean objective of the rows, with the log density of the priors;
        empty when EM went class by class.
    converged_ : bool
        Whether the last solver (of every member, for a committee) met its tolerance, or
        was stopped by validation rows, before its largest number of iterations.
    interrupted_ : bool
        Whether the user ended training (Ctrl-C) before it was done.
    temperature_, uniform_share_ : float
        Calibration of the class probabilities, of the committee's if there is one: what
        their logarithms are divided by, and the share that is the same for all classes.
        1 and 0 unless calibrated.
    n_features_in_, feature_names_in_, stream_
        As in `MixtureDensity`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X[::3, 2] = np.nan          # holes
    >>> y[::2] = -1                 # rows without a label
    >>> model = HybridMixtureClassifier().fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """

    objective: str = field(default="hybrid", kw_only=False)
    tradeoff: float | str = "auto"
    margin: float | str = "auto"
    loss: str | Objective = "auto"
    solver: str | Solver = "lbfgs"
    n_steps: int = 50
    validation_fraction: float | None = None
    patience: int = 10
    generalisation_loss: float | None = None
    calibrate: bool | str = "auto"
    n_components: Components | Mapping[Any, Components] | str = "auto"
    covariance_type: str = "auto"
    refine_subspace: bool = False
    covariance_prior: float | str = "auto"
    class_prior: Any = "empirical"
    class_weight: Any = None
    unlabelled: Any = -1
    unlabelled_weight: float | str = "auto"
    cv: Any = None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit a committee of mixtures, or one mixture to each class if options are given.

        Parameters
        ----------
        X : array-like, data frame, scanned table or path, of shape (n, d)
            Training table; NaN, None and pandas.NA are missing values. A table that does
            not fit into memory is read by `scan`.
        y : array-like of shape (n,), or str
            Labels of any kind; see ``unlabelled`` for rows without one. Of a scanned
            table, the name of their column.
        sample_weight : array-like of shape (n,), or str, default=None
            A row of weight two counts like two rows. Of a scanned table, the name of the
            column.
        groups : array-like of shape (n,), default=None
            Groups of rows that folds keep together, those of ``cv`` if it is a splitter.
        X_val, y_val, sample_weight_val : like X, y and sample_weight, default=None
            Validation rows, their labels and weights; of a scanned table, up to 50,000
            rows. In a search, they decide the choice, instead of folds, and all training
            rows are trained on. With fixed options, the iterate with the fewest errors
            on them is kept.

        Returns
        -------
        self : HybridMixtureClassifier
        """
        self._check_options()
        check_labels_given(self, y)
        with reading_labelled(self, X, y, sample_weight) as rows:
            validation = read_validation(self, rows, X_val, y_val, sample_weight_val)
            fitted = trained(
                self,
                rows,
                self._options_for(rows.classes),
                automatic_options(self),
                groups,
                self._start(rows),
                validation,
            )
        self._publish(
            {
                **rows.attributes,
                **self._learned_attributes(fitted, rows.classes),
                **search_attributes(self, fitted, rows),
            }
        )
        warn_of(fitted.messages)
        return self

    @available_if(can_stream)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        schema: Schema | None = None,
    ) -> Self:
        """Learn from a batch of rows by online EM, and keep none of them.

        Only with ``objective="likelihood"``. The first batch is fitted like a table; what
        is "auto" is not searched: covariances are full, with one component per class, and
        probabilities are not calibrated. It says what columns are like for good, unless
        a schema does: kinds, categories, shapes and scales. A class may have its first
        rows in any batch, and has next to no probability before. A fitted model goes on
        learning; of a committee, the density ``model_`` does, alone.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            The batch; NaN, None and pandas.NA are missing values.
        y : array-like of shape (n,)
            Labels; see ``unlabelled`` for rows without one.
        classes : array-like of shape (n_classes,), default=None
            All labels that any batch may have; the first call needs them.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.
        schema : Schema, default=None
            What columns are like, such as the ``schema_`` of another model; for the first
            call only.

        Returns
        -------
        self : HybridMixtureClassifier
        """
        self._publish(learned_labels(self, X, y, classes, sample_weight, schema))
        return self

    def _start(self, rows: LabelledRows) -> str | Mixture:
        if isinstance(self.init, FittedMixture):
            return self._translated(self.init, rows.schema, rows.classes)
        return self.init

    def check_consistent(self) -> None:
        """Raise ValueError unless the options are those of a model of these classes."""
        super().check_consistent()
        self._options_for(self.classes_)

    def _derived_attributes(self, model: Mixture, schema: Schema) -> dict[str, Any]:
        return {
            **super()._derived_attributes(model, schema),
            "class_prior_": np.exp(model.log_class_prior),
            "n_components_": np.diff(model.offsets),
        }

    def _learned_attributes(self, fitted: Fitted, classes: np.ndarray) -> dict[str, Any]:
        """Return what training has learned, as it is published."""
        return {
            **self._derived_attributes(fitted.model, fitted.schema),
            **class_attributes(fitted, fitted.model, classes),
        }

    # Options --------------------------------------------------------------------------

    def _structure(self) -> Structure:
        if not is_auto(self.covariance_type):
            return super()._structure()
        known = None
        if isinstance(self.init, FittedMixture):
            known = covariance_type_of(self.init.model_.family)
        return self._structure_of(known or "full")

    def _scaling(self) -> str:
        # Candidates share one scaling. Subspaces may be among them, and the other types
        # hardly depend on it.
        return "comparable" if is_auto(self.covariance_type) else super()._scaling()

    def _discrimination(self) -> Discrimination:
        return Discrimination(
            self.objective,
            USUAL_TRADEOFF if is_auto(self.tradeoff) else cast(float, self.tradeoff),
            self.margin,
            self.loss,
            self.solver,
            self.n_steps,
            self.patience,
            self.generalisation_loss,
            self.validation_fraction,
            self.refine_subspace,
        )

    def _check_options(self) -> None:
        self._check_init()
        if not isinstance(self.init, str | MixtureClassifier):
            raise ValueError(
                "init must be a method, a fitted HybridMixtureClassifier or a fitted "
                "search; centres do not say which class they belong to."
            )
        if committee_of(self.init) is not None:
            raise ValueError(
                "init is a committee of several models: give one of its members_, as in "
                "init=model.members_[0]."
            )
        check_label_options(self)
        given = self.class_prior
        self._options([], given if isinstance(given, str) else "empirical")

    def _options_for(self, classes: np.ndarray) -> ClassifierOptions:
        """Return the options of the training of these classes."""
        return self._options(self._components_of(classes), _class_prior(self.class_prior))

    def _options(self, n_components: list[list[int]], prior: Any) -> ClassifierOptions:
        given: Any = self.calibrate
        return ClassifierOptions(
            self._structure(),
            self._estimation(),
            self._discrimination(),
            n_components,
            prior,
            self.unlabelled_weight,
            bool(automatic_options(self)) if is_auto(given) else given,
        )

    def _components_of(self, classes: np.ndarray) -> list[list[int]]:
        """Return the numbers of components to try for each class."""
        wanted = 1 if is_auto(self.n_components) else self.n_components
        return components_by_class(wanted, classes)


def _class_prior(given: Any) -> Any:
    return given if isinstance(given, str) else np.asarray(given, dtype=np.float64)
