"""Where joint training of a network begins: at an optimal output layer, or at none.

Before joint training, `MixtureNetworkClassifier` solves the output layer for the mixtures
that EM has found. This compares it with a start at zero weights, in which L-BFGS has to
find the output layer together with the mixtures. In the end, both solve the output layer
once more.

Nine tables, trained on one stratified half and tested on the other, splits 0 to 4; single
networks (one structure by the number of rows, no search). For each number of steps: mean
error (per cent) and log loss of the test rows, mean processor seconds of the whole fit,
the mean objective of the training rows at the end, and on how many of the 45 fits each
start led to the higher objective (by more than 1e-4 per row). A second table has the mean
differences of error and log loss, optimal less zero, with standard errors over the fits.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from common import Options, Row, parse_options, print_table, write_table
from networks import NINE, halves, network, tables_of
from tables import Table

from hybridmix.metrics import label_losses
from hybridmix.solvers import Solution
from hybridmix.training import network as training

STEPS = (10, 50)
SEEDS = range(5)
WARM, COLD = "optimal", "zero"
# Objectives that differ by less, per row, are the same.
SAME = 1e-4
FIGURES = ["error", "log_loss", "objective", "cpu_seconds"]


@contextmanager
def starting(where: str) -> Iterator[None]:
    """Leave out the output layer before joint training, if it is to begin at zero."""

    def untrained(model: Any, *_: Any) -> Solution[Any]:
        return Solution(model, float("nan"))

    if where == WARM:
        yield
        return
    # The last solution of the output layer is found by another name, and stays.
    with mock.patch.object(training, "trained_output", untrained):
        yield


def fitted_row(given: Table, seed: int, n_steps: int, where: str) -> Row:
    train, test = halves(given.y, seed)
    model = network("joint", effort="fast", calibrate=False, n_steps=n_steps)
    with warnings.catch_warnings(), starting(where):
        warnings.simplefilter("ignore")
        began = time.process_time()
        model.fit(given.X.iloc[train], given.y[train])
        seconds = time.process_time() - began
        logs = model.predict_log_proba(given.X.iloc[test])
    numbers = np.searchsorted(model.classes_, given.y[test])
    own = logs[np.arange(len(test)), numbers]
    return {
        "table": given.name,
        "seed": seed,
        "steps": n_steps,
        "start": where,
        "error": 100.0 * float(np.mean(logs.argmax(axis=1) != numbers)),
        "log_loss": float(label_losses(own).mean()),
        "objective": float(model.trace_[-1]),
        "cpu_seconds": seconds,
    }


def summarised(rows: Sequence[Row]) -> list[Row]:
    """Return the means of all fits, by steps and start."""
    frame = pd.DataFrame(rows)
    means = frame.groupby(["steps", "start"], sort=False)[FIGURES].mean().reset_index()
    gain = paired(frame, "objective")
    lines = means.to_dict("records")
    for line in lines:
        own = gain[line["steps"]] * (1.0 if line["start"] == WARM else -1.0)
        line["higher_objective"] = int((own > SAME).sum())
    return lines


def paired(frame: pd.DataFrame, figure: str) -> pd.Series:
    """Return a figure of the optimal start less that of zero, for each fit."""
    by_start = frame.pivot(
        index=["steps", "table", "seed"], columns="start", values=figure
    )
    return by_start[WARM] - by_start[COLD]


def differences(rows: Sequence[Row]) -> list[Row]:
    """Return mean differences of paired fits, with standard errors over the fits."""
    frame = pd.DataFrame(rows)
    lines = []
    for steps in STEPS:
        line: Row = {"steps": steps}
        for figure in ("error", "log_loss"):
            own = paired(frame, figure)[steps]
            line[figure] = float(own.mean())
            line[f"{figure}_standard_error"] = float(own.sem())
        lines.append(line)
    return lines


def run(options: Options) -> None:
    names = NINE[:2] if options.quick else NINE
    rows = [
        fitted_row(given, seed, n_steps, where)
        for given in tables_of(names, options)
        for seed in (SEEDS[:1] if options.quick else SEEDS)
        for n_steps in STEPS
        for where in (WARM, COLD)
    ]
    summary = summarised(rows)
    print_table(summary)
    write_table("network_start", summary, options)
    paired_means = differences(rows)
    print_table(paired_means)
    write_table("network_start_differences", paired_means, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
