"""Intervals that own up to what is missing: multiple imputation and Rubin's rules.

The mean of y is wanted, with a 95 % interval. About half of its values are missing,
mostly where x, which is always observed, is large (MAR). Four ways to deal with that are
compared over many tables: how often does the interval hold the true mean?
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLACK, BLUE, RED, Options, finish, read_options
from matplotlib.axes import Axes
from scipy import stats

from hybridmix import MixtureImputer

TRUE_MEAN = 2.0
N_ROWS = 150
N_DRAWS = 20
N_TABLES = 60

Interval = tuple[float, float, float]


def draw_table(generator: np.random.Generator) -> np.ndarray:
    x = generator.standard_normal(N_ROWS)
    y = TRUE_MEAN + 0.8 * x + 0.6 * generator.standard_normal(N_ROWS)
    hidden = generator.random(N_ROWS) < 1.0 / (1.0 + np.exp(-2.0 * x))
    return np.column_stack([x, np.where(hidden, np.nan, y)])


def interval_of_mean(y: np.ndarray) -> Interval:
    """Return estimate and ends of the usual interval, as if nothing were missing."""
    half = stats.t.ppf(0.975, len(y) - 1) * y.std(ddof=1) / np.sqrt(len(y))
    return y.mean(), y.mean() - half, y.mean() + half


def rubin(estimates: np.ndarray, variances: np.ndarray) -> Interval:
    """Combine the analyses of completed tables (Rubin 1987)."""
    m = len(estimates)
    within, between = variances.mean(), estimates.var(ddof=1)
    total = within + (1.0 + 1.0 / m) * between
    freedom = (m - 1) * (1.0 + within / ((1.0 + 1.0 / m) * between)) ** 2
    half = stats.t.ppf(0.975, freedom) * np.sqrt(total)
    return estimates.mean(), estimates.mean() - half, estimates.mean() + half


def analyse(table: np.ndarray, seed: int) -> dict[str, Interval]:
    y = table[:, 1]
    imputer = MixtureImputer(
        1,
        n_draws=N_DRAWS,
        covariance_type="full",
        covariance_prior=1.0,
        tol=1e-6,
        random_state=seed,
    ).fit(table)
    drawn = np.array([completed[:, 1] for completed in imputer.draw(table)])
    variances = drawn.var(axis=1, ddof=1) / N_ROWS
    return {
        "Complete rows only": interval_of_mean(y[~np.isnan(y)]),
        "Holes filled by the mean": interval_of_mean(
            np.where(np.isnan(y), np.nanmean(y), y)
        ),
        "Holes filled once": interval_of_mean(imputer.transform(table)[:, 1]),
        "Multiple imputation": rubin(drawn.mean(axis=1), variances),
    }


def draw_intervals(axes: Axes, intervals: np.ndarray) -> float:
    """Draw the intervals of all tables; return the share that holds the true mean."""
    order = np.argsort(intervals[:, 0])
    estimate, low, high = intervals[order].T
    holds = (low <= TRUE_MEAN) & (high >= TRUE_MEAN)
    height = np.arange(len(order))
    for chosen, color in ((holds, BLUE), (~holds, RED)):
        axes.hlines(height[chosen], low[chosen], high[chosen], color=color, linewidth=1.3)
        axes.plot(estimate[chosen], height[chosen], ".", color=color, markersize=3.5)
    axes.axvline(TRUE_MEAN, color=BLACK, linestyle="--", linewidth=1.2)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    return float(holds.mean())


def main(options: Options) -> None:
    n_tables = 5 if options.quick else N_TABLES
    generator = np.random.default_rng(0)
    results = [analyse(draw_table(generator), seed) for seed in range(n_tables)]
    figure, panels = plt.subplots(1, 4, figsize=(10.5, 4.6), sharex=True)
    print(f"Intervals of 95 % for a mean of {TRUE_MEAN}, {n_tables} tables:\n")
    print(f"{'':28}{'bias':>8}{'width':>8}{'holds the mean':>18}")
    for axes, name in zip(panels, results[0], strict=True):
        intervals = np.array([result[name] for result in results])
        share = draw_intervals(axes, intervals)
        bias = intervals[:, 0].mean() - TRUE_MEAN
        width = np.mean(intervals[:, 2] - intervals[:, 1])
        print(f"{name:<28}{bias:>8.3f}{width:>8.3f}{share:>18.0%}")
        axes.set_title(f"{name}\n{share:.0%} hold the truth")
        axes.set_xlabel("mean of y")
    panels[0].plot([], [], color=BLUE, label="holds the truth")
    panels[0].plot([], [], color=RED, label="misses it")
    panels[0].plot([], [], color=BLACK, linestyle="--", label="true mean")
    figure.legend(loc="outside lower center", ncols=3)
    finish(figure, "multiple_imputation", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
