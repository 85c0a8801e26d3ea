"""Quasi-Newton ascent in whitened coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from hybridmix._typing import FloatArray
from hybridmix.mixture import Mixture, MixtureCoordinates
from hybridmix.problem import Problem
from hybridmix.solvers.solution import Solution


@dataclass(frozen=True)
class LimitedMemoryBFGS:
    """Maximise any objective by L-BFGS, from a mixture that was fitted by EM.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the mean value per row rises by less, relative to its size.
    learn_prior : bool
        Whether class probabilities are learned, or kept as they are.
    memory : int
        Number of steps that the curvature is estimated from.
    verbose : bool
        Print the value every ten iterations.
    """

    max_iter: int = 200
    tol: float = 1e-6
    learn_prior: bool = True
    memory: int = 10
    verbose: bool = False

    def solve(
        self,
        problem: Problem,
        start: Mixture,
        curvature: float = 1.0,
        watch: Callable[[Mixture], bool] | None = None,
    ) -> Solution:
        """Iterate from a start; an interrupt (Ctrl-C) ends it with what it has.

        Parameters
        ----------
        problem : Problem
            What is maximised.
        start : Mixture
            Where to begin; the coordinates are white for the likelihood there.
        curvature : float
            How many times as curved as the likelihood the objective is, roughly.
        watch : callable or None
            Looks at the model of the start and of every iteration; stops if True.
        """
        total = problem.total_weight
        counts = curvature * total * np.exp(start.log_weights)
        coordinates = MixtureCoordinates(start, counts, self.learn_prior)
        # One step of the whitened coordinates changes the sum over rows by one half; for
        # the mean over rows, steps are longer by the root of their number.
        unit = np.sqrt(total)
        trace: list[float] = []
        best = start

        def loss(vector: FloatArray) -> tuple[float, FloatArray]:
            model = coordinates.mixture(unit * vector)
            value, statistics = problem.value_and_statistics(model)
            value += model.log_prior_density()
            statistics.components.add(model.family.prior_statistics(model.components))
            gradient = coordinates.gradient(unit * vector, statistics)
            if not trace:
                trace.append(value / total)
            return -value / total, -gradient * (unit / total)

        def look(intermediate_result: Any) -> None:
            nonlocal best
            best = coordinates.mixture(unit * intermediate_result.x)
            trace.append(-float(intermediate_result.fun))
            if self.verbose and len(trace) % 10 == 1:
                print(f"  iteration {len(trace) - 1:4d}  mean value {trace[-1]:.6f}")
            if watch is not None and watch(best):
                raise StopIteration

        interrupted, converged = False, watch is not None and watch(start)
        try:
            result = minimize(
                loss,
                np.zeros(coordinates.size),
                jac=True,
                method="L-BFGS-B",
                callback=look,
                options={
                    "maxiter": self.max_iter,
                    "maxcor": self.memory,
                    "ftol": self.tol,
                    "gtol": 0.0,
                },
            )
            # 99: a callback asked to stop; 1: the largest number of iterations.
            converged = result.status != 1
        except KeyboardInterrupt:
            interrupted = True
        return Solution(
            best,
            trace[-1] if trace else float("nan"),
            trace,
            converged=converged,
            interrupted=interrupted,
            n_iter=max(0, len(trace) - 1),
        )
