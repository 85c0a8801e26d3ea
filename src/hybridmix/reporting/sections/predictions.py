"""How far predicted targets and their intervals can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.metrics import (
    LEVELS,
    RegressionSums,
    intervals_of,
    means_of,
    regression_scores,
)
from hybridmix.reporting.charts import Series, histogram, interval_chart, line_chart
from hybridmix.reporting.findings import Findings
from hybridmix.reporting.limits import observed_cells_of
from hybridmix.reporting.markup import (
    alike,
    figure,
    figures,
    fixed,
    folded,
    heading,
    number,
    paragraph,
    percent,
    table,
)
from hybridmix.reporting.wording import scored_rows
from hybridmix.tasks.base import FEWEST_ROWS
from hybridmix.tasks.trials import Trial

# Half the width of a band that a share leaves by chance in one of twenty cases.
_CHANCE = 1.96
# Widths of intervals that differ by less, in the widest one, are the same.
_SAME_WIDTH = 1e-9
# Shares of missing cells at which groups of rows end.
_SHARES = (0.0, 0.1, 0.25, 0.5, 1.0)


def predictions_section(findings: Findings) -> str:
    """Draw targets against predictions, and show what intervals and quantiles hold."""
    trial = findings.trial
    errors, *widths = _histograms(trial)
    return "".join(
        [
            paragraph(f"All of this is about {scored_rows(findings)}."),
            figures([_targets(trial), _calibration(trial), errors]),
            *(folded("How wide the intervals are", figures([one])) for one in widths),
            heading("Rows with missing cells"),
            _by_holes(findings),
        ]
    )


def _targets(trial: Trial) -> str:
    outputs = trial.ours.outputs
    picture = interval_chart(
        means_of(outputs),
        trial.truth,
        *intervals_of(outputs),
        description="Targets by their predicted mean, with 90 % intervals",
        x_label="predicted mean",
        y_label="target",
    )
    return figure(
        picture,
        "Targets (points) and 90 % intervals (bars) by predicted mean, of at most 100 "
        "rows. One point in ten should lie outside its bar. On the dotted line, "
        "predictions are perfect.",
    )


def _calibration(trial: Trial) -> str:
    sums = RegressionSums.of(trial.truth, trial.ours.outputs)
    levels = np.array(LEVELS)
    by_chance = _CHANCE * np.sqrt(levels * (1.0 - levels) / sums.n_rows)
    shares = sums.shares_below
    band = shares - by_chance, shares + by_chance
    coverage = sums.estimates()["coverage"]
    unit = (-0.02, 1.02)
    picture = line_chart(
        [Series("targets below the quantile", levels, shares, band)],
        description="Share of targets below the predicted quantiles, by their level",
        x_label="level of the quantile",
        y_label="targets below it",
        x_limits=unit,
        y_limits=unit,
        diagonal=True,
        markers=True,
    )
    return figure(
        picture,
        "Calibration of the quantiles. On the dotted line, as many targets lie below a "
        "quantile as should; the band is what chance explains. The 90 % intervals hold "
        f"{percent(coverage.value)} of the targets, with a 95 % interval of "
        f"{percent(coverage.low)} to {percent(coverage.high)}.",
    )


def _histograms(trial: Trial) -> Iterator[str]:
    errors = trial.truth - means_of(trial.ours.outputs)
    low, high = intervals_of(trial.ours.outputs)
    widths = high - low
    has_own_widths = all(
        np.ptp(widths[trial.folds == fold]) > _SAME_WIDTH * float(widths.max())
        for fold in range(trial.n_folds)
    )
    caption = (
        f"Errors. Mean {number(float(errors.mean()))}, standard deviation "
        f"{number(float(errors.std()))}."
    )
    if not has_own_widths:
        width = number(float(widths.mean()))
        caption += f" A model has intervals of the same width in every row: {width}."
    yield figure(
        histogram(
            errors,
            description="Histogram of the errors of the predicted means",
            x_label="target less predicted mean",
        ),
        caption,
    )
    if not has_own_widths:
        return
    yield figure(
        histogram(
            widths,
            description="Histogram of the widths of the 90 % intervals",
            x_label="width of the 90 % interval",
        ),
        "How sure the model is of its predictions: every row has an interval of its own "
        f"width. Mean {number(float(widths.mean()))}.",
    )


# Holes --------------------------------------------------------------------------------


def _by_holes(findings: Findings) -> str:
    """Compare rows by the share of their cells that is missing."""
    trial = findings.trial
    shares = 1.0 - observed_cells_of(findings).mean(axis=1)
    if not shares.any():
        return paragraph("No cell of these rows is missing.")
    rows = [
        _line(name, trial, members)
        for name, members in _groups(shares)
        if len(members) >= FEWEST_ROWS
    ]
    return table(
        "Rows by the share of their cells that is missing: the more, the wider intervals "
        f"should be. Groups of fewer than {FEWEST_ROWS} rows are left out",
        ("cells missing", "rows", "RMSE", "mean error", "coverage", "interval width"),
        rows,
    )


def _groups(shares: FloatArray) -> Iterator[tuple[str, IntArray]]:
    """Group rows by their share of missing cells."""
    yield "none", np.flatnonzero(shares == 0.0)
    for low, high in pairwise(_SHARES):
        name = f"up to {percent(high)}" if high < 1.0 else f"more than {percent(low)}"
        yield name, np.flatnonzero((shares > low) & (shares <= high))


def _line(name: str, trial: Trial, members: IntArray) -> tuple[str, ...]:
    truth, outputs = trial.truth[members], trial.ours.outputs[members]
    scores = regression_scores(truth, outputs)
    low, high = intervals_of(outputs)
    written = alike(float(trial.truth.std()))
    return (
        name,
        f"{len(members):,}",
        written(scores["RMSE"].value),
        written(float(np.mean(truth - means_of(outputs)))),
        fixed(scores["coverage"].value),
        written(float(np.mean(high - low))),
    )
