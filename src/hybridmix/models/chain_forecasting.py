"""Moments of the next frames of sequences, in every component."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows, pattern_numbers
from hybridmix.families.autoregressive import AutoregressiveParameters
from hybridmix.models.chain_filling import autoregressive_part
from hybridmix.models.chain_filtering import Belief
from hybridmix.models.chains import Chains


class FrameMoments(NamedTuple):
    """Means and covariances of frames in every component, in scaled coordinates.

    Attributes
    ----------
    means : ndarray of shape (J, n, d)
        Of the real columns.
    covariances : ndarray of shape (J, n, d, d)
        Of the real columns.
    """

    means: FloatArray
    covariances: FloatArray


def autoregressive_moments(
    model: Chains, last: Rows, beliefs: Sequence[Belief]
) -> Iterator[FrameMoments]:
    r"""Yield the moments of the frames that follow, step by step.

    The mean of a frame of component :math:`j` of state :math:`s'` is

    .. math:: a_j + B_j \sum_s p(s_t = s \mid s_{t+1} = s', x_{1:T})\,
              E(x_t \mid s_t = s, x_{1:T}),

    since a frame depends on the states before it only by way of the frame before. The
    same holds for second moments, so that no number of steps is an approximation, unless
    the last frame has holes: in their place there is what component :math:`j` expects.

    Parameters
    ----------
    model : Chains
        An autoregressive model.
    last : Rows
        The last frames of the sequences.
    beliefs : sequence of Belief
        What is known of the state at each step.
    """
    parameters = autoregressive_part(model.components)
    moments = _first_moments(parameters, last)
    yield moments
    for belief in beliefs[:-1]:
        moments = _next_moments(model, parameters, moments, belief)
        yield moments


def _first_moments(parameters: AutoregressiveParameters, last: Rows) -> FrameMoments:
    """Return the moments of the frames after frames that may have holes."""
    d, n = last.real.shape
    n_components = parameters.n_components
    moments = FrameMoments(
        np.empty((n_components, n, d)), np.empty((n_components, n, d, d))
    )
    observed = np.ones((d, n), dtype=bool) if last.observed is None else last.observed
    numbers, examples, _ = pattern_numbers(observed.T)
    for number, example in enumerate(examples):
        own = np.flatnonzero(numbers == number)
        found = _given(parameters, observed[:, example], last.real[:, own])
        moments.means[:, own], moments.covariances[:, own] = found
    return moments


def _given(
    parameters: AutoregressiveParameters, seen: BoolArray, values: FloatArray
) -> FrameMoments:
    """Return the moments of frames given seen columns of the frames before, (d, n)."""
    joint, d = parameters.joint, parameters.n_columns
    known: IntArray = np.flatnonzero(seen)
    across = joint.covariances[:, d:][:, :, known]
    within = joint.covariances[:, known[:, None], known]
    gain = np.swapaxes(np.linalg.solve(within, np.swapaxes(across, 1, 2)), 1, 2)
    excess = values[known].T - joint.means[:, None, known]
    means = joint.means[:, None, d:] + excess @ np.swapaxes(gain, 1, 2)
    left = joint.covariances[:, d:, d:] - gain @ np.swapaxes(across, 1, 2)
    return FrameMoments(means, left[:, None])


def _next_moments(
    model: Chains,
    parameters: AutoregressiveParameters,
    moments: FrameMoments,
    belief: Belief,
) -> FrameMoments:
    """Return the moments of the frames after frames of given moments and states."""
    _, n, d = moments.means.shape
    weights = _origins(model, belief), np.exp(model.log_mixing)
    means = moments.means.reshape(*model.log_mixing.shape, n, d)
    squares = moments.covariances + _squares(moments.means)
    squares = squares.reshape(*model.log_mixing.shape, n, d, d)
    # Moments of the frames before, for each state that follows: z, after k.
    before = np.einsum("ckzn,ckm,ckmnd->cznd", *weights, means, optimize=True)
    products = np.einsum("ckzn,ckm,ckmnde->cznde", *weights, squares, optimize=True)
    spread = products - _squares(before)
    before, spread = (
        np.repeat(part.reshape(-1, *part.shape[2:]), model.n_mixed, axis=0)
        for part in (before, spread)
    )
    regressions = parameters.regressions[:, None]
    expected = np.squeeze(regressions @ before[..., None], axis=-1)
    explained = regressions @ spread @ np.swapaxes(regressions, -1, -2)
    return FrameMoments(
        parameters.intercepts[:, None] + expected,
        explained + parameters.residuals.covariances[:, None],
    )


def _origins(model: Chains, belief: Belief) -> FloatArray:
    """Return the probabilities of the states before, given the next one, (C, K, K, n)."""
    logs = belief.log_states[:, :, None] + model.log_transition[..., None]
    totals = np.logaddexp.reduce(logs, axis=1, keepdims=True)
    # States that cannot be reached count for nothing.
    return np.exp(logs - np.where(np.isfinite(totals), totals, 0.0))


def _squares(means: FloatArray) -> FloatArray:
    """Return the products (..., d, d) of vectors (..., d) with themselves."""
    return means[..., :, None] * means[..., None, :]
