"""How typical rows are of a mixture."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincc, gammaln, logsumexp

from hybridmix._logsumexp import class_posterior
from hybridmix._typing import FloatArray
from hybridmix.models.mixture import MixtureEvaluation

# Rows of less than this are called outliers unless something else is said.
LOG_RARE = float(np.log(0.01))
# Smaller differences of log densities are rounding.
_ROUNDING = 1e-9
_LOG_NEVER = float(np.log(np.finfo(np.float64).tiny))


def log_tail_probability(evaluation: MixtureEvaluation) -> FloatArray:
    r"""Return logs of the probabilities that a mixture produces no denser rows.

    .. math:: \log P\big( p(X_o) \le p(x_o) \big) \approx
              \log \sum_j w_j\, P_j\big( w_j\, p_j(X_o) \le p(x_o) \big)

    over the components of all classes, with their weights :math:`w_j`. The columns of
    :math:`X_o` are those that the row has. Where components overlap, :math:`p` is larger
    than any :math:`w_j\, p_j`, and this is an upper bound.

    Parameters
    ----------
    evaluation : MixtureEvaluation
        Of some rows.
    """
    model = evaluation.model
    log_density, _ = class_posterior(evaluation.log_joint)
    offset, mean, variance = model.family.surprise(
        evaluation.prepared, model.components, evaluation.notes
    )
    log_weights = model.log_weights[:, None]
    log_tail = log_gamma_tail(log_weights - log_density - offset, mean, variance)
    return np.minimum(logsumexp(log_weights + log_tail, axis=0), 0.0)


def log_gamma_tail(
    energy: FloatArray, mean: FloatArray, variance: FloatArray
) -> FloatArray:
    """Return logs of the probabilities of energies that are no lower.

    Energies have a gamma distribution of the given mean and variance. Where they are all
    the same, since nothing is observed or categories are equally probable, the
    probability is one or zero.
    """
    varies = mean > _ROUNDING
    fixed = np.where(energy > _ROUNDING, _LOG_NEVER, 0.0)
    rate = np.where(varies, mean / np.where(varies, variance, 1.0), 1.0)
    shape = np.where(varies, mean * rate, 1.0)
    x = np.maximum(energy, 0.0) * rate
    tail = gammaincc(shape, x)
    with np.errstate(divide="ignore"):
        log_tail = np.log(tail)
    # Far out, the tail underflows; this is its asymptotic expansion.
    far = (shape - 1.0) * np.log(np.maximum(x, 1.0)) - x - gammaln(shape)
    log_tail = np.where(tail > 1e-290, log_tail, np.minimum(far, np.log(1e-290)))
    return np.where(varies, log_tail, fixed)
