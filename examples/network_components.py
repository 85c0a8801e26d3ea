"""Components of a network: borders and weights, the link, and annihilation.

Above: two mixtures of two components, and what the output layer makes of them. Its
weights are written next to the components. In the middle: the alternating training,
without and with a link from the weights to the proportions, which changes little here.
Below: a network that begins with twelve components for two Gaussians.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from figures import (
    BLUE,
    RED,
    Options,
    Plane,
    draw_classes,
    draw_ellipse,
    finish,
    read_options,
)
from matplotlib.axes import Axes

from hybridmix import MixtureNetworkClassifier

COLORS = (BLUE, RED)
PLANE = Plane.around_origin(5.2)


def crossed(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two classes in four blobs, of which a line cuts one in two."""
    generator = np.random.default_rng(0)
    centres = np.array([[-2.5, 2.0], [2.5, 2.0], [0.0, -2.0], [0.0, -2.0]])
    blob = np.arange(n_rows) % 4
    X = generator.normal(centres[blob], 0.9)
    return X, np.where(blob < 2, blob, X[:, 0] > 0.0).astype(int)


def two_gaussians(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    return generator.normal(size=(n_rows, 2)) + np.outer(2 * y - 1, [2.0, 0.0]), y


def network(training: str, **options: Any) -> MixtureNetworkClassifier:
    shared = {"covariance_type": "diag", "features": "posterior", "random_state": 0}
    return MixtureNetworkClassifier(training, **{**shared, **options})


def draw(axes: Axes, model: Any, X: np.ndarray, y: np.ndarray, weights: bool) -> None:
    """Draw border, rows and components, with their weights for the second class."""
    PLANE.draw_border(axes, model)
    draw_classes(axes, X, y)
    difference = np.diff(model.weights_, axis=0)[0]
    for k, mean in enumerate(model.means_):
        covariance = model.covariances_[k]
        matrix = np.diag(covariance) if covariance.ndim == 1 else covariance
        draw_ellipse(axes, mean, matrix, COLORS[model.component_classes_[k]])
        if weights:
            text = f"{difference[k]:+.1f}"
            axes.annotate(text, mean, (6, 6), textcoords="offset points", weight="bold")


def main(options: Options) -> None:
    n_rows = 200 if options.quick else 600
    figure, panels = plt.subplots(3, 2, figsize=(8.4, 11.4))
    X, y = crossed(n_rows)
    print("Training error, and the number of components:\n")
    cases = [
        ("stages", network("stages", n_components=2), X, y, True),
        ("joint", network("joint", n_components=2), X, y, True),
        ("alternating", network("alternating", n_components=3), X, y, False),
        (
            "alternating, link 1,000",
            network("alternating", n_components=3, link=1000.0),
            X,
            y,
            False,
        ),
    ]
    X, y = two_gaussians(n_rows)
    six = {"n_components": 6, "covariance_type": "full"}
    cases += [
        ("6 components for each class", network("stages", **six), X, y, False),
        ("annihilated", network("stages", annihilate="bic", **six), X, y, False),
    ]
    for axes, (title, model, X, y, weights) in zip(panels.flat, cases, strict=True):
        model.fit(X, y)
        error = 100.0 * (1.0 - model.score(X, y))
        n_components = int(model.n_components_.sum())
        axes.set_title(f"{title}: {error:.1f} %")
        print(f"{title:<30}{error:>6.1f} %{n_components:>5}")
        draw(axes, model, X, y, weights)
    finish(figure, "network_components", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
