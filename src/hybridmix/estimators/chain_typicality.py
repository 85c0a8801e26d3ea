"""How typical sequences are of a hidden Markov model."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._parallel import Workers
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import Schema, Table
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.models.chain_sampling import Ends, drawn_sequences
from hybridmix.models.chains import Chains
from hybridmix.models.typicality import log_gamma_tail

# Sequences that are drawn for each length: in all, and at least for each class. Fewer are
# drawn of long sequences, which have about this many frames in all.
_N_DRAWS, _FEWEST, _N_FRAMES = 400, 40, 1_000_000
# The skewness of gamma distributions is held between these.
_LEAST_SKEW, _MOST_SKEW = 0.05, 2.0


def log_typicality(
    model: Chains,
    table: Table,
    lengths: IntArray,
    log_density: FloatArray,
    seed: int,
    pool: Workers,
) -> FloatArray:
    r"""Return logs of the probabilities that a model produces no denser sequences.

    .. math:: \log \sum_c p(c \mid T)\,
              P_c\big( p(X_o) \le p(x_o) \mid T \big)

    over sequences :math:`X` of the same length and with the same holes. The log densities
    of drawn sequences are taken for shifted gamma distributed, by their first three
    moments.

    Parameters
    ----------
    model : Chains
        The model, in scaled coordinates.
    table : Table
        The frames of the sequences, one sequence after the other.
    lengths : ndarray of shape (n,)
        Their numbers of frames.
    log_density : ndarray of shape (n,)
        Their log densities, in scaled coordinates.
    seed : int
        Of the draws: those of a length do not depend on the other sequences.
    pool : Workers
        Threads.
    """
    starts = np.cumsum(lengths) - lengths
    ends = Ends.of(model, int(lengths.max()))
    hole, no_code = np.isnan(table.real).T, table.codes.T == MISSING_CODE
    result = np.empty(len(lengths))

    def one_length(length: int) -> None:
        draws = _Draws(model, table.schema, length, seed)
        log_classes = ends.log_classes(model, np.array([length]))
        alike: dict[bytes, list[int]] = defaultdict(list)
        for number in np.flatnonzero(lengths == length).tolist():
            frames = slice(starts[number], starts[number] + length)
            alike[hole[:, frames].tobytes() + no_code[:, frames].tobytes()].append(number)
        for numbers in alike.values():
            frames = slice(starts[numbers[0]], starts[numbers[0]] + length)
            energies = draws.energies(hole[:, frames], no_code[:, frames])
            tails = _log_tails(energies, -log_density[numbers])
            logs = np.logaddexp.reduce(log_classes + tails, axis=0)
            result[numbers] = np.minimum(logs, 0.0)

    list(pool.map(one_length, np.unique(lengths).tolist()))
    return result


class _Draws:
    """Sequences of one length, drawn from all classes.

    Parameters
    ----------
    model, seed
        As in `log_typicality`.
    schema : Schema
        Of the frames.
    length : int
        Number of frames.
    """

    def __init__(self, model: Chains, schema: Schema, length: int, seed: int) -> None:
        self._model = model
        n_draws = min(_N_DRAWS, _N_FRAMES // length)
        per_class = max(_FEWEST, n_draws // model.n_classes)
        self._labels: IntArray = np.repeat(np.arange(model.n_classes), per_class)
        self._lengths = np.full(len(self._labels), length)
        generator = np.random.default_rng([seed, length])
        drawn = drawn_sequences(model, self._labels, self._lengths, generator)
        self._frames = schema.without_spikes(drawn.rows.frames)
        # Codes of categories come first, and have holes of their own.
        self._n_categorical = len(schema.categorical)
        self._spiked = list(schema.shaping.spiked)

    def energies(self, hole: BoolArray, no_code: BoolArray) -> FloatArray:
        """Return minus the log densities (C, S) of draws from classes, with some holes.

        Parameters
        ----------
        hole : ndarray of shape (d, T)
            Where real columns have no value.
        no_code : ndarray of shape (f, T)
            Where categorical columns have none.
        """
        frames = self._frames
        if hole.any() or no_code.any():
            n = len(self._labels)
            no_codes = np.tile(np.vstack([no_code, hole[self._spiked]]), n)
            seen = ~np.tile(hole, n)
            if frames.observed is not None:
                seen &= frames.observed
            frames = Rows(
                np.where(seen, frames.real, 0.0),
                seen,
                np.where(no_codes, MISSING_CODE, frames.codes),
            )[:]
        prepared = self._model.prepare(SequenceRows(frames, self._lengths))
        log_density, _ = class_posterior(self._model.evaluate(prepared).log_joint)
        return -log_density.reshape(self._model.n_classes, -1)


def _log_tails(energies: FloatArray, level: FloatArray) -> FloatArray:
    """Return logs of the probabilities (C, n) of energies of at least some levels (n,).

    Those of each class have a shifted gamma distribution, whose moments are those of the
    drawn ones (C, S).
    """
    mean = energies.mean(axis=1, keepdims=True)
    deviation = energies.std(axis=1, keepdims=True)
    floor = np.maximum(deviation, np.finfo(float).tiny)
    skew = np.mean(((energies - mean) / floor) ** 3, axis=1, keepdims=True)
    skew = np.clip(skew, _LEAST_SKEW, _MOST_SKEW)
    # A gamma distribution of this mean has this skewness.
    own_mean = 2.0 * deviation / skew
    return log_gamma_tail(level - mean + own_mean, own_mean, deviation**2)
