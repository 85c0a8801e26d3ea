"""How many labels training to discriminate needs, for models that are more or less right.

Left, two classes that are Gaussian: the model is right. Middle and right, digits, with
one covariance for all classes, and with diagonal ones, which are wrong about digits. Once
the rows without a label are left out, once they are learned from.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, ORANGE, Options, finish, read_options
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hybridmix import HybridMixtureClassifier

LABELS_PER_CLASS = [3, 10, 30, 100]
N_GAUSSIAN, N_DIGITS = 20, 2
STYLES = {"likelihood": (BLUE, "o"), "hybrid": (ORANGE, "s")}
FACTOR = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def split_digits(seed: int) -> Split:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.4, random_state=seed, stratify=y
    )
    return X, y, X_test, y_test


def split_gaussians(seed: int) -> Split:
    generator = np.random.default_rng(seed)
    y = np.arange(4400) % 2
    X = generator.standard_normal((len(y), 3)) @ FACTOR
    X[y == 1] += [0.8, 0.0, 0.8]
    return X[:400], y[:400], X[400:], y[400:]


CASES = [
    ("Gaussian classes, full", split_gaussians, "full", N_GAUSSIAN),
    ("digits, tied", split_digits, "tied", N_DIGITS),
    ("digits, diagonal", split_digits, "diag", N_DIGITS),
]


def test_errors(split: Split, shape: str, n_labels: int, seed: int) -> np.ndarray:
    """Return errors (objectives, without and with unlabelled rows)."""
    X, y, X_test, y_test = split
    generator = np.random.default_rng(seed)
    few = np.full(len(y), -1)
    for label in np.unique(y):
        rows = generator.permutation(np.flatnonzero(y == label))[:n_labels]
        few[rows] = label
    errors = np.empty((len(STYLES), 2))
    for j, objective in enumerate(STYLES):
        for k, kept in enumerate((few >= 0, np.full(len(y), True))):
            model = HybridMixtureClassifier(
                objective,
                tradeoff=10.0,
                loss="hinge",
                n_components=1,
                covariance_type=shape,
                random_state=0,
            )
            model.fit(X[kept], few[kept])
            errors[j, k] = 1.0 - model.score(X_test, y_test)
    return 100.0 * errors


def main(options: Options) -> None:
    numbers = LABELS_PER_CLASS[-1:] if options.quick else LABELS_PER_CLASS
    figure, panels = plt.subplots(1, 3, figsize=(11.4, 4.2))
    print("Test error in %, by labels per class:\n")
    print(f"{'':54}" + "".join(f"{n:>7}" for n in numbers))
    for axes, (title, split, shape, n_repetitions) in zip(panels, CASES, strict=True):
        seeds = range(1 if options.quick else n_repetitions)
        mean = np.array(
            [
                np.mean([test_errors(split(s), shape, n, s) for s in seeds], axis=0)
                for n in numbers
            ]
        )
        for j, (objective, (color, marker)) in enumerate(STYLES.items()):
            for k, rows in enumerate(("labelled rows only", "all rows")):
                name = f"{objective}, {rows}"
                values = mean[:, j, k]
                print(
                    f"{title + ': ' + name:<54}"
                    + "".join(f"{value:>7.1f}" for value in values)
                )
                line = "-" if k else "--"
                axes.plot(numbers, values, marker + line, color=color, label=name)
        axes.set_xscale("log")
        axes.set_xticks(numbers, [str(n) for n in numbers])
        axes.minorticks_off()
        axes.set(xlabel="labels per class", title=title, ylim=(0, None))
    panels[0].set_ylabel("test error in %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    finish(figure, "hybrid_labels", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
