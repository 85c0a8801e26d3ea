"""Pictures of wide tables with long names, in light and dark styles."""

from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from hybridmix import MixtureOutlierDetector
from hybridmix.plots import (
    ClassDensitiesDisplay,
    DecisionRegionsDisplay,
    InclusionDisplay,
    MarginsDisplay,
    OutlierScoresDisplay,
    PairwiseMarginalsDisplay,
    StateDisplay,
    TradeoffPathDisplay,
    TrainingDisplay,
    TransitionDisplay,
    TreeEdgesDisplay,
)
from hybridmix.plots.colours import ink, palette, paper

NAMES = [f"a long measurement name, number {k}" for k in range(30)]
CLASSES = ["setosa", "versicolor", "virginica", "a class with a long name", "fifth", "6"]
# Machado, Oliveira and Fernandes (2009): what people without a kind of cones see.
BLIND = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


@pytest.fixture(params=["default", "dark_background"])
def style(request):
    with plt.style.context(request.param), mpl.rc_context({"backend": "Agg"}):
        yield request.param
    plt.close("all")


@pytest.fixture(scope="module")
def wide():
    """A classifier of 30 columns with long names, one of them categorical."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % len(CLASSES)
    X = rng.normal(size=(len(CLASSES), 30))[y] + rng.normal(size=(120, 30))
    X = pd.DataFrame(X, columns=NAMES)
    words = ["yes", "no", "perhaps", "something else entirely", "five", "six"]
    X[NAMES[7]] = rng.choice(words, 120)
    y = np.array(CLASSES)[y]
    model = plain_classifier(
        "hybrid", covariance_type="diag", n_steps=3, validation_fraction=0.3
    )
    return model.fit(X, y), X, y


def drawn(wide):
    """Draw the displays whose text depends on columns, categories or classes."""
    model, X, y = wide
    rng = np.random.default_rng(0)
    detector = MixtureOutlierDetector(1, covariance_type="diag", random_state=0)
    edges = np.abs(rng.normal(size=(2, 30, 30))).clip(max=1.0)
    stays = np.full((1, 6, 6), 0.1) + 0.4 * np.eye(6)
    return [
        DecisionRegionsDisplay.from_estimator(model, X, y, grid_resolution=40),
        ClassDensitiesDisplay.from_estimator(model, X, y, grid_resolution=40),
        ClassDensitiesDisplay.from_estimator(model, X, y, column=7),
        PairwiseMarginalsDisplay.from_estimator(
            model, X, y, columns=[0, 7, 2], grid_resolution=20
        ),
        InclusionDisplay(np.linspace(1.0, 0.0, 30), NAMES, 0.5, ()).plot(),
        TreeEdgesDisplay(edges, NAMES, ["no", "yes"]).plot(),
        MarginsDisplay(rng.normal(size=50), 1.0).plot(),
        OutlierScoresDisplay.from_estimator(detector.fit(X), X),
        TrainingDisplay.from_estimator(model),
        TradeoffPathDisplay(
            np.array([0.0, 1.0]), {"error": np.array([[0.2], [0.1]])}, 1
        ).plot(),
        TransitionDisplay(stays, [""]).plot(),
        StateDisplay(np.full((9, 6), 1 / 6), np.arange(9) % 6, "a sequence").plot(),
    ]


def written(figure):
    """Return the level texts that can be seen, with the boxes that they fill."""
    figure.canvas.draw()
    inner = figure.bbox.padded(1.0)
    ticks = {
        text
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        for tick in axis.get_major_ticks() + axis.get_minor_ticks()
        for text in (tick.label1, tick.label2)
    }
    shown = {
        text
        for ax in figure.axes
        if ax.axison
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim()))
        for tick in axis.get_major_ticks()
        if min(limits) <= tick.get_loc() <= max(limits)
        for text in (tick.label1, tick.label2)
    }
    for text in figure.findobj(Text):
        is_off = text.axes is not None and text in (
            text.axes.xaxis.label,
            text.axes.yaxis.label,
        )
        is_off = is_off and not text.axes.axison
        if (text in ticks and text not in shown) or is_off:
            continue
        box = text.get_window_extent()
        if (
            text.get_visible()
            and text.get_text().strip()
            and text.get_rotation() % 90 == 0
        ):
            assert inner.containsx(box.x0), text
            assert inner.containsx(box.x1), text
            yield text.get_text(), box


def test_names_do_not_cover_each_other(wide):
    with mpl.rc_context({"backend": "Agg"}):
        for display in drawn(wide):
            for (one, box), (other, second) in combinations(written(display.figure_), 2):
                across = min(box.x1, second.x1) - max(box.x0, second.x0)
                up = min(box.y1, second.y1) - max(box.y0, second.y0)
                assert min(across, up) <= 2.0, (type(display).__name__, one, other)
    plt.close("all")


def test_nothing_has_the_colour_of_dark_paper(wide):
    with plt.style.context("dark_background"), mpl.rc_context({"backend": "Agg"}):
        for ax in (ax for display in drawn(wide) for ax in display.figure_.axes):
            lines = [line for line in ax.lines if line.get_linestyle() != "None"]
            for artist in [*lines, *ax.texts]:
                assert to_rgb(artist.get_color()) != to_rgb(paper())
    plt.close("all")


def test_colours_can_be_told_apart(style):
    assert to_rgb(ink()) != to_rgb(paper())
    colours = np.array([to_rgb(colour) for colour in palette()])
    assert np.abs(colours - to_rgb(paper())).max(axis=1).min() > 0.3
    for matrix in BLIND.values():
        seen = np.clip(colours @ np.array(matrix).T, 0.0, 1.0)
        distances = [np.linalg.norm(a - b) for a, b in combinations(seen, 2)]
        assert min(distances) > 0.1
