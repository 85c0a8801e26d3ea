"""Discriminative training of class-conditional models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from hybridmix._checks import check_flag, check_number, check_word, check_word_or_object
from hybridmix._parallel import Workers
from hybridmix.data.blocks import BlockedUnits
from hybridmix.data.rows import LabelledUnits
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.base import Model
from hybridmix.objectives import (
    Blend,
    ConditionalLikelihood,
    Likelihood,
    Margin,
    Objective,
    ScaledMargin,
)
from hybridmix.problem import problem_of
from hybridmix.solvers import (
    EarlyStopping,
    ExtendedBaumWelch,
    LimitedMemoryBFGS,
    Solution,
    Solver,
)
from hybridmix.training.effort import warn_if_long
from hybridmix.training.families import M, refined, refining

OBJECTIVES = ("hybrid", "likelihood", "conditional", "margin")
# With a log margin that grows with the number of columns, as log densities do, the
# tradeoff can stay the same from table to table.
_MARGIN_PER_COLUMN = 0.4


def _ramp(margin: float) -> Margin:
    # Rows that are farther on the wrong side than desired on the right one are given up.
    return Margin(margin=margin, width=0.5 * margin, largest_loss=2.0 * margin)


# Discriminative terms by name, for a desired log margin.
LOSSES: dict[str, Callable[[float], Objective]] = {
    "log": lambda _: ConditionalLikelihood(),
    "hinge": lambda margin: Margin(margin=margin, width=0.5 * margin),
    "ramp": _ramp,
    # The value of a scaled margin is flat where the power of the margin exceeds two.
    "scaled": lambda margin: ScaledMargin(power=float(np.log(2.0)) / margin),
}
# Solvers by name, for a number of iterations and the curvature of the objective.
SOLVERS: dict[str, Callable[[int, float], Solver]] = {
    "lbfgs": lambda n_steps, curvature: LimitedMemoryBFGS(n_steps, curvature=curvature),
    "baum-welch": lambda n_steps, _: ExtendedBaumWelch(n_steps),
}
_OBJECTIVE_CONTRACT = ("values_and_weights", "needs_rivals", "signed", "parts")


@dataclass(frozen=True)
class Discrimination:
    """The options of discriminative training; checked when made.

    The attributes are those of `HybridMixtureClassifier`.
    """

    objective: str
    tradeoff: float
    margin: float | str
    loss: str | Objective
    solver: str | Solver
    n_steps: int
    patience: int
    generalisation_loss: float | None
    validation_fraction: float | None
    refine_subspace: bool

    def __post_init__(self) -> None:
        check_word("objective", self.objective, OBJECTIVES)
        check_word_or_object(
            "loss",
            self.loss,
            ("auto", *LOSSES),
            _OBJECTIVE_CONTRACT,
            "hybridmix.objectives.Objective",
        )
        check_word_or_object(
            "solver", self.solver, SOLVERS, ("solve",), "hybridmix.solvers.Solver"
        )
        if self.objective == "margin" and self.loss == "log":
            raise ValueError(
                "loss='log' is not a margin; use objective='conditional' for it alone."
            )
        takes_all = getattr(self.solver, "takes_signed_weights", True)
        if not self.is_generative and not takes_all:
            raise ValueError(
                f"solver={self.solver!r} maximises likelihoods only, and "
                f"objective={self.objective!r} is not one: use solver='lbfgs'."
            )
        check_number("tradeoff", self.tradeoff, 0.0, 1e9, or_word="auto")
        check_number("margin", self.margin, 1e-6, 1e9, or_word="auto")
        check_number("n_steps", self.n_steps, 1, whole=True)
        check_number("patience", self.patience, 1, whole=True)
        if self.generalisation_loss is not None:
            check_number("generalisation_loss", self.generalisation_loss, 0.0)
        if self.validation_fraction is not None:
            check_number("validation_fraction", self.validation_fraction, 0.0, 0.5)
        check_flag("refine_subspace", self.refine_subspace)

    @property
    def is_generative(self) -> bool:
        """Whether the likelihood is all that is maximised."""
        return self.objective == "likelihood"

    def term(self, n_columns: int) -> Objective:
        """Return the discriminative term, for a table of this many columns."""
        if not isinstance(self.loss, str) and self.objective != "conditional":
            return self.loss
        name = self.loss
        if self.objective == "conditional":
            name = "log"
        elif name == "auto":
            name = "log" if self.objective == "hybrid" else "hinge"
        margin = self.margin
        if isinstance(margin, str):
            margin = _MARGIN_PER_COLUMN * n_columns
        return LOSSES[str(name)](float(margin))

    def blend(self, n_columns: int, unlabelled_weight: float) -> Objective:
        """Return what is maximised."""
        term = self.term(n_columns)
        if self.objective != "hybrid":
            return term
        return Blend(Likelihood(unlabelled_weight), term, float(self.tradeoff))

    def chosen_solver(self) -> Solver:
        """Return the solver; a given object is used as it is."""
        if not isinstance(self.solver, str):
            return self.solver
        # Where every row counts in the discriminative term, this is how much it adds.
        curvature = 1.0 + (self.tradeoff if self.objective == "hybrid" else 0.0)
        return SOLVERS[self.solver](self.n_steps, curvature)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the optional methods of models that the solver calls; of EM, none."""
        if self.is_generative:
            return ()
        needs: tuple[str, ...] = getattr(self.chosen_solver(), "needs", ())
        return needs


