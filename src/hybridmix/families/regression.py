"""Regression of missing columns on observed ones, under Gaussian components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.families.moments import FullParameters
from hybridmix.families.patterns import ScatteredGroup, UniformGroup, invert
from hybridmix.families.prior import LOG_2PI


@dataclass(frozen=True)
class Regression:
    """What the scattered rows of a group are expected to be, for one covariance.

    Attributes
    ----------
    inverses : ndarray of shape (k, k, n_patterns)
        Inverses of the small systems.
    filled : list of ndarray of shape (d, n)
        For each component with this covariance: the observed values, and the conditional
        means of the missing ones.
    half_log_determinants : ndarray of shape (n,)
        Of the covariance of what is observed.
    """

    inverses: FloatArray
    filled: list[FloatArray]
    half_log_determinants: FloatArray


def scattered_log_density(
    group: ScatteredGroup, parameters: FullParameters
) -> tuple[FloatArray, list[Regression]]:
    """Return log densities (J, n) of rows with scattered holes, and the regressions.

    With the precision matrix ``Q`` and ``v = Q e``, where ``e`` is the row minus the mean
    and zero in the missing block ``m``: the quadratic form of what is observed is
    ``e'v - v_m' Q_mm^-1 v_m``, the missing block is expected at ``mu_m - Q_mm^-1 v_m``
    with covariance ``Q_mm^-1``, and ``log|S_oo| = log|S| + log|Q_mm|``. When more than
    half is missing, the observed block of the covariance is the smaller one.
    """
    d = len(group.real)
    cells, members = group.cells(d), group.row_members
    matrices = parameters.precisions if group.by_missing else parameters.covariances
    n_observed = d - len(members) if group.by_missing else len(members)
    result = np.empty((len(parameters.means), group.real.shape[1]))
    regressions = []
    for number, matrix in enumerate(matrices):
        inverses, log_determinants = invert(matrix.ravel()[cells])
        per_row = group.of_rows(inverses)
        half_log_determinants = 0.5 * group.of_rows(log_determinants)
        if group.by_missing:
            half_log_determinants += parameters.half_log_determinants[number]
        filled = []
        for j in parameters.sharing(number):
            mean = parameters.means[j][:, None]
            error = np.where(group.observed, group.real - mean, 0.0)
            side = matrix @ error if group.by_missing else error
            inner = np.take_along_axis(side, members, axis=0)
            solved = np.einsum("abn,bn->an", per_row, inner)
            quadratic = np.einsum("an,an->n", inner, solved)
            if group.by_missing:
                quadratic = np.einsum("dn,dn->n", error, side) - quadratic
                np.put_along_axis(error, members, -solved, axis=0)
            else:
                spread = np.zeros_like(error)
                np.put_along_axis(spread, members, solved, axis=0)
                error = matrix @ spread
            result[j] = -0.5 * (quadratic + n_observed * LOG_2PI) - half_log_determinants
            filled.append(error + mean)
        regressions.append(Regression(inverses, filled, half_log_determinants))
    return result, regressions


def filled_uniform(
    group: UniformGroup, parameters: FullParameters, marginal: FullParameters
) -> FloatArray:
    """Return rows of one pattern with holes filled by each component, (J, d, n)."""
    observed = group.augmented[:-1]
    if group.columns is None:
        return np.broadcast_to(observed, (len(parameters.means), *observed.shape))
    gain = (
        np.swapaxes(parameters.covariances[:, group.columns], 1, 2) @ marginal.precisions
    )
    error = observed - marginal.means[:, :, None]
    return gain @ error + parameters.means[:, :, None]
