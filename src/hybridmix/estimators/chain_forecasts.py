"""Forecasts of the next frames of sequences, in the units of the columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema
from hybridmix.data.sequence_list import Sequences
from hybridmix.estimators.components import Marginal, factors_in_units
from hybridmix.models.chains import Chains
from hybridmix.models.mixture import Mixture


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
    """What the components of a model expect of a frame.

    Attributes
    ----------
    means, deviations : ndarray of shape (d, J)
        Of the real columns, in their units.
    probabilities : list of ndarray of shape (J, n_categories)
        For each categorical column.
    """

    means: FloatArray
    deviations: FloatArray
    probabilities: list[FloatArray]

    @classmethod
    def of(cls, model: Chains, schema: Schema) -> ComponentFrames:
        """Read the components of a model."""
        n_components = model.n_components
        mixture = Mixture(
            model.family,
            model.components,
            np.full(n_components, -np.log(n_components)),
            np.zeros(1),
            (0, n_components),
        )
        moments = np.empty((2, len(schema.real), n_components))
        for place, column in enumerate(schema.real):
            own = mixture.marginal(*schema.model_places([column]))
            marginal = Marginal(schema.marginal([column]), own)
            moments[:, place] = marginal.column_moments()
            shape = schema.shapes.get(column)
            if shape is not None:
                # The mean of a long tail may lie far beyond all frames.
                moments[0, place] = np.clip(moments[0, place], shape.least, shape.most)
        probabilities: list[FloatArray] = []
        if schema.categorical:
            logs = factors_in_units(model, schema)[-1].log_probabilities
            parts = np.split(np.exp(logs), np.cumsum(schema.code_sizes)[:-1], axis=1)
            probabilities = parts[: len(schema.categorical)]
        return cls(moments[0], moments[1], probabilities)

    def mixed(self, weights: FloatArray) -> Frames:
        r"""Return the frames that components of given probabilities (J, n) expect.

        .. math:: m = \sum_j w_j m_j, \qquad
                  v = \sum_j w_j \big( v_j + (m_j - m)^2 \big)
        """
        means = self.means @ weights
        spread = np.empty_like(means)
        for place, mean in enumerate(means):
            # Differences to the mean keep their digits.
            squares = self.deviations[place][:, None] ** 2
            squares = squares + (self.means[place][:, None] - mean) ** 2
            spread[place] = np.einsum("jn,jn->n", weights, squares)
        codes = [np.argmax(own.T @ weights, axis=0) for own in self.probabilities]
        shape = (len(codes), weights.shape[1])
        return Frames(means, np.sqrt(spread), np.array(codes, np.intp).reshape(shape))


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
