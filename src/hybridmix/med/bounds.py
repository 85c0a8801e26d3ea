"""Bounds of the generalisation error, as Jebara (2004, section 3.10) gives them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require_number
from hybridmix._typing import FloatArray

# Bounds hold with this probability, over draws of the training rows.
CONFIDENCE = 0.95


@registered
@dataclass(frozen=True)
class Bounds:
    r"""Bounds of the error on new rows; all of them are loose, and may exceed 1.

    Attributes
    ----------
    vc : float
        :math:`\hat R + \sqrt{(h (\log(2n / h) + 1) - \log(\delta / 4)) / n}`, with the
        share :math:`\hat R` of training rows below the mean margin, and the dimension
        :math:`h = \min(\lceil D^2 / m^2 \rceil, p) + 1` of linear functions that leave a
        gap :math:`m` between the classes, in a ball of the diameter :math:`D` of the
        training rows. It assumes that the ball and the gap were fixed before the rows
        were seen. NaN for models other than linear ones.
    sparsity : float
        The share of rows that have a multiplier. The expected error is at most the
        *expectation* of it over training sets, of which this is a single draw.
    pac_bayes : float
        :math:`\hat R + \sqrt{(l^{-2} K \ln n + \ln n + \ln \delta^{-1}) / n}`, with the
        divergence :math:`K` of the posterior from the prior and the mean margin
        :math:`l`. It is known up to a constant factor of the root, taken as one, and
        assumes that outputs are bounded: use it to compare, not as a guarantee.
    """

    vc: float
    sparsity: float
    pac_bayes: float

    def check_consistent(self) -> None:
        """Raise ValueError unless they are numbers; some may be missing."""
        for name in ("vc", "sparsity", "pac_bayes"):
            value = getattr(self, name)
            if not (isinstance(value, float) and np.isnan(value)):
                require_number(name, value, 0.0)


def bounds_of(
    margins: FloatArray,
    multipliers: FloatArray,
    least: float,
    divergence: float,
    geometry: tuple[float, float, int] | None,
) -> Bounds:
    """Return the bounds of a model with two classes.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Expected margins of the training rows.
    multipliers : ndarray of shape (n,)
        Of these rows.
    least : float
        The mean of the margin prior.
    divergence : float
        Of the posterior from the prior.
    geometry : (diameter, length, p) or None
        Diameter of a ball around the rows, length of the weight vector and number of
        columns; None if there is no such vector.
    """
    n, delta = len(margins), 1.0 - CONFIDENCE
    # Margins meet their mean up to the tolerance of the solver.
    missed = float(np.mean(margins < least * (1.0 - 1e-3)))
    vc = np.nan
    if geometry is not None:
        diameter, length, n_columns = geometry
        gap = 2.0 * least / max(length, np.finfo(float).tiny)
        dimension = min(np.ceil((diameter / gap) ** 2), n_columns) + 1
        # The logarithm is meant for more rows than dimensions.
        capacity = dimension * (np.log(max(2.0 * n / dimension, 1.0)) + 1.0)
        vc = missed + float(np.sqrt((capacity - np.log(delta / 4.0)) / n))
    spread = divergence * np.log(n) / least**2 + np.log(n) - np.log(delta)
    return Bounds(
        vc,
        float(np.mean(multipliers > 0.0)),
        missed + float(np.sqrt(spread / n)),
    )
