"""Which estimator for what: a chart from what you have to what you want."""

from __future__ import annotations

import matplotlib.pyplot as plt
from figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SKY,
    Options,
    finish,
    read_options,
)
from matplotlib.axes import Axes

# What you have, its colour, and pairs of what you want and the estimator for it.
BRANCHES = (
    (
        "a table\nand some labels",
        BLUE,
        (
            ("class probabilities, no options to set", "HybridMixtureClassifier"),
            ("a single mixture, tuned", "HybridMixtureClassifierCV"),
            ("classes from the components", "MixtureNetworkClassifier"),
            ("a linear or kernel machine", "MEDClassifier"),
        ),
    ),
    (
        "a table and\nnumeric targets",
        RED,
        (
            ("predictions with intervals", "MixtureRegressor"),
            ("a linear layer on the components", "MixtureNetworkRegressor"),
            ("a smooth support vector regression", "MEDRegressor"),
        ),
    ),
    (
        "a table",
        GREEN,
        (
            ("density, clusters, new rows", "MixtureDensity"),
            ("missing values filled in", "MixtureImputer"),
            ("rows that do not belong", "MixtureOutlierDetector"),
            ("features for another model", "MixtureEmbedding"),
        ),
    ),
    (
        "a wide table,\nor several tasks",
        ORANGE,
        (
            ("the columns that matter", "MEDFeatureSelector"),
            ("tasks that share columns", "MEDMultiTaskClassifier, …Regressor"),
        ),
    ),
    (
        "sequences",
        SKY,
        (
            ("classes, even frame by frame", "HybridHMMClassifier"),
            ("states, density, forecasts", "HMMDensity"),
        ),
    ),
)
HAVE, WANT, ESTIMATOR = 1.1, 2.9, 6.8  # places of the three columns
GAP = 0.7  # between branches, in lines


def draw_branch(
    axes: Axes, top: float, have: str, color: str, answers: tuple[tuple[str, str], ...]
) -> float:
    """Draw one branch below `top`, and return where the next one begins."""
    middle = top - 0.5 * (len(answers) - 1)
    box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": color, "lw": 2}
    axes.text(HAVE, middle, have, ha="center", va="center", bbox=box, fontsize=11)
    for line, (want, estimator) in enumerate(answers):
        y = top - line
        axes.plot([HAVE + 1.0, WANT - 0.1], [middle, y], color=color, lw=1.5, zorder=0)
        axes.text(WANT, y, want, va="center", fontsize=11)
        axes.plot([WANT + 3.3, ESTIMATOR - 0.15], [y, y], ":", color=GREY, lw=1)
        axes.text(ESTIMATOR, y, estimator, va="center", family="monospace", fontsize=11)
    return top - len(answers) - GAP


def main(options: Options) -> None:
    figure, axes = plt.subplots(figsize=(9.8, 6.6))
    for x, title, side in (
        (HAVE, "you have", "center"),
        (WANT, "you want", "left"),
        (ESTIMATOR, "use", "left"),
    ):
        axes.text(x, 1.3, title, ha=side, color=BLACK, fontsize=12, weight="bold")
    top = 0.0
    for have, color, answers in BRANCHES:
        top = draw_branch(axes, top, have, color, answers)
    axes.set(xlim=(0.1, 10.8), ylim=(top + 0.8, 1.9))
    axes.axis("off")
    finish(figure, "which_estimator", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
