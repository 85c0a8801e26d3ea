"""The prior of Gaussian covariances, and constants of the Gaussian density."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_number, require_rank
from hybridmix._typing import FloatArray

LOG_2PI = float(np.log(2.0 * np.pi))


@registered
@dataclass(frozen=True)
class VariancePrior:
    r"""A conjugate prior of covariances and a lower bound of variances.

    The prior counts like ``strength`` rows that lie around a component's own mean with
    the given variances:

    .. math:: \log p(\Sigma) = -\tfrac{\nu}{2}
              \big[ \log|\Sigma| + \operatorname{tr}(\Sigma^{-1} \Sigma_0) \big]

    Parameters
    ----------
    variances : ndarray of shape (d,)
        Diagonal of :math:`\Sigma_0`, in scaled units.
    strength : float
        :math:`\nu`, in rows.
    floor : float
        No direction of a component has a smaller variance, in scaled units. The bounded
        problem is solved exactly in the M-step, which keeps EM monotone.
    correlations : ndarray of shape (d, d) or None
        Of :math:`\Sigma_0`; None for a diagonal one. Diagonal components need none.
    """

    variances: FloatArray
    strength: float = 0.0
    floor: float = 1e-6
    correlations: FloatArray | None = None

    def check_consistent(self) -> None:
        """Raise ValueError unless variances are positive and correlations match them."""
        require_rank("the prior", self.variances, 1)
        size = len(self.variances)
        name = "the variances of the prior"
        require_array(name, self.variances, (size,), positive=True)
        require_number("the strength of the prior", self.strength, 0.0)
        require_number("the variance floor", self.floor, 0.0)
        if self.correlations is not None:
            name = "the correlations of the prior"
            require_array(name, self.correlations, (size, size))
            bounded = np.abs(self.correlations).max(initial=0.0) <= 1.0 + 1e-6
            require(bounded, f"{name} are not between -1 and 1")
            is_one = np.allclose(np.diagonal(self.correlations), 1.0, rtol=0, atol=1e-6)
            require(is_one, f"{name} are not 1 on the diagonal")

    @cached_property
    def covariance(self) -> FloatArray:
        r""":math:`\Sigma_0`, (d, d)."""
        if self.correlations is None:
            return np.diag(self.variances)
        deviations = np.sqrt(self.variances)
        return self.correlations * deviations[:, None] * deviations

    def posterior_mean(
        self,
        squares: FloatArray,
        counts: FloatArray,
        target: FloatArray | float,
        pseudo_counts: float | None = None,
    ) -> FloatArray:
        """Return ``(squares + strength target) / (counts + strength)``.

        Where there is neither data nor prior, the target is returned.
        """
        strength = self.strength if pseudo_counts is None else pseudo_counts
        total = counts + strength
        empty = total <= np.finfo(float).tiny
        filled = np.where(empty, 1.0, total)
        # Divided first: a strong prior times a large variance need not be a number.
        return np.where(empty, target, squares / filled + strength / filled * target)

    def marginal(self, columns: list[int]) -> VariancePrior:
        """Return the prior of some of the columns."""
        correlations = self.correlations
        if correlations is not None:
            correlations = correlations[np.ix_(columns, columns)]
        return replace(self, variances=self.variances[columns], correlations=correlations)
