"""Spoken digits: hidden Markov models that meet speakers they have never heard.

Words of four speakers are trained on, those of two others are recognised. Without
options, the words are generated (see speech.py); ``--data FOLDER`` reads the Free Spoken
Digit Dataset from ``FOLDER/fsdd_mfcc.npz``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, GREY, ORANGE, Options, finish, read_options
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy.fft import idct
from sklearn.metrics import confusion_matrix
from speech import spoken_digits

from hybridmix import HybridHMMClassifier

FILE = "fsdd_mfcc.npz"
SHOWN = (6, 7)
N_BANDS = 26

Frames = list[np.ndarray]


@dataclass(frozen=True)
class Words:
    """Words, their digits and speakers.

    Attributes
    ----------
    X : list of ndarray of shape (T_i, d)
        Cepstra.
    y, speakers : ndarray of shape (n,)
        Digits, and numbers of the speakers.
    """

    X: Frames
    y: np.ndarray
    speakers: np.ndarray

    def of_speakers(self, chosen: np.ndarray) -> Words:
        """Return the words of some speakers."""
        own = np.flatnonzero(np.isin(self.speakers, chosen))
        return Words([self.X[i] for i in own], self.y[own], self.speakers[own])


def read_words(folder: Path | None, quick: bool) -> Words:
    """Read words from a folder, or generate them."""
    if folder is None:
        return Words(*spoken_digits(n_speakers=6, n_each=4 if quick else 8))
    arrays = np.load(folder / FILE)
    X: Frames = []
    for part in ("train", "test"):
        ends = np.cumsum(arrays[f"lengths_{part}"])
        X += np.split(arrays[f"X_{part}"].astype(float), ends[:-1])
    y, speakers = (
        np.concatenate([arrays[f"{name}_train"], arrays[f"{name}_test"]])
        for name in ("y", "speaker")
    )
    return Words(X, y.astype(int), speakers)


def without_mean(X: Frames) -> Frames:
    """Remove the mean of every word, in which microphone and voice are."""
    return [frames - frames.mean(axis=0) for frames in X]


def with_slopes(X: Frames) -> Frames:
    """Append how fast each column changes, by a regression over five frames."""
    result = []
    for frames in X:
        padded = np.pad(frames, ((2, 2), (0, 0)), mode="edge")
        near, far = padded[3:-1] - padded[1:-3], padded[4:] - padded[:-4]
        result.append(np.hstack([frames, (near + 2.0 * far) / 10.0]))
    return result


FEATURES = {
    "cepstra": lambda X: X,
    "means removed": without_mean,
    "means removed,\nwith slopes": lambda X: with_slopes(without_mean(X)),
}
OBJECTIVES = {"likelihood": GREY, "hybrid": BLUE}


def fit(train: Words, objective: str) -> HybridHMMClassifier:
    """Fit five states per digit that follow each other."""
    model = HybridHMMClassifier(
        5,
        objective=objective,
        topology="left-right",
        covariance_type="diag",
        tradeoff=30.0,
        random_state=0,
    )
    return model.fit(train.X, train.y)


def draw_accuracies(axes: Axes, accuracies: dict[str, list[float]]) -> None:
    """Draw bars by features and objective."""
    places = np.arange(len(FEATURES))
    for number, (objective, color) in enumerate(OBJECTIVES.items()):
        values = 100 * np.array(accuracies[objective])
        left = places + 0.38 * (number - 0.5)
        bars = axes.bar(left, values, 0.36, color=color, label=objective)
        axes.bar_label(bars, fmt="%.1f", fontsize=9)
    axes.set_xticks(places, list(FEATURES))
    axes.set(ylim=(50, 108), yticks=[50, 60, 70, 80, 90, 100], ylabel="accuracy in %")
    axes.set_title("Speakers that were never heard")
    axes.legend(loc="upper left", ncols=2, fontsize=9)


def draw_confusion(axes: Axes, y: np.ndarray, found: np.ndarray) -> None:
    """Draw how often digits are taken for others."""
    counts = confusion_matrix(y, found)
    axes.imshow(np.sqrt(counts), cmap="Blues")
    for (row, column), count in np.ndenumerate(counts):
        if count:
            is_dark = count > 0.4 * counts.max()
            color = "white" if is_dark else "black"
            axes.text(
                column, row, count, ha="center", va="center", color=color, fontsize=8
            )
    axes.set(xticks=range(10), yticks=range(10), xlabel="recognised", ylabel="spoken")
    axes.set_title(f"Hybrid, means removed: {100 * np.mean(y == found):.1f} %")


def draw_word(axes: Axes, cepstra: np.ndarray, states: np.ndarray, digit: int) -> None:
    """Draw the smooth spectrum of a word, and the states that its frames are in."""
    missing = N_BANDS - cepstra.shape[1]
    bands = idct(np.pad(cepstra, ((0, 0), (0, missing))), norm="ortho")
    axes.imshow(bands.T, aspect="auto", origin="lower", cmap="Greys")
    changes = np.flatnonzero(np.diff(states)) + 0.5
    for place in changes:
        axes.axvline(place, color=ORANGE, linewidth=2.0)
    edges = np.concatenate([[-0.5], changes, [len(states) - 0.5]])
    for left, right in pairwise(edges):
        state = states[int(left + 1.0)]
        middle = 0.5 * (left + right)
        axes.text(middle, N_BANDS - 2.5, state, color=ORANGE, ha="center", weight="bold")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="frame", ylabel="frequency", yticks=[])
    axes.set_title(f"A {digit}, and the states of its model")


def main(options: Options) -> None:
    words = read_words(options.data, options.quick)
    everybody = np.unique(words.speakers)
    train = words.of_speakers(everybody[:4])
    test = words.of_speakers(everybody[4:])
    print(f"{len(train.X)} words to train on, {len(test.X)} of other speakers\n")
    accuracies: dict[str, list[float]] = {objective: [] for objective in OBJECTIVES}
    for name, features in FEATURES.items():
        own = Words(features(train.X), train.y, train.speakers)
        X = features(test.X)
        for objective in OBJECTIVES:
            model = fit(own, objective)
            accuracy = model.score(X, test.y)
            accuracies[objective].append(accuracy)
            label = " ".join(name.split())
            print(f"{label:<28}{objective:<12}{100 * accuracy:>6.1f} %")
    model = fit(Words(without_mean(train.X), train.y, train.speakers), "hybrid")
    X = without_mean(test.X)
    found = model.predict(X)
    figure, axes = plt.subplots(2, 2, figsize=(10.5, 8.2), height_ratios=[1.0, 1.6])
    for own, digit in zip(axes[0], SHOWN, strict=True):
        word = int(np.flatnonzero((test.y == digit) & (found == digit))[0])
        _, [states] = model.decode([X[word]])
        draw_word(own, test.X[word], states, digit)
    draw_accuracies(axes[1, 0], accuracies)
    draw_confusion(axes[1, 1], test.y, found)
    finish(figure, "spoken_digits", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0], data=FILE))
