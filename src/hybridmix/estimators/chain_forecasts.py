"""Forecasts of the next frames of sequences, in the units of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Rows, Schema
from hybridmix.data.sequence_list import Sequences
from hybridmix.data.shapes import ColumnShape
from hybridmix.estimators.components import value_moments
from hybridmix.models.chain_filtering import Belief
from hybridmix.models.chain_forecasting import FrameMoments, autoregressive_moments
from hybridmix.models.chains import Chains


class Frames(NamedTuple):
    """Expected frames.

    Attributes
    ----------
    means, deviations : ndarray of shape (d, n)
        Of the real columns.
    codes : ndarray of shape (f, n)
        The most probable numbers of the categories.
    """

    means: FloatArray
    deviations: FloatArray
    codes: IntArray


class ComponentFrames(NamedTuple):
    """What the components of a model expect of frames.

    Attributes
    ----------
    means, deviations : ndarray of shape (d, J, n) or (d, J, 1)
        Of the real columns, in their units.
    probabilities : list of ndarray of shape (J, n_categories)
        For each categorical column.
    """

    means: FloatArray
    deviations: FloatArray
    probabilities: list[FloatArray]

    def mixed(self, weights: FloatArray) -> Frames:
        r"""Return the frames that components of given probabilities (J, n) expect.

        .. math:: m = \sum_j w_j m_j, \qquad
                  v = \sum_j w_j \big( v_j + (m_j - m)^2 \big)
        """
        n_columns, n = len(self.means), weights.shape[1]
        means, variances = np.empty((n_columns, n)), np.empty((n_columns, n))
        for place, own in enumerate(self.means):
            means[place] = np.sum(weights * own, axis=0)
            # Differences to the mean keep their digits.
            squares = self.deviations[place] ** 2 + (own - means[place]) ** 2
            variances[place] = np.sum(weights * squares, axis=0)
        codes = [np.argmax(own.T @ weights, axis=0) for own in self.probabilities]
        numbers = np.array(codes, np.intp).reshape(len(codes), n)
        return Frames(means, np.sqrt(variances), numbers)


def forecast_frames(
    model: Chains,
    schema: Schema,
    last: Rows,
    beliefs: Sequence[Belief],
    weights: Sequence[FloatArray],
) -> list[Frames]:
    """Return the frames that are expected to follow sequences, step by step.

    Parameters
    ----------
    model : Chains
        The model.
    schema : Schema
        Of the frames.
    last : Rows
        The last frames of the sequences.
    beliefs : sequence of Belief
        What is known of the state at each step.
    weights : sequence of ndarray of shape (J, n)
        Probabilities of the components at each step.
    """
    codes = _code_probabilities(model, schema)
    if not model.autoregressive or not schema.real:
        means, deviations = _constant_moments(model, schema)
        expected = _in_units(schema, means, deviations, codes)
        return [expected.mixed(own) for own in weights]
    parts = []
    for here in row_chunks(last.n_rows, 4 * model.n_components * len(schema.real) ** 2):
        own = [
            Belief(belief.log_joint[:, here], belief.log_states[:, :, here])
            for belief in beliefs
        ]
        moments = autoregressive_moments(model, last[here], own)
        parts.append(
            [
                _in_units(schema, *_by_column(step), codes).mixed(share[:, here])
                for step, share in zip(moments, weights, strict=True)
            ]
        )
    return [
        Frames(*(np.concatenate(arrays, axis=1) for arrays in zip(*chunks, strict=True)))
        for chunks in zip(*parts, strict=True)
    ]


def _code_probabilities(model: Chains, schema: Schema) -> list[FloatArray]:
    """Return the probabilities (J, size) of all codes of frames."""
    if not schema.code_sizes:
        return []
    factors: Any = getattr(model.components, "factors", (model.components,))
    ends = np.cumsum(schema.code_sizes)[:-1]
    return np.split(np.exp(factors[-1].log_probabilities), ends, axis=1)


def _constant_moments(model: Chains, schema: Schema) -> tuple[FloatArray, FloatArray]:
    """Return means and deviations (d, J, 1) of frames that depend on the state alone."""
    shape = (len(schema.real), model.n_components, 1)
    means, deviations = np.empty(shape), np.empty(shape)
    for place in range(len(schema.real)):
        _, gaussian = model.family.marginal(model.components, [place], [])
        means[place] = gaussian.means  # type: ignore[attr-defined]
        covariances = gaussian.full_covariances  # type: ignore[attr-defined]
        deviations[place] = np.sqrt(covariances[:, 0])
    return means, deviations


def _by_column(moments: FrameMoments) -> tuple[FloatArray, FloatArray]:
    """Return means and deviations (d, J, n) of frames."""
    variances = np.diagonal(moments.covariances, axis1=2, axis2=3)
    deviations = np.sqrt(np.maximum(variances, 0.0))
    return moments.means.transpose(2, 0, 1), deviations.transpose(2, 0, 1)


def _in_units(
    schema: Schema, means: FloatArray, deviations: FloatArray, codes: list[FloatArray]
) -> ComponentFrames:
    """Turn moments (d, J, n) in scaled coordinates into those of the values."""
    result = np.empty((2, *means.shape))
    spiked = dict(
        zip(schema.shaping.spiked, codes[len(schema.categorical) :], strict=True)
    )
    for place in range(len(means)):
        shape = schema.shaping.shapes.get(place, ColumnShape())
        centre, scale = schema.centre[place], schema.scale[place]
        shares = spiked[place].T[:, :, None] if place in spiked else ()
        own = value_moments(
            shape, means[place] * scale + centre, deviations[place] * scale, shares
        )
        # The mean of a long tail may lie far beyond all frames.
        result[:, place] = np.clip(own[0], shape.least, shape.most), own[1]
    return ComponentFrames(result[0], result[1], codes[: len(schema.categorical)])


def assembled_frames(schema: Schema, steps: list[Frames]) -> tuple[Any, FloatArray]:
    """Put the steps of forecasts together.

    Parameters
    ----------
    schema : Schema
        Of the frames.
    steps : list of Frames
        One for each step, of all sequences.

    Returns
    -------
    frames : ndarray of shape (n, n_steps, d) or list of data frames
        Like the frames of training.
    deviations : ndarray of shape (n, n_steps, d)
        Of the real columns; NaN for the others.
    """
    n_sequences, n_steps = steps[0].means.shape[1], len(steps)
    means, spread, codes = (
        np.stack(parts, axis=2).reshape(len(parts[0]), n_sequences * n_steps)
        for parts in zip(*steps, strict=True)
    )
    table: Any = schema.assembled(means, codes)
    deviations = np.full((n_sequences, n_steps, schema.n_columns), np.nan)
    deviations[:, :, list(schema.real)] = spread.T.reshape(n_sequences, n_steps, -1)
    if schema.container == "numpy":
        return table.reshape(n_sequences, n_steps, -1), deviations
    return list(Sequences(table, [n_steps] * n_sequences)), deviations
