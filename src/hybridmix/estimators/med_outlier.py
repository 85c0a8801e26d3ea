"""Outlier detection by maximum entropy discrimination."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from hybridmix._checks import check_number
from hybridmix._registered import registered
from hybridmix._require import require
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.weights import read_weights
from hybridmix.estimators.blocks import over_blocks, refuse_blocks
from hybridmix.estimators.machines import (
    ROW_MULTIPLIERS,
    MachineEstimator,
    training_attributes,
    training_messages,
)
from hybridmix.estimators.options import warn_of
from hybridmix.estimators.outlier import level_of
from hybridmix.med.constraints import SignedRows
from hybridmix.med.machines import LinearMachine
from hybridmix.med.margins import ExponentialMargin
from hybridmix.progress import printing
from hybridmix.training.machines import train_machine

# Rows that have a margin but for the tolerance of a solver are not outliers.
_ROUNDING = 1e-3


@registered
@dataclass(eq=False, repr=False)
class MEDOutlierDetector(OutlierMixin, MachineEstimator):
    r"""Flag rows by a function that is trained to be high on ordinary rows.

    Of all distributions over functions, the one that is closest to the prior and gives
    the training rows a margin in expectation:

    .. math:: \min_p\; \mathrm{KL}(p \,\|\, p_0) \quad \text{so that} \quad
              E_p\big[ f(x_n) - \gamma_n \big] \ge 0.

    The prior has the mean 0 and the kernel as its covariance, so that the expected
    function rises where training rows are and falls back to 0 elsewhere. With
    ``smoothness=0``, scores are those of a one-class support vector machine, up to a
    factor: LIBSVM fixes the sum of the multipliers, by :math:`\nu`, and finds the margin;
    here the margin is 1 and the sum is found. The :math:`\nu` of the same solution is
    `nu_`.

    Parameters
    ----------
    model : str or callable, default="rbf"
        "rbf", "poly", "linear", "precomputed" (X is then the kernel matrix) or a function
        of two arrays of rows that returns their kernel matrix.
    C : float, default=1.0
        Largest multiplier of a row: the smaller, the more rows may lack a margin.
    smoothness : float, default=0.1
        :math:`\tau`, how smooth the loss of a lacking margin is; 0 is the hinge.
    contamination : float or "auto", default=0.1
        Share of the training rows to flag. "auto" flags rows of a score below
        ``1 - smoothness / C``, which have, if they are trained on, a multiplier of more
        than half of ``C``.
    bias : float, default=0.0
        Standard deviation a priori of a constant that is added to the function; 0 for
        none. A flat one would have a margin everywhere.
    inclusion, kernels, gamma, degree, coef0, solver, tol, max_iter, cache_size, verbose
        As in `MEDRegressor`.

    Attributes
    ----------
    offset_ : float
        Rows of a lower score are outliers.
    nu_ : float
        Mean multiplier as a part of ``C``: no fewer rows have a multiplier, and, for
        ``smoothness=0``, no more rows lack a margin.
    multipliers_ : ndarray of shape (n,)
        Multipliers of the training rows.
    support_ : ndarray of int
        Rows that have a multiplier.
    coef_ : ndarray of shape (p,)
        Expected weights of a linear function.
    inclusion_ : ndarray of shape (p,) or (M,)
        Posterior probabilities of switches.
    dual_value_, dual_gap_, n_iter_, converged_, interrupted_, machine_
        As in `MEDRegressor`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MixtureOutlierDetector : Rows that a mixture finds improbable; it takes holes.

    References
    ----------
    Schoelkopf, B., Platt, J., Shawe-Taylor, J., Smola, A. and Williamson, R. (2001).
    Estimating the support of a high-dimensional distribution. Neural Computation 13.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MEDOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> MEDOutlierDetector().fit(X).predict([[0.1, 0.2], [5.0, 5.0]])
    array([ 1, -1])
    """

    model: Any = "rbf"
    _: KW_ONLY
    smoothness: float = 0.1
    bias: float | str = 0.0
    contamination: float | str = 0.1

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the function and choose the threshold.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Training rows; a kernel matrix for ``model="precomputed"``.
        y : Ignored
            There is nothing to predict.
        sample_weight : array-like of shape (n,), default=None
            A row of weight two counts like two rows.

        Returns
        -------
        self : MEDOutlierDetector
        """
        self._check_options()
        refuse_blocks(self, X, ROW_MULTIPLIERS)
        features, attributes = self._read_training(X)
        n_rows = features.shape[0]
        weights = read_weights(sample_weight, n_rows)
        filled = np.ones(n_rows) if weights is None else weights
        used = np.flatnonzero(filled > 0.0)
        prior = ExponentialMargin(float(self.C), float(self.smoothness), 1.0)
        rows = features[used]
        if self._is_precomputed:
            rows = rows[:, used]
        asked = SignedRows(np.ones(len(used)), filled[used])
        with printing(self.verbose):
            trained = train_machine(rows, asked, self._options(rows, prior, filled[used]))
        multipliers = np.zeros(n_rows)
        multipliers[used] = trained.multipliers
        found = {
            **attributes,
            **training_attributes(trained),
            "multipliers_": multipliers,
            "support_": np.flatnonzero(multipliers),
            "nu_": float(multipliers.sum() / (self.C * filled.sum())),
        }
        machine = trained.machine
        if isinstance(machine, LinearMachine):
            if self._is_precomputed:
                machine = found["machine_"] = LinearMachine(
                    multipliers[None], machine.bias
                )
            else:
                found["coef_"] = machine.coef[0]
        if trained.inclusion is not None and self.inclusion < 1.0:
            found["inclusion_"] = trained.inclusion
        found["offset_"] = self._offset(machine.outputs(features)[0], weights)
        self._publish(found)
        warn_of(training_messages(trained, self.max_iter))
        return self

    def _offset(self, scores: FloatArray, weights: FloatArray | None) -> float:
        if self.contamination == "auto":
            return (1.0 - float(self.smoothness) / float(self.C)) - _ROUNDING
        return level_of(scores, weights, float(self.contamination))

    @over_blocks
    def score_samples(self, X: Any) -> FloatArray:
        """Return the expected function of each row; the lower, the more of an outlier.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, p)
            Rows; kernel values with the training rows for ``model="precomputed"``.

        Returns
        -------
        scores : ndarray of shape (n,)
            The margin is at 1. Far from all training rows a score of an RBF kernel is 0.
        """
        return self._outputs(X)[0]

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score minus the threshold: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """Return -1 for outliers and 1 for other rows."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _check_options(self) -> None:
        super()._check_options()
        check_number("bias", self.bias, 0.0, 1e12)
        check_number("contamination", self.contamination, 0.0, 0.5, or_word="auto")

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        require(len(self.machine_.bias) == 1, "machine_ has several outputs")
        is_number = isinstance(self.offset_, float) and np.isfinite(self.offset_)
        require(is_number, "offset_ is not a number")
