"""The mixture network classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from hybridmix._checks import check_word
from hybridmix._registered import registered
from hybridmix.data import Schema
from hybridmix.estimators.chosen import USUAL_TRADEOFF, is_auto, search_attributes
from hybridmix.estimators.fitted_network import FittedNetwork, layer_attributes
from hybridmix.estimators.labelled import (
    LabelledRows,
    check_label_options,
    check_labels_given,
    class_attributes,
    components_by_class,
    reading_labelled,
)
from hybridmix.estimators.options import MixtureEstimator, warn_of
from hybridmix.estimators.trained import trained
from hybridmix.models.mixture import Mixture
from hybridmix.models.network import Network
from hybridmix.training.classes import Components
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.families import Structure
from hybridmix.training.network_options import (
    NetworkOptions,
    checked_features,
    usual_covariances,
    usual_numbers,
    usual_training,
)
from hybridmix.training.plan import Automatic
from hybridmix.training.record import Fitted
from hybridmix.training.run import ClassifierOptions

# The likelihood alone has no output layer.
_OBJECTIVES = ("hybrid", "conditional", "margin")


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class MixtureNetworkClassifier(FittedNetwork, MixtureEstimator):
    r"""Classify rows with an output layer on the components of a mixture.

    .. math:: \log p(x, c) = \log p(x) + \log \operatorname{softmax}_c
              \big( b + W g(x) \big)

    where :math:`p(x)` is a mixture and :math:`g(x)` are features of its components, such
    as their posteriors, next to the row itself. It is a joint density: rows without a
    label have :math:`\log p(x)` and are learned from, and all objectives of
    `HybridMixtureClassifier` apply. Compared with a mixture for each class, the output
    layer can weigh components and columns as classification needs it.

    Rows with holes are trained on and classified as they are. Densities and posteriors of
    components are then exact marginals. Class probabilities are those of the expected
    features, and not the exact mean over what is missing, which has no closed form.

    Parameters
    ----------
    training : {"auto", "stages", "joint", "alternating"}, default="auto"
        "stages" fits the mixtures by EM, and then solves the output layer to its
        optimum. "joint" goes on by L-BFGS, which moves mixtures and output layer
        together for the same objective. "alternating" is the algorithm of Caetano: an EM
        step of a mixture for each class, then the output layer, in turn; it has no
        objective that every step improves, and no guarantee that it converges. "auto"
        tries the first two in a search; without one it is "stages" for up to 1,000
        labelled rows, and otherwise "joint".
    mixtures : {"auto", "classes", "pool", "linked"}, default="auto"
        "classes" fits components to the rows of each class and pools them. "pool" fits
        one mixture to all rows, whatever their labels. "linked" fits a mixture for each
        class to all rows, and each class looks at the components of its own mixture
        only. "auto" is "linked" if ``training="alternating"``, and otherwise "classes".
    features : str or sequence of str, default=("posterior", "linear")
        What the output layer sees: one or several of "posterior", "log_joint", "linear"
        and "experts"; see `MixtureEmbedding`. What fills the holes of "linear" and
        "experts" is the mixture before joint training.
    embedding_temperature : float or "auto", default="auto"
        Temperature of the posteriors, as in `MixtureEmbedding`.
    n_components : int, iterable of int, dict or "auto", default="auto"
        Components of each class, as in `HybridMixtureClassifier`; of all rows if
        ``mixtures="pool"``. "auto" is one component for 20 labelled rows of the class and
        two more for each column, at most 30, where there is no search; a search tries
        numbers as in `HybridMixtureClassifier`.
    covariance_type : {"auto", "full", "tied", "diag", "spherical", "subspace"}, \
            default="auto"
        As in `MixtureDensity`. "auto" is chosen by held-out rows, together with
        ``n_components``, if ``mixtures="classes"`` and nothing is annihilated; otherwise,
        and with ``effort="fast"``, it is "full", or "subspace" for more than 60 columns.
    objective : {"hybrid", "conditional", "margin"}, default="hybrid"
        What training maximises after EM: the likelihood of rows and labels plus
        ``tradeoff`` times a discriminative term, or this term alone.
    tradeoff : float, default=10.0
        Weight of the discriminative term in the hybrid objective.
    margin, loss
        The discriminative term, as in `HybridMixtureClassifier`.
    n_steps : int, default=50
        Largest number of iterations of "joint" and "alternating".
    l1 : float, default=0.0
        Absolute penalty of the weights of the output layer; weights become exactly zero.
    l2, l2_linear : float, default=0.1, 1.0
        Squared penalties of the weights of posteriors and log joint densities, and of
        those of linear features and experts. Penalties count like rows.
    link : float, default=0.0
        For "alternating": rows that a prior adds to the components of a class, in
        proportion to the absolute values of their weights.
    annihilate : {"bic", "weights"} or None, default=None
        Remove components. "bic" removes the lightest one and trains again, as long as
        the Bayesian information criterion of rows and labels falls. "weights", for
        "alternating", removes those whose weight has become zero.
    calibrate : bool or "auto", default="auto"
        As in `HybridMixtureClassifier`.
    class_weight, unlabelled, unlabelled_weight, cv
        As in `HybridMixtureClassifier`.
    covariance_prior, n_factors, noise, variance_floor, smoothing, \
    categorical_features, column_shapes
        As in `HybridMixtureClassifier`.
    init : {"kmeans", "k-means++"}, default="kmeans"
        Where EM begins.
    n_init, max_iter, tol, effort, dtype, n_jobs, random_state, verbose
        As in `HybridMixtureClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    network_ : Network
        Mixture, embedding and output layer, in scaled coordinates.
    weights_, bias_ : ndarray of shape (n_classes, n_features_out), (n_classes,)
        Of the output layer.
    embedding_temperature_ : float
        Temperature of the posteriors. This and the two above only without a search.
    leaderboard_, n_searched_, members_, committee_
        What a search has tried and chosen, as in `HybridMixtureClassifier`; members are
        networks.
    class_prior_ : ndarray of shape (n_classes,)
        Shares of the classes among the labelled rows.
    n_components_ : ndarray
        Number of components of each class, or of the pool.
    component_classes_ : ndarray of shape (n_all_components,)
        Position in ``classes_`` of the class whose mixture a component belongs to; 0 for
        a pool.
    mixing_, means_, covariances_, loading_, noise_variances_, \
    category_probabilities_, categories_, spike_probabilities_
        As in `MixtureDensity`, for all components.
    bic_, unlabelled_weight_, history_, trace_, converged_, interrupted_, n_iter_, \
    temperature_, uniform_share_, n_features_in_, feature_names_in_
        As in `HybridMixtureClassifier`.

    See Also
    --------
    HybridMixtureClassifier : A mixture for each class, with exact class probabilities.
    MixtureEmbedding : The features alone, for any other model.

    References
    ----------
    J. P. V. Caetano (2018), Hybrid generative-discriminative learning: the structure, the
    link and the alternating algorithm. The joint objective is that of
    `HybridMixtureClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import MixtureNetworkClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X[::3, 2] = np.nan          # holes
    >>> y[::2] = -1                 # rows without a label
    >>> model = MixtureNetworkClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """

    training: str = field(default="auto", kw_only=False)
    mixtures: str = "auto"
    features: Any = ("posterior", "linear")
    embedding_temperature: float | str = "auto"
    n_components: Components | Mapping[Any, Components] | str = "auto"
    objective: str = "hybrid"
    tradeoff: float = USUAL_TRADEOFF
    margin: float | str = "auto"
    loss: Any = "auto"
    n_steps: int = 50
    l1: float = 0.0
    l2: float = 0.1
    l2_linear: float = 1.0
    link: float = 0.0
    annihilate: str | None = None
    calibrate: bool | str = "auto"
    class_weight: Any = None
    unlabelled: Any = -1
    unlabelled_weight: float | str = "auto"
    cv: Any = None

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Fit mixtures, and the output layer on their components.

        Parameters
        ----------
        X : array-like, data frame or scanned table of shape (n, d)
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

        Returns
        -------
        self : MixtureNetworkClassifier
        """
        self._check_options()
        check_labels_given(self, y)
        with reading_labelled(self, X, y, sample_weight) as rows:
            fitted = trained(
                self, rows, self._options_for(rows), self._automatic(), groups, self.init
            )
        learned = self._learned_attributes(fitted, rows.classes)
        found = search_attributes(self, fitted, rows)
        weights = rows.dataset.class_weights(len(rows.classes))
        found["class_prior_"] = weights / weights.sum()
        self._publish({**rows.attributes, **learned, **found})
        warn_of(fitted.messages)
        return self

    def _learned_attributes(self, fitted: Fitted, classes: np.ndarray) -> dict[str, Any]:
        """Return what training has learned, as it is published."""
        model: Any = fitted.model
        layers: dict[str, Any] = {}
        if isinstance(model, Network):
            layers = {"network_": model, **layer_attributes(model)}
            model = model.density
        return {
            **layers,
            **self._derived_attributes(model, fitted.schema),
            **class_attributes(fitted, model, classes),
        }

    def _derived_attributes(self, model: Mixture, schema: Schema) -> dict[str, Any]:
        return {
            **super()._derived_attributes(model, schema),
            "n_components_": np.diff(model.offsets),
        }

    # Options --------------------------------------------------------------------------

    def _automatic(self) -> Automatic:
        """Return which options are chosen by held-out rows."""
        is_usual = self._mixtures(self.training) == "classes" and not self.annihilate
        return Automatic(
            is_usual and is_auto(self.covariance_type),
            is_usual and is_auto(self.n_components),
            tradeoff=False,
        )

    def _mixtures(self, training: str) -> str:
        if not is_auto(self.mixtures):
            return self.mixtures
        return "linked" if training == "alternating" else "classes"

    def _check_options(self) -> None:
        self._check_init()
        if not isinstance(self.init, str):
            raise ValueError("init must be 'kmeans' or 'k-means++'.")
        check_label_options(self)
        check_word("objective", self.objective, _OBJECTIVES)
        self._options([], "full", "stages")

    def _options_for(self, rows: LabelledRows) -> ClassifierOptions:
        """Return the options of training on these rows."""
        training = self.training
        if is_auto(training):
            training = usual_training(rows.dataset.labelled().n_rows)
        return self._options(
            self._components_of(rows), usual_covariances(rows.schema), training
        )

    def _options(
        self, n_components: list[list[int]], covariance_type: str, training: str
    ) -> ClassifierOptions:
        given = self.covariance_type
        if not is_auto(given):
            covariance_type = given
        if not is_auto(self.training):
            training = self.training
        calibrate: Any = self.calibrate
        return ClassifierOptions(
            self._structure_of(covariance_type),
            self._estimation(),
            self._discrimination(),
            n_components,
            "empirical",
            self.unlabelled_weight,
            bool(self._automatic()) if is_auto(calibrate) else calibrate,
            NetworkOptions(
                self._mixtures(training),
                checked_features(self.features),
                self.embedding_temperature,
                training,
                self.l1,
                self.l2,
                self.l2_linear,
                self.link,
                self.annihilate,
                chooses_training=is_auto(self.training),
            ),
        )

    def _components_of(self, rows: LabelledRows) -> list[list[int]]:
        """Return the numbers of components to try for each class."""
        schema, classes = rows.schema, rows.classes
        if not is_auto(self.n_components):
            return components_by_class(self.n_components, classes)
        numbers = usual_numbers(rows.dataset, schema, len(classes))
        return [[sum(map(max, numbers))]] if self.mixtures == "pool" else numbers

    def _structure(self) -> Structure:
        kind = "full" if is_auto(self.covariance_type) else self.covariance_type
        return self._structure_of(kind)

    def _scaling(self) -> str:
        return "comparable" if is_auto(self.covariance_type) else super()._scaling()

    def _discrimination(self) -> Discrimination:
        return Discrimination(
            self.objective,
            self.tradeoff,
            self.margin,
            self.loss,
            "lbfgs",
            self.n_steps,
            10,
            None,
            None,
            False,
        )
