"""Training of the layers of a network that was built."""

from __future__ import annotations

from dataclasses import replace

from hybridmix._parallel import Workers
from hybridmix.data import TrainingRows
from hybridmix.models.network import Network
from hybridmix.models.readout import Readout
from hybridmix.objectives import Objective
from hybridmix.problem import problem_of
from hybridmix.solvers import LimitedMemoryBFGS, Solution
from hybridmix.training.discriminative import Discrimination

# The output layer is solved to this precision of the mean value, which takes little time
# compared with the mixtures.
_MOST_STEPS, _TOL = 500, 1e-7
# The likelihood of rows does not change with the output layer.
_KEPT_TRACES = ("value", "training_error")


def trained_output(
    network: Network, dataset: TrainingRows, objective: Objective, pool: Workers
) -> Solution[Network]:
    """Solve the output layer to optimality; the mixtures stay as they are.

    Its traces have no likelihood, which does not change.
    """
    readout = network.readout
    labelled = dataset.labelled()
    problem = problem_of(labelled, objective, readout, pool)
    solution = LimitedMemoryBFGS(_MOST_STEPS, _TOL).solve(problem, readout)
    found: Readout = solution.model
    traces = {k: v for k, v in solution.traces.items() if k in _KEPT_TRACES}
    output = found.output.settled()
    return Solution(
        replace(network, output=output),
        solution.value,
        traces,
        converged=solution.converged,
        interrupted=solution.interrupted,
        n_iter=solution.n_iter,
    )


def trained_jointly(
    network: Network,
    dataset: TrainingRows,
    objective: Objective,
    discrimination: Discrimination,
    pool: Workers,
) -> Solution[Network]:
    """Train both layers by L-BFGS, then solve the output layer for what it has led to."""
    problem = problem_of(dataset, objective, network, pool)
    solution = discrimination.chosen_solver().solve(problem, network)
    model: Network = solution.model
    model = replace(model, output=model.output.settled())
    if solution.interrupted:
        return replace(solution, model=model)
    last = trained_output(model, dataset, objective, pool)
    return replace(solution, model=last.model, interrupted=last.interrupted)
