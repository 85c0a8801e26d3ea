"""Discriminative training of a class-conditional mixture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridmix._checks import check_number
from hybridmix._chunks import row_chunks
from hybridmix._parallel import Workers
from hybridmix._typing import FloatArray
from hybridmix.data import Dataset
from hybridmix.mixture import Mixture
from hybridmix.objectives import (
    Blend,
    ConditionalLikelihood,
    Likelihood,
    Margin,
    Objective,
    ScaledMargin,
)
from hybridmix.objectives.margin import MarginObjective
from hybridmix.problem import Problem
from hybridmix.solvers import (
    EarlyStopping,
    ExtendedBaumWelch,
    LimitedMemoryBFGS,
    Solution,
)

OBJECTIVES = ("hybrid", "likelihood", "conditional", "margin")
LOSSES = ("auto", "log", "hinge", "ramp", "scaled")
SOLVERS = ("lbfgs", "baum-welch")
# Beside a log margin that grows with the number of columns, as log densities do, the
# tradeoff can stay the same from table to table.
_MARGIN_PER_COLUMN = 0.4


def check_discrimination(estimator: Any) -> None:
    """Refuse options of discriminative training that make no sense."""
    objective, loss, solver = estimator.objective, estimator.loss, estimator.solver
    if objective not in OBJECTIVES:
        raise ValueError(
            f"objective={objective!r} is not one of {', '.join(OBJECTIVES)}."
        )
    terms = (MarginObjective, ConditionalLikelihood)
    if not isinstance(loss, terms) and loss not in LOSSES:
        raise ValueError(
            f"loss={loss!r} is not one of {', '.join(LOSSES)}, and no margin or "
            "conditional likelihood of hybridmix.objectives."
        )
    is_log = isinstance(loss, ConditionalLikelihood) or loss == "log"
    if objective == "margin" and is_log:
        raise ValueError(
            "loss='log' is not a margin; use objective='conditional' for it alone."
        )
    solvers = (LimitedMemoryBFGS, ExtendedBaumWelch)
    if not isinstance(solver, solvers) and solver not in SOLVERS:
        raise ValueError(
            f"solver={solver!r} is not one of {', '.join(SOLVERS)}, and no object of "
            "hybridmix.solvers."
        )
    is_gradient = isinstance(solver, LimitedMemoryBFGS) or solver == "lbfgs"
    refines = estimator.refine_subspace and estimator.covariance_type == "subspace"
    if refines and objective != "likelihood" and not is_gradient:
        raise ValueError(
            "refine_subspace=True needs a gradient method: use solver='lbfgs' instead of "
            f"{solver!r}."
        )
    check_number("tradeoff", estimator.tradeoff, 0.0)
    if estimator.margin != "auto":
        check_number("margin", estimator.margin, 1e-6)
    check_number("n_steps", estimator.n_steps, 1, whole=True)
    check_number("patience", estimator.patience, 1, whole=True)
    if estimator.generalisation_loss is not None:
        check_number("generalisation_loss", estimator.generalisation_loss, 0.0)
    if estimator.validation_fraction is not None:
        check_number("validation_fraction", estimator.validation_fraction, 0.0, 0.5)


def default_margin(n_columns: int) -> float:
    """Return a desired log margin for a table of this many columns."""
    return _MARGIN_PER_COLUMN * n_columns


def discrimination(objective: str, loss: str | Objective, margin: float) -> Objective:
    """Return the discriminative term of an objective and a loss, by their names."""
    if objective == "conditional":
        return ConditionalLikelihood()
    if isinstance(loss, Objective):
        return loss
    if loss == "auto":
        loss = "log" if objective == "hybrid" else "hinge"
    if loss == "log":
        return ConditionalLikelihood()
    if loss == "scaled":
        # Its value is flat where the power of the margin exceeds two.
        return ScaledMargin(power=float(np.log(2.0)) / margin)
    hinge = Margin(margin=margin, width=0.5 * margin)
    # Rows that are farther on the wrong side than desired on the right one are given up.
    return hinge if loss == "hinge" else replace(hinge, largest_loss=2.0 * margin)


@dataclass(frozen=True)
class DiscriminativeTraining:
    """Ascent of an objective from the mixture that EM found.

    Attributes
    ----------
    term : Objective
        The discriminative term.
    tradeoff : float or None
        Its weight beside the likelihood; None for the term alone.
    unlabelled_weight : float
        What an unlabelled row counts in the likelihood.
    solver : LimitedMemoryBFGS or ExtendedBaumWelch
        Runs from the start.
    patience : int
        Iterations without a lower validation error before stopping.
    generalisation_loss : float
        Relative rise of the validation error before stopping.
    """

    term: Objective
    tradeoff: float | None
    unlabelled_weight: float
    solver: LimitedMemoryBFGS | ExtendedBaumWelch
    patience: int
    generalisation_loss: float

    def _objective(self) -> Objective:
        if self.tradeoff is None:
            return self.term
        return Blend(Likelihood(self.unlabelled_weight), self.term, self.tradeoff)

    def solve(
        self, dataset: Dataset, validation: Dataset | None, start: Mixture, pool: Workers
    ) -> Solution:
        """Train; with validation rows, keep the model of the lowest error on them.

        The traces have the discriminative term without its weight, and the validation
        error.
        """
        objective = self._objective()
        problem = Problem(dataset, start.family, objective, start.n_components, pool)
        if validation is None:
            solution = self.solver.solve(problem, start)
        else:
            stopping = EarlyStopping(
                lambda model: error_rate(model, validation),
                self.patience,
                self.generalisation_loss,
            )
            solution = self.solver.solve(problem, start, stopping)
            solution.traces["validation_error"] = stopping.losses
            if stopping.best_model is not None:
                solution = replace(solution, model=stopping.best_model)
        if self.tradeoff:
            for name in self.term.parts:
                trace = solution.traces[name]
                solution.traces[name] = [value / self.tradeoff for value in trace]
        return solution


def error_rate(model: Mixture, dataset: Dataset) -> float:
    """Return the share of labelled rows that a model misclassifies, by weight."""
    best = log_joint(model, dataset).argmax(axis=0)
    weights = dataset.filled_weights
    return float(weights[best != dataset.labels].sum() / weights.sum())


def log_joint(model: Mixture, dataset: Dataset) -> FloatArray:
    """Return the log joint densities (C, n) of all rows."""
    width = model.family.width(model.n_components, dataset.rows.observed)
    parts = [
        model.evaluate(model.family.prepare(dataset.rows[chunk])).log_joint
        for chunk in row_chunks(dataset.n_rows, width)
    ]
    return np.concatenate(parts, axis=1)


def chosen_solver(
    solver: Any, n_steps: int, tradeoff: float | None, learn_prior: bool, verbose: bool
) -> LimitedMemoryBFGS | ExtendedBaumWelch:
    """Return a solver by name, or a given one with the estimator's options."""
    if not isinstance(solver, str):
        return replace(solver, learn_prior=learn_prior, verbose=verbose)
    if solver == "baum-welch":
        return ExtendedBaumWelch(
            max_iter=n_steps, learn_prior=learn_prior, verbose=verbose
        )
    return LimitedMemoryBFGS(
        max_iter=n_steps,
        learn_prior=learn_prior,
        # Where every row counts in the margin, this is how much it adds.
        curvature=1.0 + (tradeoff or 0.0),
        verbose=verbose,
    )
