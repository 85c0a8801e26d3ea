"""Discriminative training of a class-conditional mixture."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._parallel import Workers
from hybridmix.data import Dataset
from hybridmix.mixture import Mixture
from hybridmix.objectives import (
    Blend,
    ConditionalLikelihood,
    Likelihood,
    Margin,
    Objective,
)
from hybridmix.problem import Problem
from hybridmix.solvers import EarlyStopping, LimitedMemoryBFGS, Solution

OBJECTIVES = ("likelihood", "hybrid", "conditional", "margin")
# Beside a log margin that grows with the number of columns, as log densities do, the
# tradeoff can stay the same from table to table.
_MARGIN_PER_COLUMN = 0.4


@dataclass(frozen=True)
class DiscriminativeTraining:
    """Ascent of an objective from the mixture that EM found.

    Attributes
    ----------
    objective : {"hybrid", "conditional", "margin"}
        What is maximised.
    tradeoff : float
        Weight of the margin term beside the likelihood.
    margin : float
        Desired log margin.
    unlabelled_weight : float
        What an unlabelled row counts in the likelihood.
    solver : LimitedMemoryBFGS
        Runs from the start.
    patience : int
        Iterations without a lower validation error before stopping.
    """

    objective: str
    tradeoff: float
    margin: float
    unlabelled_weight: float
    solver: LimitedMemoryBFGS
    patience: int

    @property
    def _curvature(self) -> float:
        """How many times as curved as the likelihood the objective is, roughly."""
        return 1.0 + self.tradeoff if self.objective == "hybrid" else 1.0

    def _objective(self) -> Objective:
        if self.objective == "conditional":
            return ConditionalLikelihood()
        margin = Margin(margin=self.margin, width=0.5 * self.margin)
        if self.objective == "margin":
            return margin
        return Blend(Likelihood(self.unlabelled_weight), margin, self.tradeoff)

    def solve(
        self, dataset: Dataset, validation: Dataset | None, start: Mixture, pool: Workers
    ) -> tuple[Solution, list[float]]:
        """Return the solution, and the validation errors of its iterations.

        With validation rows, the model is the one of the lowest error on them.
        """
        problem = Problem(
            dataset, start.family, self._objective(), start.n_components, pool
        )
        if validation is None:
            return self.solver.solve(problem, start, self._curvature), []
        stopping = EarlyStopping(
            lambda model: error_rate(model, validation), self.patience
        )
        solution = self.solver.solve(problem, start, self._curvature, stopping)
        assert stopping.best_model is not None
        return replace(solution, model=stopping.best_model), stopping.losses


def default_margin(n_columns: int) -> float:
    """Return a desired log margin for a table of this many columns."""
    return _MARGIN_PER_COLUMN * n_columns


def error_rate(model: Mixture, dataset: Dataset) -> float:
    """Return the share of labelled rows that a model misclassifies, by weight."""
    width = model.family.width(model.n_components, dataset.rows.observed)
    weights = np.ones(dataset.n_rows) if dataset.weights is None else dataset.weights
    wrong = 0.0
    for chunk in row_chunks(dataset.n_rows, width):
        prepared = model.family.prepare(dataset.rows[chunk])
        best = model.evaluate(prepared).log_joint.argmax(axis=0)
        wrong += weights[chunk][best != dataset.labels[chunk]].sum()
    return wrong / float(weights.sum())
