"""Subsets of columns to ask a model about, and the Shapley values of its answers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from scipy.special import comb

from hybridmix._typing import BoolArray, FloatArray, IntArray

# Pairs per column, at least: least squares need more pairs than columns, and standard
# errors more that were drawn.
_FEWEST_PAIRS, _FEWEST_DRAWN = 3, 2


class Coalitions(Protocol):
    """Subsets of d columns, whose values give the Shapley values of the columns.

    Attributes
    ----------
    shown : ndarray of bool, shape (m, d)
        Which columns each subset has.
    """

    @property
    def shown(self) -> BoolArray:
        """Which columns each subset has, (m, d)."""

    def attributions(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Shapley values and their standard errors, both (d, ...).

        Parameters
        ----------
        values : ndarray of shape (m, ...)
            Values of the subsets.
        """


@dataclass(frozen=True)
class AllSubsets:
    r"""All subsets, as the definition has them.

    .. math:: \phi_j = \sum_{S \not\ni j} \frac{v(S \cup j) - v(S)}{d \binom{d-1}{|S|}}.
    """

    shown: BoolArray

    @classmethod
    def of(cls, n_columns: int) -> AllSubsets:
        """List all subsets; the bits of their numbers are the columns."""
        numbers = np.arange(1 << n_columns)
        return cls((numbers[:, None] >> np.arange(n_columns)) & 1 == 1)

    def attributions(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the Shapley values, and zeros: they are exact."""
        n_columns = self.shown.shape[1]
        others = self.shown.sum(axis=1)[:, None] - self.shown  # than the column itself
        weights = 1.0 / (n_columns * comb(n_columns - 1, others))
        found = np.tensordot(np.where(self.shown, weights, -weights), values, (0, 0))
        return found, np.zeros_like(found)


@dataclass(frozen=True)
class DrawnPairs:
    r"""Pairs of a subset and its complement, by least squares.

    Shapley values are the coefficients of the additive function that is closest to
    :math:`v`, if sets of size :math:`s` have a total weight of :math:`1 / (s (d - s))`
    and the empty and the full set are met exactly (Charnes et al., 1988). Of a pair of
    complements, only the difference counts:

    .. math:: \min_\phi \sum_i w_i \big(v(S_i) - v(S_i^c) - \sigma_i^T \phi\big)^2, \quad
              \sum_j \phi_j = v(N) - v(\emptyset), \quad
              \sigma_{ij} = \pm 1 \text{ for } j \in S_i \text{ or not}.

    This is exact if columns interact in pairs at most.

    Attributes
    ----------
    shown : ndarray of bool, shape (2p + 2, d)
        A subset of each pair, their complements, the full subset, the empty one.
    weights : ndarray of shape (p,)
        Weights of the pairs.
    counts : ndarray of shape (p,)
        How many times they were drawn; 0 for those of sizes that are here completely.
    """

    shown: BoolArray
    weights: FloatArray
    counts: IntArray

    @classmethod
    def draw(
        cls, n_columns: int, n_pairs: int, generator: np.random.Generator
    ) -> DrawnPairs:
        """Take all pairs of sizes that are cheap for their weight, and draw others."""
        sizes = np.arange(1, n_columns // 2 + 1)
        shares = 1.0 / (sizes * (n_columns - sizes))
        shares[2 * sizes == n_columns] /= 2.0  # both subsets of a pair have this size
        whole, whole_weights, n_left = [], [], n_pairs
        for size, share in zip(sizes, shares, strict=True):
            expected = n_left * share / shares[size - 1 :].sum()
            most = min(expected, n_left - _FEWEST_DRAWN * n_columns)
            if comb(n_columns, size, exact=True) > most:
                break
            pairs = _pairs_of_size(n_columns, int(size))
            whole.append(pairs)
            whole_weights.append(np.full(len(pairs), share / len(pairs)))
            n_left -= len(pairs)
        rest = slice(len(whole), None)
        drawn, counts = _drawn_pairs(
            n_columns, n_left, sizes[rest], shares[rest], generator
        )
        pairs = np.concatenate([*whole, drawn])
        ends = np.array([[True], [False]]).repeat(n_columns, axis=1)
        n_whole = len(pairs) - len(drawn)
        return cls(
            np.concatenate([pairs, ~pairs, ends]),
            np.concatenate([*whole_weights, shares[rest].sum() / n_left * counts]),
            np.concatenate([np.zeros(n_whole, dtype=counts.dtype), counts]),
        )

    def attributions(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients, and standard errors from their residuals."""
        n_pairs, n_columns = len(self.weights), self.shown.shape[1]
        flat = values.reshape(len(values), -1)
        gains = flat[:n_pairs] - flat[n_pairs : 2 * n_pairs]
        signs = np.where(self.shown[:n_pairs], 1.0, -1.0)
        weighted = signs.T * self.weights
        inverse = np.linalg.inv(weighted @ signs)
        # The multiplier of the constraint takes its part out of every coefficient.
        part = inverse.sum(axis=1) / inverse.sum()
        influence = (inverse - np.outer(part, inverse.sum(axis=0))) @ weighted
        found = influence @ gains + np.outer(part, flat[-2] - flat[-1])
        drawn = self.counts > 0
        counts, own = self.counts[drawn], influence[:, drawn]
        residuals = (gains - signs @ found)[drawn]
        n_drawn = int(counts.sum())
        mean = own @ residuals / n_drawn
        variance = (own**2 / counts) @ residuals**2 - n_drawn * mean**2
        variance *= n_drawn / (n_drawn - n_columns)
        errors = np.sqrt(np.maximum(variance, 0.0))
        shape = (n_columns, *values.shape[1:])
        return found.reshape(shape), errors.reshape(shape)


def _pairs_of_size(n_columns: int, size: int) -> BoolArray:
    """Return one subset, that with column 0, of all pairs with a subset of some size."""
    others = [
        (0, *chosen)
        for own in sorted({size, n_columns - size})
        for chosen in combinations(range(1, n_columns), own - 1)
    ]
    pairs = np.zeros((len(others), n_columns), dtype=bool)
    for row, columns in enumerate(others):
        pairs[row, list(columns)] = True
    return pairs


def _drawn_pairs(
    n_columns: int,
    n_drawn: int,
    sizes: IntArray,
    shares: FloatArray,
    generator: np.random.Generator,
) -> tuple[BoolArray, IntArray]:
    """Draw pairs whose sizes have given shares; return the distinct ones, and counts."""
    # Evenly spaced levels: all sizes are drawn as often as they should be.
    levels = (np.arange(n_drawn) + generator.random()) / n_drawn
    places = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], levels)
    ranks = generator.permuted(np.tile(np.arange(n_columns), (n_drawn, 1)), axis=1)
    drawn = ranks < sizes[places, None]
    drawn ^= ~drawn[:, :1]  # the subset of the pair that has column 0
    _, first, counts = np.unique(
        np.packbits(drawn, axis=1), axis=0, return_index=True, return_counts=True
    )
    return drawn[first], counts


def choose_coalitions(n_columns: int, most: int, seed: int) -> Coalitions:
    """Take all subsets if they are few enough, and otherwise draw pairs of them.

    Parameters
    ----------
    n_columns : int
        Number of columns, d.
    most : int
        Number of subsets that may be asked about, or about six per column if that is
        more.
    seed : int
        Seed of the draws, which depend on it and on the number of columns only.
    """
    n_pairs = max(most // 2 - 1, _FEWEST_PAIRS * n_columns)
    # All subsets are 2 ** (d - 1) - 1 pairs, the empty one and the full one.
    if n_columns <= n_pairs.bit_length() or 1 << n_columns <= most:
        return AllSubsets.of(n_columns)
    generator = np.random.default_rng([seed, n_columns])
    return DrawnPairs.draw(n_columns, n_pairs, generator)
