"""Rows before and after the embedding of a network: principal components and t-SNE.

The embedding of a row are the posteriors of the components. After joint training the
classes are farther apart than in the columns, and than in the embedding by EM.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, GREEN, RED, Options, finish, read_options
from matplotlib.axes import Axes
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from hybridmix import MixtureNetworkClassifier

TABLES = {"Iris": load_iris, "Wine": load_wine}
MAPS = ("principal components", "t-SNE")
MARKS = ((BLUE, "o"), (RED, "^"), (GREEN, "s"))


def spaces(X: np.ndarray, y: np.ndarray, n_steps: int) -> dict[str, np.ndarray]:
    """Return rows as columns, as EM embeds them, and as joint training does."""
    options: dict[str, Any] = {
        "n_components": 3,
        "covariance_type": "full",
        "features": "posterior",
        "embedding_temperature": 5.0,
        "random_state": 0,
    }
    found = {"columns": StandardScaler().fit_transform(X)}
    for name, training in (
        ("embedding by EM", "stages"),
        ("after joint training", "joint"),
    ):
        model = MixtureNetworkClassifier(training, n_steps=n_steps, **options).fit(X, y)
        found[name] = model.embed(X)
    return found


def mapped(rows: np.ndarray, name: str, quick: bool) -> np.ndarray:
    """Return rows in two dimensions."""
    if name == "t-SNE":
        n_steps = 250 if quick else 1000
        return TSNE(max_iter=n_steps, init="pca", random_state=0).fit_transform(rows)
    return PCA(2).fit_transform(rows)


def neighbour_error(rows: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows whose five nearest others are mostly of another class."""
    model = KNeighborsClassifier(5).fit(rows, y)
    nearest = model.kneighbors(return_distance=False)
    votes = [np.bincount(y[own]).argmax() for own in nearest]
    return float(np.mean(np.array(votes) != y))


def draw(axes: Axes, rows: np.ndarray, y: np.ndarray) -> None:
    for label, (color, mark) in enumerate(MARKS):
        axes.plot(*rows[y == label].T, mark, color=color, markersize=3.5, alpha=0.7)
    axes.set_xticks([])
    axes.set_yticks([])


def main(options: Options) -> None:
    figure, panels = plt.subplots(4, 3, figsize=(9.2, 10.4))
    lines = iter(panels)
    print("Share of training rows whose nearest neighbours are of another class:\n")
    for table, load in TABLES.items():
        X, y = load(return_X_y=True)
        found = spaces(X, y, 5 if options.quick else 50)
        for name, rows in found.items():
            print(f"{table:<6}{name:<24}{100 * neighbour_error(rows, y):>6.1f} %")
        for kind in MAPS:
            for axes, (name, rows) in zip(next(lines), found.items(), strict=True):
                draw(axes, mapped(rows, kind, options.quick), y)
                axes.set_title(f"{table}: {name}" if kind == MAPS[0] else "")
                axes.set_ylabel(kind if name == "columns" else "")
    finish(figure, "network_embedding", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
