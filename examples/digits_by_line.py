"""Digits that arrive line by line: what they may be, and how they may go on.

A digit is a sequence of eight lines. After two, four, six and all lines, a classifier
says which digit it is, and forecasts the lines that are still to come.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, Options, finish, read_options
from matplotlib.axes import Axes
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hybridmix import HybridHMMClassifier

STAGES = (2, 4, 6, 8)
SHOWN = (4, 7, 9)


def fit(X: np.ndarray, y: np.ndarray) -> HybridHMMClassifier:
    """Fit eight states per digit that follow each other."""
    model = HybridHMMClassifier(
        8,
        topology="left-right",
        covariance_type="full",
        tradeoff=10.0,
        calibrate=True,
        random_state=0,
    )
    return model.fit(X, y)


def probabilities_by_line(model: HybridHMMClassifier, image: np.ndarray) -> np.ndarray:
    """Return the class probabilities (8, C) after each line."""
    stream = model.filter()
    return np.array([stream.update(line) for line in image])


def draw_image(axes: Axes, model: HybridHMMClassifier, image: np.ndarray, n: int) -> None:
    """Draw the first lines of an image, and the forecast of the others."""
    axes.imshow(image, cmap="Greys", vmin=0, vmax=16)
    if n < len(image):
        [forecast] = model.predict_next([image[:n]], n_steps=len(image) - n)
        shown = np.full(image.shape, np.nan)
        shown[n:] = forecast
        axes.imshow(shown, cmap="Blues", vmin=0, vmax=16)
        axes.axhline(n - 0.5, color=BLUE, linewidth=2.0)
    axes.set(xticks=[], yticks=[])


def draw_probabilities(axes: Axes, probabilities: np.ndarray, names: np.ndarray) -> None:
    """Draw the probabilities of the digits after each line."""
    numbers = np.arange(1, len(probabilities) + 1)
    best = probabilities.max(axis=0).argsort()[::-1][:3]
    for label, style in zip(best, ("-", "--", ":"), strict=True):
        axes.plot(numbers, probabilities[:, label], style, color=BLUE, linewidth=2.0)
        place = int(probabilities[:, label].argmax())
        height = probabilities[place, label] + 0.04
        axes.text(numbers[place], height, names[label], ha="center", weight="bold")
    axes.set(ylim=(0, 1.15), xticks=numbers, yticks=[0, 0.5, 1])


def main(options: Options) -> None:
    images, y = load_digits().images, load_digits().target
    X_train, X_test, y_train, y_test = train_test_split(
        images, y, train_size=300 if options.quick else 900, random_state=0, stratify=y
    )
    model = fit(X_train, y_train)
    for n in STAGES:
        accuracy = model.score(X_test[:, :n], y_test)
        print(f"{n} lines: {100 * accuracy:.1f} % of {len(y_test)} digits are right")
    figure, axes = plt.subplots(
        len(SHOWN), len(STAGES) + 1, figsize=(9.5, 6.0), width_ratios=[1, 1, 1, 1, 1.7]
    )
    found = model.predict(X_test)
    for row, digit in zip(axes, SHOWN, strict=True):
        image = X_test[np.flatnonzero((y_test == digit) & (found == digit))[0]]
        for own, n in zip(row, STAGES, strict=False):
            draw_image(own, model, image, n)
        draw_probabilities(row[-1], probabilities_by_line(model, image), model.classes_)
    for own, n in zip(axes[0], STAGES, strict=False):
        own.set_title(f"{n} lines")
    axes[0, -1].set_title("probabilities by line")
    finish(figure, "digits_by_line", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
