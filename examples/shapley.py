"""What each cell adds to the probability of a wine's class, by Shapley values.

Above: a wine of which everything is known, below: the same wine, of which two cells are
missing. These have the value 0; columns that depend on them say part of it.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, RED, finish, read_options
from matplotlib.axes import Axes
from sklearn.datasets import load_wine

from hybridmix import HybridMixtureClassifier
from hybridmix.inspection import ShapleyValues, shapley_values

COLUMNS = ["alcohol", "malic_acid", "flavanoids", "color_intensity", "hue", "proline"]
HIDDEN = ["flavanoids", "proline"]
WINE = 44


def draw(
    axes: Axes, found: ShapleyValues, row: int, label: int, cells: list[str]
) -> None:
    """Draw the steps from the base value to the prediction, one bar for each cell."""
    values = found.values[row, :, label]
    start = found.base_values[row, label]
    for place, value in enumerate(values):
        axes.barh(place, value, left=start, color=BLUE if value >= 0 else RED)
        axes.plot([start + value] * 2, [place, place + 1], color="grey", linewidth=0.8)
        axes.annotate(
            f"{value:+.2f}",
            (max(start, start + value), place),
            (4, 0),
            textcoords="offset points",
            va="center",
        )
        start += value
    axes.axvline(found.base_values[row, label], color="grey", linestyle=":")
    axes.set(yticks=range(len(cells)), yticklabels=cells, xlim=(0.0, 1.2))
    axes.invert_yaxis()


def main() -> None:
    options = read_options(__doc__)
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[COLUMNS]
    model = HybridMixtureClassifier(
        covariance_type="full", n_components=1, tradeoff=1, random_state=0
    ).fit(X, y)
    wine = X.iloc[[WINE]]
    both = X.iloc[[WINE, WINE]].reset_index(drop=True)
    both.loc[1, HIDDEN] = np.nan
    found = shapley_values(model, both)
    label = int(model.predict(wine)[0])
    figure, panels = plt.subplots(2, 1, figsize=(7.0, 5.6), sharex=True)
    titles = ("everything is known", "two cells are missing")
    for row, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        cells = [
            f"{name} = {value:g}" if np.isfinite(value) else f"{name}: missing"
            for name, value in both.iloc[row].items()
        ]
        draw(axes, found, row, label, cells)
        axes.set_title(
            f"{title}: from {found.base_values[row, label]:.2f} "
            f"to {found.predictions[row, label]:.2f}"
        )
    panels[1].set_xlabel(f"probability of class {label}")
    finish(figure, "shapley", options.save)


if __name__ == "__main__":
    main()
