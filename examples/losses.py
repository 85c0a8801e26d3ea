"""The losses of the margin, and what they do with wrong labels.

Left, what a row adds to the objective by its log margin, with a desired margin of 2.
Right, the breast cancer table with diagonal Gaussians; a share of the training labels is
turned into the other one, test labels are left alone.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLACK, BLUE, GREEN, GREY, ORANGE, RED, Options, finish, read_options
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold

from hybridmix import HybridMixtureClassifier
from hybridmix.objectives import Margin, ScaledMargin

MARGIN = 2.0
SHARES = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25]
N_REPETITIONS = 5
STYLES = {
    "likelihood": (BLACK, "o", "-"),
    "hinge": (BLUE, "s", "-"),
    "ramp": (ORANGE, "^", "-"),
    "scaled": (GREEN, "D", "--"),
    "log": (RED, "v", ":"),
}


def draw_losses(axes: plt.Axes) -> None:
    margins = np.linspace(-6.0, 5.0, 500)
    hinge = Margin(margin=MARGIN, width=0.5 * MARGIN)
    ramp = Margin(margin=MARGIN, width=0.5 * MARGIN, largest_loss=2.0 * MARGIN)
    scaled = ScaledMargin(power=np.log(2.0) / MARGIN)
    values = {
        "hinge": hinge.of_margins(margins)[0],
        "ramp": ramp.of_margins(margins)[0],
        "scaled": scaled.of_margins(margins)[0] - np.log(2.0),
        "log": -np.log1p(np.exp(-margins)),
    }
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.axvline(MARGIN, color=GREY, linewidth=0.8, linestyle="--")
    for name, value in values.items():
        color, _, line = STYLES[name]
        axes.plot(margins, value, color=color, linestyle=line, linewidth=2, label=name)
    axes.set(xlabel="log margin of the row", title="what a row adds to the objective")
    axes.legend(loc="lower right")


def test_errors(share: float, seed: int) -> list[float]:
    """Return the errors of all losses, over five folds."""
    X, y = load_breast_cancer(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    errors = []
    for train, test in folds.split(X, y):
        wrong = np.random.default_rng(seed).random(len(train)) < share
        labels = np.where(wrong, 1 - y[train], y[train])
        for name in STYLES:
            model = HybridMixtureClassifier(
                "likelihood",
                tradeoff=10.0,
                n_components=1,
                covariance_type="diag",
                random_state=0,
            )
            if name != "likelihood":
                model.set_params(objective="hybrid", loss=name)
            model.fit(X[train], labels)
            errors.append(1.0 - model.score(X[test], y[test]))
    return np.reshape(errors, (5, len(STYLES))).mean(axis=0).tolist()


def main(options: Options) -> None:
    n_repetitions = 1 if options.quick else N_REPETITIONS
    shares = SHARES[::4] if options.quick else SHARES
    errors = np.array(
        [[test_errors(share, seed) for seed in range(n_repetitions)] for share in shares]
    )
    mean = 100.0 * errors.mean(axis=1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0))
    draw_losses(left)
    print(f"Test error in %, mean over {n_repetitions} times five folds:\n")
    print(f"{'wrong labels':<16}" + "".join(f"{share:>7.0%}" for share in shares))
    for own, (name, (color, marker, line)) in zip(mean.T, STYLES.items(), strict=True):
        print(f"{name:<16}" + "".join(f"{value:>7.1f}" for value in own))
        right.plot(
            100.0 * np.array(shares),
            own,
            color=color,
            marker=marker,
            linestyle=line,
            label=name,
        )
    right.set(xlabel="wrong labels in %", title="test error in %", ylim=(0, 11))
    right.legend(loc="upper left", ncols=3)
    finish(figure, "losses", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
