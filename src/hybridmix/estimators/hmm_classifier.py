"""The classifier of sequences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from hybridmix._checks import check_flag
from hybridmix._registered import registered
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import encode_labels
from hybridmix.estimators.chain_classifier import ChainClassifier
from hybridmix.estimators.chain_options import ChainEstimator
from hybridmix.estimators.chosen import is_auto
from hybridmix.estimators.labelled import (
    check_labels_given,
    check_mark,
    class_names,
    class_weighted,
)
from hybridmix.estimators.options import warn_of
from hybridmix.models.chain_committee import ChainCommittee
from hybridmix.objectives import Objective
from hybridmix.solvers import Solver
from hybridmix.training.chain_plan import TRADEOFFS, AutomaticChains
from hybridmix.training.chain_record import FittedChains
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.run import check_class_prior


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class HybridHMMClassifier(ChainClassifier, ChainEstimator):
    r"""Classify sequences with a hidden Markov model for each class.

    .. math:: p(x_{1:T}, c) = \pi_c \sum_{s_{1:T}} a_{c s_1}
              \prod_{t=2}^{T} A_{c s_{t-1} s_t} \prod_{t=1}^{T} p(x_t \mid c, s_t)

    with states :math:`s_t` whose frames have mixture densities: Gaussian in the real
    columns, and independent categorical ones. The models are fitted by EM from segmental
    k-means, and then trained to discriminate. The hybrid objective is

    .. math:: \sum_n \log p(x_n, c_n) + \lambda\, \bar T \sum_n \log p_\rho(c_n \mid x_n),
              \qquad p_\rho(c \mid x_{1:T}) \propto p(x_{1:T}, c)^{1 / T^{\rho}}

    for sequences of mean length :math:`\bar T`: the likelihood of a sequence grows with
    the number of its frames, and the discriminative term is made to count per frame as
    well.

    By default, candidates (topologies, numbers of states, covariances, tradeoffs) compete
    on held-out sequences, and a committee of at most three of them votes. Options that
    are given are not searched; if none is left to choose, or with ``effort="fast"``,
    there is one model.

    Missing values are marginalised exactly, in training and in everything that follows.
    Sequences without a label are learned from by EM over their classes.

    Parameters
    ----------
    n_states : int or "auto", default="auto"
        Number of states of each class. "auto" tries 1, 3 and 8, as far as the classes
        have frames for them; with a mask as ``topology``, it is the number of its rows.
    objective : {"hybrid", "likelihood", "conditional", "margin"}, default="hybrid"
        What training maximises: the likelihood of sequences and labels plus ``tradeoff``
        times a discriminative term; the likelihood alone, by EM; the likelihood of the
        labels given the sequences; or a margin term alone. All but the likelihood go on
        from the result of EM.
    tradeoff : float or "auto", default="auto"
        Weight :math:`\lambda` of the discriminative term in the hybrid objective, per
        frame. 0 is the likelihood; the larger, the more the models serve classification
        alone. "auto" tries 10 and 100; it is 10 with ``effort="fast"``.
    length_power : float, default=1.0
        The power :math:`\rho` of the length by which log joint densities are divided
        where classes are compared, in training and in prediction, between 0 and 2.
        Neighbouring frames are not as independent as the model takes them to be; 0 would
        trust them, and make the probabilities of long sequences extreme.
    margin : float or "auto", default="auto"
        Log margin between the divided joint densities of the label and of its best rival
        up to which sequences count in the discriminative term, for all losses but "log".
        "auto" is 0.4 for every column.
    loss : {"auto", "log", "hinge", "ramp", "scaled"} or Objective, default="auto"
        The discriminative term, as in `HybridMixtureClassifier`. "auto" is "log" for the
        hybrid objective and "hinge" for the margin alone.
    solver : {"lbfgs", "baum-welch"} or solver, default="lbfgs"
        How the discriminative objectives are maximised: L-BFGS in whitened coordinates,
        or extended Baum-Welch steps that never lower the objective.
    n_steps : int, default=40
        Largest number of iterations of this solver; "auto" tradeoffs share them.
    validation_fraction : float or None, default=None
        Share of the labelled sequences to hold out from the discriminative training with
        fixed options: the iterate with the fewest errors on them is kept. None trains on
        all sequences, for all steps.
    patience : int, default=10
        With held-out sequences: stop after this many iterations without fewer errors.
    calibrate : bool or "auto", default="auto"
        Correct the class probabilities by a temperature and a share of equal
        probabilities, fitted to held-out sequences: in a search, those of the search, for
        every member. With fixed options it takes three more fits, unless there are
        validation sequences, and "auto" does not do it.
    class_prior : {"empirical", "uniform"} or array-like of shape (n_classes,), \
            default="empirical"
        Class probabilities: estimated, equal, or given in the order of the sorted labels.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by which sample weights of labelled sequences are
        multiplied; "balanced" gives all classes the same total weight.
    unlabelled : object, default=-1
        The mark of unlabelled sequences in ``y``, besides None and NaN; None for no other
        mark. Labels that are only -1 and 1 are taken for two classes, with a warning.
    unlabelled_weight : float or "auto", default="auto"
        What an unlabelled sequence counts, compared with a labelled one. "auto" is the
        best on held-out labels among 1, 0, and the weight with which all unlabelled
        sequences together count at most as much as all labelled ones.
    n_components : int, default=1
        Components of the mixture density of each state.
    topology : {"auto", "left-right", "ergodic"} or array-like of shape \
            (n_states, n_states), default="auto"
        Which state may follow which: itself and the next one, beginning with the first;
        any; or those that a mask says, with a row for each state. "auto" tries both
        names.
    covariance_type : {"auto", "full", "tied", "diag", "spherical", "subspace"}, \
            default="auto"
        As in `MixtureDensity`; "tied" and "subspace" are common to all states of all
        classes. "auto" tries "diag", "tied" and "full", and "diag" alone for more than 60
        real columns.
    exits : bool, default=False
        Model where sequences end: every state has a probability that the sequence ends
        after it, which is one more factor of the density. Lengths then say something
        about the class.
    autoregressive : bool or "auto", default="auto"
        Let frames depend on the frame before: the Gaussian density of a frame is that
        given the previous one, for "full" and "tied" covariances. "auto" tries both if
        ``covariance_type`` is "auto" as well and there are at most 20 real columns, and
        is False otherwise. The "baum-welch" solver cannot train it.
    transition_prior : float, default=0.1
        What is added to the counts of all possible first states, transitions and
        components of states: a Dirichlet prior.
    variance_floor : float, default=1e-3
        Smallest variance of a component in any direction, relative to the variances of
        the columns.
    column_shapes : {"auto", "range", "plain"} or dict, default="plain"
        As in `MixtureDensity`.
    n_factors, noise, covariance_prior, smoothing, categorical_features
        As in `HybridMixtureClassifier`.
    n_init : int, default=1
        Number of starts of EM; the best result is kept.
    max_iter : int, default=100
        Largest number of EM iterations per start; each is a pass over the sequences.
    tol : float, default=1e-4
        EM stops when a step raises the mean log-likelihood per frame by less.
    effort : {"fast", "balanced", "thorough"} or float, default="balanced"
        How much to spend on what is "auto". "fast" does not search: it fits five states
        from left to right with diagonal covariances. "thorough" also tries 2, 5, 12
        and 20 states. A number of seconds ends a thorough search after about this time:
        the result then depends on the machine.
    n_jobs : int or None, default=None
        Threads. None uses as many as BLAS may; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the starts, of the folds and of `sample`.
    verbose : int, default=0
        Print progress if positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    committee_ : ChainCommittee
        What is asked for the class: the models of the members, their shares and their
        calibrations. It has one member if there was no search.
    leaderboard_ : list of dict
        What the search has tried, best first: "candidate", "score" (mean held-out log
        probability of the label), its "standard_error", "seconds", and "share" in the
        committee. Absent without a search.
    n_searched_ : int
        How many sequences the search has looked at. Absent without a search.
    model_ : Chains
        The density of sequences, in scaled coordinates. With a search, this is the EM fit
        of the best held-out density, which gives densities, states, forecasts, typicality
        and samples, while the committee gives classes. The attributes below, up to
        ``trace_``, are about it.
    n_states_, topology_, covariance_type_
        What was given or chosen; ``covariance_type_`` is None without real columns.
    class_prior_ : ndarray of shape (n_classes,)
        Class probabilities :math:`\pi_c`.
    start_ : ndarray of shape (n_classes, n_states_)
        Probabilities :math:`a_{cs}` of the first state.
    transitions_ : ndarray of shape (n_classes, n_states_, n_states_)
        Probabilities :math:`A_{css'}` of the next state (last axis).
    exits_ : ndarray of shape (n_classes, n_states_)
        Probabilities of an end after each state; those of its transitions sum to the
        rest. Only if ``exits``.
    mixing_ : ndarray of shape (n_classes, n_states_, n_components)
        Proportions of the components of each state.
    means_, covariances_, category_probabilities_, spike_probabilities_
        As in `MixtureDensity`, with the axes of ``mixing_`` in place of that of the
        components.
    loading_, noise_variances_, categories_
        As in `MixtureDensity`.
    mean_lengths_ : ndarray of shape (n_classes,)
        Mean number of frames of the training sequences of each class.
    unlabelled_weight_ : float
        What an unlabelled sequence counted.
    n_iter_ : int
        Iterations of the last solver.
    history_ : dict of str to ndarray
        What changed along these iterations, as in `HybridMixtureClassifier`, as means per
        sequence.
    trace_ : ndarray
        The "value" of ``history_``.
    converged_ : bool
        Whether the last solver met its tolerance before its largest number of iterations.
    interrupted_ : bool
        Whether the user ended training (Ctrl-C) before it was done.
    n_features_in_ : int
        Number of columns of frames.
    feature_names_in_ : ndarray of str
        Their names, if they have any.

    See Also
    --------
    HMMDensity : One hidden Markov model, without classes.
    HybridMixtureClassifier : The same for tables.
    Sequences : Sequences, read from arrays and data frames.

    Examples
    --------
    Rising and falling sequences of different lengths, some values of which are missing:

    >>> import numpy as np
    >>> from hybridmix import HybridHMMClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.array(["falling", "rising"] * 15)
    >>> X = []
    >>> for label in y:
    ...     line = np.linspace(-1.0, 1.0, rng.integers(6, 12))[:, None]
    ...     X.append((line if label == "rising" else -line) + rng.normal(size=line.shape))
    >>> X[0][2] = np.nan
    >>> model = HybridHMMClassifier(3, covariance_type="diag", topology="left-right",
    ...                             tradeoff=10.0, random_state=0).fit(X, y)
    >>> rising = [[-1.0], [-0.2], [np.nan], [0.4], [1.5]]
    >>> model.predict([rising, rising[::-1]])
    array(['rising', 'falling'], dtype='<U7')
    >>> scores, states = model.decode([rising])
    >>> states
    [array([0, 1, 2, 2, 2])]

    Class probabilities after each frame of a sequence that is still going on:

    >>> stream = model.filter()
    >>> for frame in rising:
    ...     probabilities = stream.update(frame)
    >>> bool(np.allclose(probabilities, model.predict_proba([rising])))
    True
    """

    n_states: int | str = field(default="auto", kw_only=False)
    autoregressive: bool | str = "auto"
    objective: str = "hybrid"
    tradeoff: float | str = "auto"
    length_power: float = 1.0
    margin: float | str = "auto"
    loss: str | Objective = "auto"
    solver: str | Solver = "lbfgs"
    n_steps: int = 40
    validation_fraction: float | None = None
    patience: int = 10
    calibrate: bool | str = "auto"
    class_prior: Any = "empirical"
    class_weight: Any = None
    unlabelled: Any = -1
    unlabelled_weight: float | str = "auto"

    def fit(self, X: Any, y: Any, lengths: Any = None, sample_weight: Any = None) -> Self:
        """Fit a committee of models, or one if options are given.

        Parameters
        ----------
        X : sequences
            A list of arrays or data frames of shape (T_i, d), an array of shape
            (n, T, d), a `Sequences`, a data frame with a two-level index, or stacked
            frames together with ``lengths``. NaN, None and pandas.NA are missing values.
            What `Sequences.from_long` returns for a table in blocks is read block by
            block, with names of columns as ``y`` and ``sample_weight``.
        y : array-like of shape (n,)
            Labels of any kind; see ``unlabelled`` for sequences without one.
        lengths : array-like of shape (n,), default=None
            Numbers of frames, if ``X`` does not show them.
        sample_weight : array-like of shape (n,), default=None
            A sequence of weight two counts like two sequences.

        Returns
        -------
        self : HybridHMMClassifier
        """
        self._check_options()
        check_labels_given(self, y)
        with self._learning(X, y, lengths, sample_weight) as read:
            classes, options = read.classes, self._chain_options()
            absent = np.flatnonzero(read.dataset.class_weights(len(classes)) == 0.0)
            if len(absent):
                name = class_names(classes)[absent[0]]
                raise ValueError(f"{name} has no sequence of positive weight.")
            prior = self._given_prior(len(classes))
            fitted = self._fit_read(read, replace(options, class_prior=prior))
        self._publish(
            {
                **read.attributes,
                **self._learned_attributes(fitted),
                "classes_": classes,
                "unlabelled_weight_": fitted.unlabelled_weight,
                "committee_": self._committee(fitted),
            }
        )
        warn_of(fitted.messages)
        return self

    def _numbered(
        self, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, IntArray | None, Any]:
        classes, labels = encode_labels(y, self.unlabelled)
        weights = class_weighted(self.class_weight, classes, labels, sample_weight)
        return classes, labels, weights

    def _committee(self, fitted: FittedChains) -> ChainCommittee:
        """Return what is asked for the class: a committee, or the model alone."""
        if fitted.committee is not None:
            return fitted.committee
        return ChainCommittee.of_one(
            fitted.model, fitted.calibration, float(self.length_power)
        )

    # Options ----------------------------------------------------------------------------

    def _check_options(self) -> None:
        check_flag("calibrate", self.calibrate, or_word="auto")
        super()._check_options()
        check_mark(self.unlabelled)

    def _discrimination(self) -> Discrimination:
        return Discrimination(
            self.objective,
            TRADEOFFS[0] if is_auto(self.tradeoff) else self.tradeoff,  # type: ignore[arg-type]
            self.margin,
            self.loss,
            self.solver,
            self.n_steps,
            self.patience,
            None,
            self.validation_fraction,
            refine_subspace=False,
        )

    def _class_options(self) -> tuple[Any, ...]:
        prior = self.class_prior
        calibrate = bool(self._automatic()) if is_auto(self.calibrate) else self.calibrate
        return (
            self.length_power,
            prior if isinstance(prior, str) else np.asarray(prior, dtype=np.float64),
            self.unlabelled_weight,
            calibrate,
        )

    def _given_prior(self, n_classes: int) -> str | FloatArray:
        prior = self._chain_options().class_prior
        check_class_prior(prior, n_classes)
        return prior

    def _automatic(self) -> AutomaticChains:
        is_free = is_auto(self.tradeoff) and self.objective == "hybrid"
        return replace(super()._automatic(), tradeoff=is_free)