def likelihood_only() -> Discrimination:
    """Return the options of a training that ends with EM."""
    return Discrimination(
        "likelihood",
        0.0,
        "auto",
        "auto",
        "lbfgs",
        1,
        1,
        None,
        None,
        refine_subspace=False,
    )


def discriminate(
    options: Discrimination,
    objective: Objective,
    dataset: LabelledUnits | BlockedUnits,
    validation: LabelledUnits | None,
    start: M,
    learn_class_prior: bool,
    generator: np.random.Generator,
    pool: Workers,
) -> Solution[M]:
    """Train a model; with validation rows, keep the one of the lowest error on them.

    The traces have the discriminative term without its weight, and the validation error.

    Parameters
    ----------
    options : Discrimination
        What to do.
    objective : Objective
        What is maximised: the `blend` of the options, for the table at hand.
    dataset : Dataset, SequenceDataset or BlockedUnits
        Labelled and unlabelled rows.
    validation : Dataset or None
        Labelled rows to stop by.
    start : Mixture or Chains
        Where to begin.
    learn_class_prior : bool
        Whether class probabilities are estimated.
    generator : numpy.random.Generator
        Source of randomness.
    pool : Workers
        Threads.
    """
    if options.refine_subspace:
        start = refining(start)
    problem = problem_of(dataset, objective, start, pool, learn_class_prior)
    solver = options.chosen_solver()
    n_steps = getattr(solver, "max_iter", options.n_steps)
    warn_if_long(problem, start, solver, n_steps)
    stopping = None
    if validation is not None:
        loss = options.generalisation_loss
        stopping = EarlyStopping(
            validation_error(validation, start, pool),
            options.patience,
            np.inf if loss is None else loss,
        )
    solution = solver.solve(problem, start, stopping, generator)
    model = solution.model
    traces = dict(solution.traces)
    if stopping is not None:
        traces["validation_error"] = stopping.losses
        model = cast(M, stopping.best_model or model)
    if isinstance(objective, Blend) and objective.tradeoff:
        for name in objective.second.parts:
            traces[name] = [value / objective.tradeoff for value in traces[name]]
    return replace(solution, model=refined(model), traces=traces)


def validation_error(
    dataset: LabelledUnits, model: Model, pool: Workers
) -> Callable[[Model], float]:
    """Return a function of models like the given one: their error on labelled rows."""
    rows = ChunkedRows(dataset.rows, model, pool, keep=True)
    weights = dataset.filled_weights

    def error(model: Model) -> float:
        best = rows.joined(model, lambda evaluation: evaluation.log_joint.argmax(axis=0))
        is_wrong = best != dataset.labels
        return float(weights[is_wrong].sum() / weights.sum())

    return error
