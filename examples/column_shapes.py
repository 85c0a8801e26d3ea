"""Shapes of columns: a skewed income, and gifts that are often zero.

Densities of single columns with `column_shapes="plain"`, which takes all columns as they
are, and with shapes that are found.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, LIGHT, RED, Options, finish, read_options
from matplotlib.axes import Axes

from hybridmix import MixtureDensity

N_ROWS = 1000


def draw_table(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=N_ROWS)
    income = np.exp(skill + 0.5 * rng.normal(size=N_ROWS))
    gifts = np.where(
        rng.random(N_ROWS) < 0.4, 0.0, income * rng.uniform(0.01, 0.1, N_ROWS)
    )
    return np.column_stack([skill, income, gifts])


def draw_column(axes: Axes, X: np.ndarray, column: int, most: float) -> None:
    """Draw rows sampled from models with and without shapes over the histogram."""
    bins = np.linspace(-0.4 * most, most, 57)
    inside = {"bins": bins, "density": True}
    axes.hist(X[:, column], color=LIGHT, label="table", **inside)
    for shapes, color, style in (("plain", RED, "--"), ("auto", BLUE, "-")):
        model = MixtureDensity(1, covariance_type="full", column_shapes=shapes).fit(X)
        rows, _ = model.sample(20_000, random_state=0)
        axes.hist(
            rows[:, column],
            histtype="step",
            color=color,
            linestyle=style,
            linewidth=1.8,
            label=f'column_shapes="{shapes}"',
            **inside,
        )
        negative = np.mean(rows[:, column] < 0)
        print(f"column {column}, {shapes}: {100 * negative:.1f} % of new rows below zero")
    axes.set(xlim=(bins[0], bins[-1]), yticks=[])


def main(options: Options) -> None:
    X = draw_table(0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6))
    draw_column(left, X, 1, most=8.0)
    left.set_title("income: skewed and positive")
    left.legend()
    draw_column(right, X, 2, most=0.4)
    right.set_title("gifts: positive, and often exactly 0")
    finish(figure, "column_shapes", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
