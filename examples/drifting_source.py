"""A source that drifts, seen by a model that stays, one that learns and one that forgets.

Two clusters move along a curve for sixty batches, after twenty in which nothing changes.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLACK, BLUE, GREY, ORANGE, Options, finish, read_options
from matplotlib.axes import Axes
from sklearn.base import clone

from hybridmix import MixtureDensity
from hybridmix.metrics import drift_score

N_STEADY, N_MOVING, N_ROWS = 20, 60, 500
STYLES = {"stays": (GREY, ":"), "learns": (ORANGE, "--"), "forgets": (BLUE, "-")}


def centres(number: int) -> np.ndarray:
    """Return where the two clusters are in a batch, (2, 2)."""
    angle = 0.5 * np.pi * max(0, number - N_STEADY) / N_MOVING
    way = 4.0 * np.array([np.sin(angle), 1.0 - np.cos(angle)])
    return np.array([[0.0, 0.0], [4.0, 0.0]]) + way


def batch(number: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the rows of a batch; a tenth of the cells is missing."""
    X = centres(number)[rng.integers(2, size=N_ROWS)] + rng.normal(size=(N_ROWS, 2))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def draw_lines(axes: Axes, lines: dict[str, list[float]], title: str) -> None:
    """Draw a line for each model, over the batches."""
    for name, values in lines.items():
        color, style = STYLES[name]
        axes.plot(values, color=color, linestyle=style, label=f"the model {name}")
    axes.axvline(N_STEADY, color=BLACK, linewidth=0.8)
    axes.set_title(title)


def main(options: Options) -> None:
    rng = np.random.default_rng(0)
    learns = MixtureDensity(2, covariance_type="full", random_state=0)
    forgets = clone(learns).set_params(forgetting=1e-3)
    stays = clone(learns).fit(batch(0, rng))
    for model in (learns, forgets):
        model.partial_fit(batch(0, rng))
    models = {"stays": stays, "learns": learns, "forgets": forgets}
    scores: dict[str, list[float]] = {name: [] for name in models}
    p_values: dict[str, list[float]] = {name: [] for name in models}
    path = []
    for number in range(N_STEADY + N_MOVING):
        X = batch(number, rng)
        for name, model in models.items():
            scores[name].append(model.score(X))
            found = drift_score(model, X, random_state=number)
            p_values[name].append(max(found.p_value, 1e-20))
        learns.partial_fit(X)
        forgets.partial_fit(X)
        path.append(forgets.means_[np.argsort(forgets.means_[:, 0])])
    last = N_STEADY + N_MOVING - 1
    away = np.abs(path[-1] - centres(last)).max()
    print("Mean log density of the last ten batches, before they were learned from:")
    for name, values in scores.items():
        print(f"  the model {name:<8}{np.mean(values[-10:]):8.2f}")
    print(f"The forgetting model is at most {away:.2f} away from the last centres.")

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6))
    upper, lower = left.inset_axes([0, 0.56, 1, 0.44]), left.inset_axes([0, 0, 1, 0.42])
    left.axis("off")
    draw_lines(upper, scores, "Mean log density of the next batch")
    upper.legend(loc="lower left", fontsize=8)
    draw_lines(lower, p_values, "Drift score: p-value of the batch")
    lower.set_yscale("log")
    lower.set_xlabel("batch")
    right.plot(*X.T, ".", color=GREY, markersize=3, label="the last batch")
    for k in range(2):
        true = np.array([centres(number)[k] for number in range(last + 1)])
        found = np.array(path)[:, k]
        right.plot(*true.T, color=BLACK, label="centres" if k == 0 else None)
        right.plot(*found.T, "--", color=BLUE, label="forgets" if k == 0 else None)
    right.set_title("Centres of the source and of the model that forgets")
    right.legend(fontsize=8)
    finish(figure, "drifting_source", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
