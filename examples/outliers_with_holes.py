"""Scores of rows with holes are on the same scale as those of complete rows.

On the left, a detector is fitted to two clusters, some rows of which miss a coordinate;
these are drawn at the margin of the coordinate that they have. On the right, rows of
eight columns that miss more and more of them: their log density drifts, their score does
not.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLACK, BLUE, GREY, RED, SKY, Options, finish, read_options
from matplotlib.axes import Axes

from hybridmix import MixtureDensity, MixtureOutlierDetector

EDGE = 8.0


def two_clusters(generator: np.random.Generator) -> np.ndarray:
    first = generator.multivariate_normal([-2.5, -1.5], [[1.0, 0.7], [0.7, 1.0]], 250)
    second = generator.multivariate_normal([2.5, 2.0], [[1.5, -0.9], [-0.9, 1.0]], 250)
    X = np.concatenate([first, second])
    hole = generator.random(len(X)) < 0.2
    X[hole, generator.integers(2, size=hole.sum())] = np.nan
    planted = [[-2.0, 4.5], [3.5, -2.0], [0.2, 6.0], [6.5, np.nan], [np.nan, -5.5]]
    return np.concatenate([X, planted])


def draw_contours(axes: Axes, detector: MixtureOutlierDetector) -> None:
    line = np.linspace(-EDGE, EDGE, 250)
    grid_x, grid_y = np.meshgrid(line, line)
    scores = detector.score_samples(np.column_stack([grid_x.ravel(), grid_y.ravel()]))
    scores = scores.reshape(grid_x.shape)
    levels = np.log([0.01, 0.1, 0.5])
    axes.contourf(
        grid_x, grid_y, scores, [*levels, 0.0], colors=["#eaf4fb", "#cfe8f7", SKY]
    )
    curves = axes.contour(
        grid_x, grid_y, scores, levels, colors=BLUE, linewidths=[2, 1, 1], linestyles="-"
    )
    names = dict(zip(levels, ("1 %", "10 %", "50 %"), strict=True))
    places = [(6.2, -1.0), (4.9, -0.2), (3.9, 0.8)]
    axes.clabel(curves, fmt=names, fontsize=9, manual=places, colors=BLACK)


def draw_rows(axes: Axes, X: np.ndarray, is_outlier: np.ndarray) -> None:
    place = np.where(np.isnan(X), -EDGE + 0.35, X)
    only_x, only_y = np.isnan(X[:, 1]), np.isnan(X[:, 0])
    kinds = {"o": ~(only_x | only_y), "|": only_x, "_": only_y}
    for marker, kind in kinds.items():
        for flagged, color, size in ((False, GREY, 3), (True, RED, 7)):
            chosen = kind & (is_outlier == flagged)
            size = size if marker == "o" else 9
            axes.plot(
                *place[chosen].T,
                marker,
                color=color,
                markersize=size,
                markeredgewidth=1.5,
            )
    axes.plot([], [], "o", color=RED, label="flagged: score below log 0.01")
    axes.plot([], [], "o", color=GREY, markersize=3, label="other rows")
    axes.plot([], [], "|", color=BLACK, label="row with a missing coordinate")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.06), fontsize=9)
    axes.set(xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), aspect="equal")


def drifting_rows(
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, test rows, and how many columns of these are observed."""
    d = 8
    factor = np.tril(generator.normal(size=(d, d)), -1) * 0.5 + np.eye(d)
    train = generator.standard_normal((3000, d)) @ factor.T
    test = generator.standard_normal((16_000, d)) @ factor.T
    n_observed = np.arange(1, d + 1).repeat(len(test) // d)
    order = generator.random(test.shape).argsort(axis=1).argsort(axis=1)
    return train, np.where(order < n_observed[:, None], test, np.nan), n_observed


def draw_boxes(
    axes: Axes, values: np.ndarray, groups: np.ndarray, color: str, title: str
) -> None:
    numbers = np.unique(groups)
    boxes = axes.boxplot(
        [values[groups == number] for number in numbers],
        positions=numbers,
        widths=0.6,
        whis=(1, 99),
        showfliers=False,
        patch_artist=True,
        medianprops={"color": BLACK},
    )
    for box in boxes["boxes"]:
        box.set(facecolor=color, alpha=0.6)
    axes.set_title(title)
    axes.set_xticks(numbers, [str(number) for number in numbers])


def main(options: Options) -> None:
    generator = np.random.default_rng(0)
    figure = plt.figure(figsize=(10.5, 5.4))
    left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1.0])
    axes = left.subplots()
    X = two_clusters(generator)
    detector = MixtureOutlierDetector(random_state=0).fit(X)
    is_outlier = detector.predict(X) == -1
    draw_contours(axes, detector)
    draw_rows(axes, X, is_outlier)
    axes.set_title("Tail probability, and flagged rows")
    print(f"{detector.n_components_} components")
    print(f"{is_outlier.sum()} of {len(X)} rows flagged")
    print("scores of the planted rows:", detector.score_samples(X[-5:]).round(1))

    upper, lower = right.subplots(2, 1, sharex=True)
    train, rows, n_observed = drifting_rows(generator)
    log_density = MixtureDensity(1, covariance_type="full").fit(train).score_samples(rows)
    scores = (
        MixtureOutlierDetector(1, covariance_type="full").fit(train).score_samples(rows)
    )
    draw_boxes(upper, log_density, n_observed, GREY, "Log density: drifts with the holes")
    draw_boxes(
        lower,
        scores,
        n_observed,
        BLUE,
        "Score: one scale for all rows (dashed: log 0.01)",
    )
    lower.axhline(np.log(0.01), color=RED, linestyle="--")
    lower.set_xlabel("observed columns of eight (whiskers from 1 % to 99 %)")
    flagged = [np.mean(scores[n_observed == k] < np.log(0.01)) for k in range(1, 9)]
    print("share below log 0.01, by observed columns:", np.round(flagged, 3))
    finish(figure, "outliers_with_holes", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
