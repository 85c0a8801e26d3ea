"""Filling the holes of sequences by what hidden Markov models expect there."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solveh_banded

from hybridmix._logsumexp import class_posterior
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import Rows
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.families.autoregressive import AutoregressiveParameters
from hybridmix.families.base import Parameters
from hybridmix.models.chains import Chains
from hybridmix.models.packed import with_previous


def filled_frames(model: Chains, rows: SequenceRows) -> Rows:
    r"""Return the frames of sequences with their holes filled.

    Holes get conditional means, and modes of categories, averaged over the classes,
    states and components that the whole sequence speaks for. Values of autoregressive
    models depend on each other over time: `smoothed_frames` finds them together.
    """
    evaluation = model.evaluate(model.prepare(rows))
    posterior = evaluation.component_posterior(class_posterior(evaluation.log_joint)[1])
    if not model.autoregressive:
        return model.family.impute(rows.frames, model.components, posterior)
    filled = model.family.impute(with_previous(rows), model.components, posterior)
    parameters = autoregressive_part(model.components)
    return Rows(smoothed_frames(rows, parameters, posterior), None, filled.codes)


def autoregressive_part(components: Parameters) -> AutoregressiveParameters:
    """Return the parameters of the real columns."""
    factors = getattr(components, "factors", (components,))
    return next(own for own in factors if isinstance(own, AutoregressiveParameters))


def smoothed_frames(
    rows: SequenceRows, parameters: AutoregressiveParameters, posterior: FloatArray
) -> FloatArray:
    r"""Return the real columns (d, F), holes filled by what is before and after them.

    The missing values maximise the expected log density over components,

    .. math:: -\tfrac12 \sum_t \sum_j q_{tj}
              (x_t - a_j - B_j x_{t-1})^\top R_j^{-1} (x_t - a_j - B_j x_{t-1}),

    a quadratic function whose matrix is block tridiagonal.

    Parameters
    ----------
    rows : SequenceRows
        The sequences.
    parameters : AutoregressiveParameters
        Of the components.
    posterior : ndarray of shape (J, F)
        Probabilities :math:`q_{tj}` of the components.
    """
    frames = rows.frames
    if frames.observed is None:
        return frames.real
    values, missing = frames.real.T, ~frames.observed.T
    own, to_previous, linear = _quadratic(rows, parameters, posterior)
    residual = linear - np.einsum("tij,tj->ti", own, values)
    residual[1:] += np.einsum("tij,tj->ti", to_previous[1:], values[:-1])
    residual[:-1] += np.einsum("tji,tj->ti", to_previous[1:], values[1:])
    residual[~missing] = 0.0
    banded = _banded(own, to_previous, missing)
    found = solveh_banded(banded, residual.ravel(), lower=True, overwrite_ab=True)
    return (values + found.reshape(values.shape)).T


def _quadratic(
    rows: SequenceRows, parameters: AutoregressiveParameters, posterior: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the coefficients of the expected log density.

    Returns
    -------
    own : ndarray of shape (F, d, d)
        Blocks of the matrix on the diagonal.
    to_previous : ndarray of shape (F, d, d)
        Minus the blocks to the left of the diagonal; zero for first frames.
    linear : ndarray of shape (F, d)
        The right-hand side.
    """
    is_first = np.zeros(posterior.shape[1], dtype=bool)
    is_first[rows.starts] = True
    first, later = posterior * is_first, posterior * ~is_first
    precisions, regressions = parameters.residuals.precisions, parameters.regressions
    transposed = np.swapaxes(regressions, 1, 2)
    pulled = precisions @ regressions
    pushed = np.squeeze(precisions @ parameters.intercepts[:, :, None], axis=2)
    pushed_back = np.squeeze(transposed @ pushed[:, :, None], axis=2)
    current = parameters.current
    centre = np.squeeze(current.precisions @ current.means[:, :, None], axis=2)
    own = _averaged(later, precisions) + _averaged(first, current.precisions)
    own[:-1] += _averaged(later, transposed @ pulled)[1:]
    linear = later.T @ pushed + first.T @ centre
    linear[:-1] -= (later.T @ pushed_back)[1:]
    return own, _averaged(later, pulled), linear


def _averaged(weights: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return sums of matrices (G, d, d) with weights (J, F), as (F, d, d)."""
    if len(matrices) < len(weights):
        weights = weights.sum(axis=0, keepdims=True)
    flat = weights.T @ matrices.reshape(len(matrices), -1)
    return flat.reshape(-1, *matrices.shape[1:])


def _banded(own: FloatArray, to_previous: FloatArray, missing: BoolArray) -> FloatArray:
    """Return the lower bands of the matrix of the missing values.

    Observed values have the row and the column of the identity.
    """
    n_frames, d = missing.shape
    bands = np.zeros((2 * d, n_frames, d))
    row, column = np.tril_indices(d)
    both = missing[:, row] & missing[:, column]
    bands[row - column, :, column] = np.where(both, own[:, row, column], 0.0).T
    bands[0] += ~missing
    row, column = (index.ravel() for index in np.indices((d, d)))
    both = missing[1:, row] & missing[:-1, column]
    across = np.where(both, -to_previous[1:, row, column], 0.0)
    bands[d + row - column, :-1, column] = across.T
    return bands.reshape(2 * d, -1)
