"""Passes over the rows that EM needs, plain and accelerated.

Both begin with the same start and run until a plain step gains less than 1e-6 per row.
Plain EM at a tolerance ends at some likelihood; what counts is when each of the two first
comes as close to it as the tolerance, in passes and in seconds of processor time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    load_xy,
    parse_options,
    print_table,
    punch_holes,
    ratio,
    say,
    write_table,
)
from models import dataset_of
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from hybridmix._parallel import workers
from hybridmix.families import DiagonalGaussian, FullGaussian, VariancePrior
from hybridmix.models import Mixture
from hybridmix.objectives import Likelihood
from hybridmix.problem import Assessment, Problem
from hybridmix.solvers import ExpectationMaximisation
from hybridmix.training.starts import start_mixture

TOLERANCES = (1e-4, 1e-6)
HOLES = (0.0, 0.3, 0.5)
COMPONENTS = (1, 2, 4)
FAMILIES = {"full": FullGaussian, "diag": DiagonalGaussian}
SCIKIT = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
FILES = ("glass", "sonar", "segmentation")
# Rows of a table, and passes, at most.
MOST_ROWS, MOST_PASSES = 250, 600
# Four components only for tables of this many columns at most, to save time.
FEW_COLUMNS = 40
# Maxima whose mean log-likelihoods differ by less are the same.
SAME = 1e-3
OUTCOMES = ("same", "better", "worse", "unfinished")


class TimedProblem(Problem):
    """A problem that notes the processor time after every pass over the rows."""

    def begin(self) -> None:
        """Start the clock."""
        self._begin = time.process_time()
        self.seconds: list[float] = []

    def assess(self, model: Mixture, classes: np.ndarray | None = None) -> Assessment:
        """Sum the objective, and note the time."""
        assessment = super().assess(model, classes)
        self.seconds.append(time.process_time() - self._begin)
        return assessment


class Run:
    """What EM did: mean log-likelihood with prior and processor time after each pass."""

    def __init__(self, problem: TimedProblem, start: Mixture, accelerate: bool) -> None:
        solver = ExpectationMaximisation(MOST_PASSES, min(TOLERANCES), accelerate)
        problem.begin()
        solution = solver.solve(problem, start, generator=np.random.default_rng(0))
        self.values = np.array(solution.trace)
        self.seconds = problem.seconds
        self.n_reseeded = solution.n_reseeded
        self.converged = solution.converged

    def value_at(self, tolerance: float) -> float:
        """Return where plain EM would end at a tolerance."""
        gains = np.diff(self.values)
        small = np.flatnonzero((gains >= 0.0) & (gains < tolerance))
        return float(self.values[small[0] + 1] if len(small) else self.values[-1])

    def cost(self, value: float) -> tuple[int | None, float | None]:
        """Return passes, that of the start included, and seconds until it has a value."""
        reached = np.flatnonzero(self.values >= value)
        if len(reached) == 0:
            return None, None
        return int(reached[0]) + 1, self.seconds[reached[0]]


def tables(options: Options) -> Iterator[tuple[str, np.ndarray]]:
    """Yield tables of columns with variance one; long ones are thinned out."""
    loaders = {name: lambda load=load: load().data for name, load in SCIKIT.items()}
    loaders |= {name: lambda name=name: load_xy(options.data, name)[0] for name in FILES}
    for name, load in loaders.items():
        try:
            X = load()
        except MissingDataError as error:
            print(f"LEFT OUT: {error}", flush=True)
            continue
        X = X[:: -(-len(X) // MOST_ROWS)]
        deviations = X.std(axis=0)
        kept = deviations > 0.0
        yield name, (X[:, kept] - X[:, kept].mean(axis=0)) / deviations[kept]


def compared(X: np.ndarray, kind: str, n_components: int) -> Row:
    """Run both on a table."""
    dataset = dataset_of(X)
    family = FAMILIES[kind](VariancePrior(np.ones(X.shape[1]), 1.0))
    generator = np.random.default_rng(0)
    start = start_mixture(dataset, family, n_components, "kmeans", generator)
    with workers(1) as pool:
        problem = TimedProblem(dataset, Likelihood(), start, pool)
        plain, fast = Run(problem, start, False), Run(problem, start, True)
    row: Row = {}
    for tolerance in TOLERANCES:
        value = plain.value_at(tolerance) - tolerance
        passes, seconds = zip(plain.cost(value), fast.cost(value), strict=True)
        row |= {
            f"plain_{tolerance:.0e}": passes[0],
            f"accelerated_{tolerance:.0e}": passes[1],
            f"fewer_{tolerance:.0e}": ratio(*passes),
            f"faster_{tolerance:.0e}": ratio(*seconds),
        }
    difference = float(fast.values[-1] - plain.values[-1])
    found = "same" if abs(difference) < SAME else "better" if difference > 0 else "worse"
    if not (plain.converged and fast.converged):
        found = "unfinished"  # the limit of passes says nothing about maxima
    is_monotone = fast.n_reseeded > 0 or bool(np.diff(fast.values).min() >= -1e-9)
    return row | {"maximum": found, "difference": difference, "monotone": is_monotone}


def summary(rows: Sequence[Row]) -> list[Row]:
    """Return medians for each covariance and share of holes, over the same maxima."""
    keys = dict.fromkeys((row["covariance"], row["holes"]) for row in rows)
    names = [n for n in rows[0] if n.startswith(("plain_", "accel", "fewer_", "faster_"))]
    result = []
    for key in keys:
        own = [row for row in rows if (row["covariance"], row["holes"]) == key]
        same = [row for row in own if row["maximum"] == "same"]
        found = [row["maximum"] for row in own]
        counts = {name: found.count(name) for name in OUTCOMES}
        medians = {
            name: median(row[name] for row in same if row[name] is not None)
            for name in names
        }
        result.append({"covariance": key[0], "holes": key[1], **counts, **medians})
    return result


def run(options: Options) -> None:
    rows = []
    for name, X in tables(options):
        for share in HOLES:
            holed = punch_holes(X, share) if share else X
            for kind in FAMILIES:
                for n_components in COMPONENTS[: 2 if options.quick else None]:
                    if n_components == 1 and (kind == "diag" or not share):
                        continue  # one step leads to the maximum
                    if n_components == 4 and X.shape[1] > FEW_COLUMNS:
                        continue
                    title = {
                        "table": name,
                        "n,d": "{},{}".format(*X.shape),
                        "holes": f"{share:.0%}",
                        "covariance": kind,
                        "K": n_components,
                    }
                    rows.append(title | compared(holed, kind, n_components))
        if options.quick:
            break
    say(
        "EM until it is as close to the end of plain EM as the tolerance, 1 thread",
        {
            "plain, accelerated": "passes over the rows at this tolerance",
            "fewer, faster": "ratio of passes, and of processor time",
            "maximum": f"whether the two ends differ by {SAME} per row or more; "
            f"unfinished if one of them took {MOST_PASSES} passes",
        },
    )
    print_table(rows)
    write_table("em_acceleration", rows, options)
    say("Medians over problems where both find the same maximum")
    print_table(summary(rows))
    write_table("em_acceleration_summary", summary(rows), options)


def main(arguments: Sequence[str] | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
