"""Conjugate priors of several kinds of columns next to each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.conjugates.base import Conjugate, Prepared


@registered
@dataclass(frozen=True)
class Independent(Conjugate):
    """Priors of parts of a row that are independent of each other.

    Parameters
    ----------
    parts : tuple of Conjugate
        Each reads its own part of a row, the real or the categorical columns.
    """

    parts: tuple[Conjugate, ...]

    def check_consistent(self) -> None:
        """Raise ValueError unless all parts are conjugate priors."""
        require_instance("parts", self.parts, tuple)
        require(len(self.parts) > 0, "parts are missing")
        for part in self.parts:
            require_instance("a part", part, Conjugate)

    @property
    def blocks(self) -> IntArray:
        first = np.cumsum([0, *(part.n_blocks for part in self.parts)])
        pairs = zip(self.parts, first, strict=False)
        return np.concatenate([part.blocks + start for part, start in pairs])

    def prepare(self, rows: Rows) -> list[Prepared]:
        return [part.prepare(rows) for part in self.parts]

    def statistics(self, prepared: list[Prepared], weights: FloatArray) -> FloatArray:
        pairs = zip(self.parts, prepared, strict=True)
        return np.hstack([part.statistics(own, weights) for part, own in pairs])

    def prior(self, statistics: FloatArray) -> FloatArray:
        return np.hstack([part.prior(own) for part, own in self._split(statistics)])

    def evaluate(self, hyper: FloatArray) -> tuple[FloatArray, FloatArray]:
        pairs = [part.evaluate(own) for part, own in self._split(hyper)]
        values, expected = zip(*pairs, strict=True)
        return np.hstack(values), np.hstack(expected)

    def log_densities(self, prepared: list[Prepared], expected: FloatArray) -> FloatArray:
        triples = zip(self._split(expected), prepared, strict=True)
        return reduce(
            np.add, (part.log_densities(rows, own) for (part, own), rows in triples)
        )

    def edge_probabilities(self, hyper: FloatArray) -> FloatArray | None:
        found = (part.edge_probabilities(own) for part, own in self._split(hyper))
        return next((edges for edges in found if edges is not None), None)

    def _split(self, hyper: FloatArray) -> list[tuple[Conjugate, FloatArray]]:
        """Return each part with its own columns of hyperparameters."""
        ends = np.cumsum([part.n_hyperparameters for part in self.parts])[:-1]
        return list(zip(self.parts, np.split(hyper, ends, axis=1), strict=True))
