"""Large tradeoffs that are best for complete rows lose when many cells are missing.

Digits, diagonal Gaussians, trained on complete rows. Cells of the test rows are removed
at random, and marginalised by the model.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLACK, BLUE, ORANGE, RED, Options, finish, read_options
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hybridmix import HybridMixtureClassifier

TRADEOFFS = [0.0, 1.0, 10.0, 100.0]
STYLES = [(BLACK, "o", "-"), (BLUE, "s", "-"), (ORANGE, "^", "--"), (RED, "D", ":")]
RATES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
N_REPETITIONS = 10


def test_errors(seed: int) -> np.ndarray:
    """Return errors (tradeoffs, rates) of one split of the rows."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y
    )
    chance = np.random.default_rng(seed).random(X_test.shape)
    tables = [np.where(chance < rate, np.nan, X_test) for rate in RATES]
    errors = []
    for tradeoff in TRADEOFFS:
        model = HybridMixtureClassifier(
            "hybrid" if tradeoff else "likelihood",
            tradeoff=tradeoff,
            loss="hinge",
            n_components=1,
            covariance_type="diag",
            random_state=0,
        ).fit(X, y)
        errors.append([1.0 - model.score(table, y_test) for table in tables])
    return np.array(errors)


def main(options: Options) -> None:
    n_repetitions = 2 if options.quick else N_REPETITIONS
    errors = 100.0 * np.array([test_errors(seed) for seed in range(n_repetitions)])
    mean = errors.mean(axis=0)
    beyond = mean - mean[0]
    # Of the differences, since all models meet the same rows and holes.
    half = 2.0 * (errors - errors[:, :1]).std(axis=0, ddof=1) / np.sqrt(n_repetitions)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2))
    print(f"Test error in %, mean over {n_repetitions} splits:\n")
    print(f"{'missing':<16}" + "".join(f"{rate:>7.0%}" for rate in RATES))
    share = 100.0 * np.array(RATES)
    for i, (tradeoff, (color, marker, line)) in enumerate(
        zip(TRADEOFFS, STYLES, strict=True)
    ):
        name = f"tradeoff {tradeoff:g}"
        print(f"{name:<16}" + "".join(f"{value:>7.1f}" for value in mean[i]))
        style = {"color": color, "marker": marker, "linestyle": line, "label": name}
        left.plot(share, mean[i], **style)
        right.errorbar(share, beyond[i], half[i], capsize=3, **style)
    left.set(xlabel="missing cells in %", title="test error in %", ylim=(0, None))
    right.set(xlabel="missing cells in %", title="difference to the likelihood")
    left.legend()
    finish(figure, "missing_and_tradeoff", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
