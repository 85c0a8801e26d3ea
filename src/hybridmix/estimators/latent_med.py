"""Classification by latent maximum entropy discrimination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from hybridmix._checks import check_flag, check_number, check_seed
from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray
from hybridmix.data.weights import filled_weights
from hybridmix.estimators.blocks import refuse_blocks
from hybridmix.estimators.labelled import check_labels_given
from hybridmix.estimators.machines import (
    ROW_MULTIPLIERS,
    FunctionEstimator,
    training_attributes,
)
from hybridmix.estimators.med_scores import ScoredClassifier, check_classes
from hybridmix.estimators.options import warn_of
from hybridmix.estimators.switches import read_all_labels
from hybridmix.med.machines import LinearMachine, MixtureMachine
from hybridmix.med.margins import ExponentialMargin
from hybridmix.models.calibration import Calibration
from hybridmix.progress import printing
from hybridmix.training.discrimination import LabelledRows, calibrated
from hybridmix.training.latent import LatentOptions, TrainedMixture, train_latent
from hybridmix.training.machines import MachineOptions
from hybridmix.training.record import INTERRUPTED


@registered
@dataclass(eq=False, repr=False)
class LatentMEDClassifier(ScoredClassifier, FunctionEstimator):
    r"""Classify rows with mixtures of Gaussians that are trained with margins.

    Each class is a mixture of Gaussians with unit covariance in the space of a kernel,
    and a row scores :math:`S_c(x) = \log \sum_{k \in c} e^{\mu_k^\top \phi(x) + a_k}` in
    class :math:`c`. A distribution over the means :math:`\mu_k` stays as close to the
    prior :math:`N(0, I)` as the margins :math:`S_y - S_c` of the training rows allow.
    Bounds of these margins, which posteriors :math:`q_n` of the components make tight,
    turn that into a sequence of quadratic programs,

    .. math:: \min_{\mu, a}\; \tfrac12 \sum_k \lVert \mu_k \rVert^2
              + C \sum_{n,\, j} \max\Big( 0,\; \gamma - H(q_n) + \log K_{c(j)}
              - \sum_k q_n(k) s_k(x_n) + s_j(x_n) \Big),

    with one term for each component :math:`j` of a rival class, and :math:`K_{c(j)}` the
    number of components of that class. With one component per class, this is a support
    vector machine.

    Parameters
    ----------
    model : str or callable, default="linear"
        The space: "linear" for the columns themselves; or a kernel, "rbf", "poly",
        "precomputed" (X is then the kernel matrix) or a function of two arrays of rows
        that returns their kernel matrix.
    n_components : int or dict of labels to int, default=2
        Components per class, for all classes or for each.
    C : float, default=1.0
        Largest multiplier of a row and a rival component: the larger, the less a row may
        lack a margin.
    margin : float, default=1.0
        :math:`\gamma`, the margin beyond which rows do not matter. Scores are log
        densities, so that it is not only a matter of scale: with a large one, rows belong
        to one component almost surely.
    smoothness : float, default=0.0
        How smooth the loss of a lacking margin is; 0 is the hinge of the quadratic
        program, see `MEDClassifier`.
    gamma : float or "scale", default="scale"
        Of "rbf" and "poly"; "scale" is one over the number of columns times the variance
        of all cells.
    degree, coef0 : int and float, default=3 and 1.0
        Of "poly".
    n_init : int, default=10
        Number of random starts; the one of the lowest objective is kept.
    annealing : float, default=1.0
        The first temperature that outputs are divided by before posteriors are made of
        them, at least 1, which is no annealing.
    cooling : float, default=0.8
        The factor from one temperature to the next, until it is 1.
    calibrate : bool, default=True
        Fit the scale of the probabilities to rows that are held out in three folds, which
        takes three more fits. It does not change predictions, and is left out for
        ``model="precomputed"``.
    tol : float, default=1e-4
        A start has converged when a quadratic program lowers the objective relatively by
        no more than this.
    max_iter : int, default=100
        Most quadratic programs of a start.
    random_state : int, RandomState or None, default=None
        For the starts and the folds.
    verbose : int, default=0
        Print progress.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels.
    n_components_ : ndarray of shape (C,)
        Components of each class.
    means_ : ndarray of shape (J, p)
        For ``model="linear"``: expected means of all components, by classes.
    intercept_ : ndarray of shape (J,)
        Their constants :math:`a_k`, up to one that is common to all.
    multipliers_ : ndarray of shape (n, J)
        Multipliers of the training rows by rival components, 0 for the label's own.
    support_ : ndarray of int
        Rows that have a multiplier.
    objective_ : float
        What the starts compete by: half the squared lengths of the means plus the losses,
        with posteriors that make the bounds tight.
    start_objectives_ : ndarray of shape (n_init,)
        The same for every start.
    history_ : dict of str to ndarray
        "bound" and "objective", values of the quadratic programs of the best start and
        the objectives of their solutions. Without annealing,
        ``bound[0] >= objective[0] >= bound[1] >= ...``, up to ``tol``.
    temperature_, uniform_share_ : float
        Of the calibration: what scores are divided by, and the share of the uniform
        distribution.
    machine_ : MixtureMachine
        What predicts.
    dual_value_, dual_gap_ : float
        Dual of the last quadratic program, and how far it may be from its maximum.
    n_iter_ : int
        Quadratic programs of the best start.
    converged_, interrupted_ : bool
        Whether the best start met the tolerance; whether the user stopped training.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MEDClassifier : One function per class: no local optima.
    HybridMixtureClassifier : Mixtures with densities, for tables with holes.

    References
    ----------
    Jebara, T. (2004). Machine learning: discriminative and generative. Kluwer.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import LatentMEDClassifier
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(200, 2))
    >>> y = np.floor(X[:, 1]) % 2  # four stripes
    >>> LatentMEDClassifier(C=10.0, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    _: KW_ONLY
    n_components: int | Mapping[Any, int] = 2
    margin: float = 1.0
    smoothness: float = 0.0
    n_init: int = 10
    annealing: float = 1.0
    cooling: float = 0.8
    calibrate: bool = True
    max_iter: int = 100
    random_state: Any = None

    _remedy: ClassVar[str] = (
        "LatentMEDClassifier needs complete rows: use HybridMixtureClassifier, which "
        "marginalises missing cells exactly, or fill the holes with a MixtureImputer in "
        "a pipeline."
    )
    _n_folds: ClassVar[int] = 3

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the mixtures.

        Parameters
        ----------
        X : array-like or data frame of shape (n, p)
            Training rows; a kernel matrix for ``model="precomputed"``.
        y : array-like of shape (n,)
            Labels of any kind.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.

        Returns
        -------
        self : LatentMEDClassifier
        """
        self._check_options()
        refuse_blocks(self, X, ROW_MULTIPLIERS)
        check_labels_given(self, y)
        matrix, attributes = self._read_training(X)
        table: FloatArray = np.asarray(matrix)
        classes, labels = read_all_labels(y, len(table))
        weights = filled_weights(sample_weight, len(table))
        used = np.flatnonzero(weights > 0.0)
        check_classes(labels[used], classes)
        sizes = self._sizes(classes)
        rows = LabelledRows(table, labels, len(classes), weights)[used]
        if self._is_precomputed:
            rows = replace(rows, features=rows.features[:, used])
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        options = self._latent_options(rows, sizes, seed)
        with printing(self.verbose):
            found = train_latent(rows, options)
            calibration = Calibration()
            if self.calibrate and not (found.trained.interrupted or self._is_precomputed):
                calibration = calibrated(
                    lambda part: train_latent(part, options).trained,
                    rows,
                    self._n_folds,
                    seed,
                )
        multipliers = np.zeros((len(table), sum(sizes)))
        multipliers[used] = found.multipliers
        published = {
            **attributes,
            "classes_": classes,
            "n_components_": np.array(sizes),
            **training_attributes(found.trained),
            "multipliers_": multipliers,
            "support_": np.flatnonzero(multipliers.any(axis=1)),
            "objective_": float(found.objectives[-1]),
            "start_objectives_": found.starts,
            "history_": {"bound": found.bounds, "objective": found.objectives},
            "temperature_": calibration.temperature,
            "uniform_share_": calibration.uniform_share,
        }
        machine: Any = found.trained.machine
        if self._is_precomputed:
            machine = _over_all_rows(machine, used, len(table))
            published["machine_"] = machine
        elif isinstance(machine.components, LinearMachine):
            published["means_"] = machine.components.coef
        published["intercept_"] = machine.components.bias
        self._publish(published)
        warn_of(_messages(found, self.max_iter))
        return self

    def _sizes(self, classes: np.ndarray) -> tuple[int, ...]:
        """Return the numbers of components of the classes."""
        wanted = self.n_components
        if not isinstance(wanted, Mapping):
            return (int(wanted),) * len(classes)
        missing = [label for label in classes.tolist() if label not in wanted]
        if missing:
            raise ValueError(f"n_components has no entry for the class {missing[0]!r}.")
        return tuple(int(wanted[label]) for label in classes.tolist())

    def _latent_options(
        self, rows: LabelledRows, sizes: tuple[int, ...], seed: int
    ) -> LatentOptions:
        prior = ExponentialMargin(
            float(self.C), float(self.smoothness), float(self.margin)
        )
        machine = MachineOptions(
            prior,
            np.inf,
            kernels=self._own_kernels(self._gamma(rows.features, rows.weights)),
            precomputed=self._is_precomputed,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )
        return LatentOptions(
            machine,
            sizes,
            int(self.n_init),
            float(self.annealing),
            float(self.cooling),
            seed,
        )

    def _check_options(self) -> None:
        super()._check_options()
        wanted = self.n_components
        for one in wanted.values() if isinstance(wanted, Mapping) else [wanted]:
            check_number("n_components", one, 1, 1000, whole=True)
        check_number("margin", self.margin, 1e-12, 1e12)
        check_number("n_init", self.n_init, 1, whole=True)
        check_number("annealing", self.annealing, 1.0, 1e12)
        check_number("cooling", self.cooling, 0.0, 0.999)
        check_flag("calibrate", self.calibrate)
        check_number("max_iter", self.max_iter, 1, whole=True)
        check_seed(self.random_state)

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        require_instance("machine_", self.machine_, MixtureMachine)
        fits = len(self.machine_.sizes) == len(self.classes_)
        require(fits, "machine_ has other outputs than classes_")


def _over_all_rows(
    machine: MixtureMachine, used: np.ndarray, n_rows: int
) -> MixtureMachine:
    """Return linear functions of kernel values with all rows, weighted ones or not."""
    coef = np.zeros((len(machine.components.bias), n_rows))
    coef[:, used] = machine.components.coef  # type: ignore[union-attr]
    return MixtureMachine(LinearMachine(coef, machine.components.bias), machine.sizes)


def _messages(found: TrainedMixture, max_iter: int) -> tuple[str, ...]:
    """Say what a user should know of the training."""
    if found.trained.interrupted:
        return (INTERRUPTED,)
    if not found.trained.converged:
        return (
            f"The objective had not settled after {found.trained.n_iter} quadratic "
            f"programs. Raise max_iter={max_iter} or tol, scale the columns, or lower C.",
        )
    return ()
