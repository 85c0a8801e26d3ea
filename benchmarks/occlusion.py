"""MNIST digits behind a square: errors, and what the hidden part may look like.

A square at a random place of every test digit is hidden. Digits, methods and options are
those of pixels.py: the hybrid mixture in a subspace classifies by what is seen, the RBF
support vector machine (with C and gamma as chosen there) after hidden pixels are filled
from the three nearest training digits in the others.

The picture shows test digits under the class that the hybrid gives them, what is seen of
them, what the hybrid expects behind the square, and draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    parse_options,
    print_table,
    say,
    write_table,
)
from missing_features import filled_by_neighbours
from pictures import image_folder, prepare_pictures, save
from pixels import HYBRID, SVM_NEAREST, error, mnist_pixels, trained, trained_machine
from roth_data import Split
from sklearn.exceptions import ConvergenceWarning

SIDE = 28
SQUARES = (8, 12, 16, 20)
MACHINE = {"C": 2.0, "gamma": 0.03}
SHOWN, N_DRAWS, SHOWN_SQUARE = 10, 3, 14
TABLE = "occlusion"


def behind_squares(X: np.ndarray, side: int, seed: int = 0) -> np.ndarray:
    """Return digits with a square at a random place of each missing."""
    generator = np.random.default_rng(seed)
    images = X.reshape(-1, SIDE, SIDE).copy()
    corners = generator.integers(SIDE - side + 1, size=(len(X), 2))
    for image, (top, left) in zip(images, corners, strict=True):
        image[top : top + side, left : left + side] = np.nan
    return images.reshape(len(X), -1)


def errors(split: Split, model: Any, machine: Any) -> list[Row]:
    """Return the errors of both methods for squares of several sizes."""
    rows: list[Row] = []
    for side in SQUARES:
        X = behind_squares(split.X_test, side)
        filled = filled_by_neighbours(X, split.X)
        for name, predicted in (
            (HYBRID, model.predict(X)),
            (SVM_NEAREST, machine.predict(filled)),
        ):
            rows.append(
                {
                    "method": name,
                    "square": side,
                    "hidden_percent": 100.0 * side**2 / SIDE**2,
                    "error_percent": error(predicted, split.y_test),
                }
            )
        print_table(rows[-2:])
    return rows


def draw_digits(split: Split, model: Any, options: Options) -> None:
    """Draw the first test digit of each class behind a square, and what may be there."""
    folder = image_folder(options)
    if folder is None:
        return
    first = [int(np.flatnonzero(split.y_test == label)[0]) for label in range(SHOWN)]
    X = split.X_test[first]
    seen = behind_squares(X, SHOWN_SQUARE, seed=1)
    lines = {"digit": X, "seen": seen, "expected": model.impute(seen)}
    for number in range(N_DRAWS):
        drawn = model.impute(seen, draw=True, random_state=number)
        lines[f"draw {number + 1}"] = drawn
    plt = prepare_pictures()
    size = (SHOWN, len(lines) + 0.4)
    figure, grid = plt.subplots(len(lines), SHOWN, figsize=size, squeeze=False)
    predicted = model.predict(seen)
    for row, (name, digits) in enumerate(lines.items()):
        for column, digit in enumerate(digits):
            axes = grid[row, column]
            axes.set_facecolor("#56b4e9")
            image = np.ma.masked_invalid(digit.reshape(SIDE, SIDE))
            axes.imshow(image, cmap="gray_r", vmin=0.0, vmax=1.0)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(False)
            if row == 0:
                axes.set_title(f"{predicted[column]}", fontsize=10, loc="center")
            if column == 0:
                axes.set_ylabel(name, rotation=0, ha="right", va="center")
    save(figure, TABLE, folder)


def run(options: Options) -> None:
    try:
        split = mnist_pixels(options.data)
    except MissingDataError as problem:
        print(f"LEFT OUT: {problem}", flush=True)
        return
    split = split.thinned(1000) if options.quick else split
    model, _ = trained(split, "hybrid", options.quick)
    draw_digits(split, model, options)
    machine, _ = trained_machine(split, MACHINE)
    rows = errors(split, model, machine)
    say("Errors in per cent of digits behind a square")
    print_table(rows)
    write_table(TABLE, rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(parse_options(__doc__ or "", arguments))


if __name__ == "__main__":
    main()
