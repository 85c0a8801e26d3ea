"""Training of one mixture of rows and targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.data.targets import TargetPlaces
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.hiding import TargetModel
from hybridmix.models.mixture import Mixture
from hybridmix.models.predictive import residuals
from hybridmix.objectives import Blend, Likelihood, PredictiveLikelihood
from hybridmix.problem import problem_of
from hybridmix.solvers import LimitedMemoryBFGS, Solution
from hybridmix.training.candidates import Candidate
from hybridmix.training.classes import ClassTrainer, Estimation
from hybridmix.training.families import family_maker, fitted_subspace, subspace_of

# Spreads that held-out rows choose from; the one in the middle is 1.
SPREADS = np.exp(np.linspace(-0.6, 0.6, 25))


@dataclass(frozen=True)
class TargetTrainer:
    """What all trainings of one fit share.

    Attributes
    ----------
    schema : Schema
        Of the joint table.
    places : TargetPlaces
        Where the targets stand in its rows.
    n_steps : int
        Largest number of L-BFGS iterations.
    pool : Workers
        Threads.
    """

    schema: Schema
    places: TargetPlaces
    n_steps: int
    pool: Workers

    def fitted(
        self,
        candidate: Candidate,
        dataset: TrainingRows,
        estimation: Estimation,
        start: str | Mixture,
        seed: Sequence[int],
    ) -> Solution[Mixture]:
        """Fit a mixture of rows and targets by EM."""
        structure = candidate.structure
        if isinstance(start, Mixture):
            subspace = subspace_of(start)
        else:
            subspace = fitted_subspace(structure, self.schema, dataset)
        family_of = family_maker(structure, self.schema, dataset, subspace)
        trainer = ClassTrainer(
            family_of,
            estimation.solver(),
            estimation.n_init,
            np.random.default_rng(seed),
            self.pool,
        )
        n_components = dataset.n_distinct(candidate.n_components)
        [fit] = trainer.fit(dataset, [[n_components]], start, ["The table"])
        return Solution(
            fit.model,
            fit.value,
            {name: list(trace) for name, trace in fit.traces.items()},
            fit.converged,
            fit.interrupted,
            fit.n_reseeded,
            fit.n_iter,
        )

    def conditioned(
        self, start: Mixture, dataset: TrainingRows, tradeoff: float
    ) -> Solution[Mixture]:
        """Raise the likelihood plus a multiple of the predictive likelihood by L-BFGS."""
        model = TargetModel(start, self.places)
        objective = Blend(Likelihood(), PredictiveLikelihood(), tradeoff)
        problem = problem_of(dataset, objective, model, self.pool)
        solver = LimitedMemoryBFGS(self.n_steps, curvature=1.0 + tradeoff)
        solution = solver.solve(problem, model)
        return Solution(
            solution.model.mixture,
            solution.value,
            solution.traces,
            solution.converged,
            solution.interrupted,
            n_iter=solution.n_iter,
        )

    def log_predictive(self, model: Mixture, dataset: Dataset) -> FloatArray:
        """Return log predictive densities for all spreads, then log p(x), (G + 1, n).

        They are in the units of the table.
        """
        rows = dataset.rows
        chunked = ChunkedRows(rows, model, self.pool)

        def score(number: int) -> FloatArray:
            part = rows[chunked.chunks[number]]
            found = residuals(model, part, self.places)
            logs = [found.log_predictive(float(spread)) for spread in SPREADS]
            volume = self.schema.log_volumes(part)
            own_volume = self.schema.log_volumes(self.places.hidden(part))
            predictive = np.array(logs) - (volume - own_volume)
            return np.vstack([predictive, found.log_density - own_volume])

        return np.concatenate(list(chunked.map(score)), axis=1)
