"""Which of 1000 columns matter: the switches of a feature selector.

200 rows of 1000 normal columns, 20 of which decide about the label. On the left, the
columns of one such table that are included with the highest probability; on the right,
how many of the 20 are among the first columns, ranked by the selector and by two other
methods, on average over 20 tables.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, RED, Options, finish, fit_l1_logistic, read_options
from sklearn.feature_selection import f_classif

from hybridmix import MEDFeatureSelector
from hybridmix.plots import InclusionDisplay

N_ROWS, N_COLUMNS, N_RELEVANT, N_SHOWN, N_RANKED = 200, 1000, 20, 20, 100


def draw_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    weights = rng.choice([-1, 1], N_RELEVANT) * rng.uniform(0.5, 1.5, N_RELEVANT)
    y = X[:, :N_RELEVANT] @ weights + rng.normal(size=N_ROWS) > 0
    return X, y.astype(int)


def found(scores: np.ndarray) -> np.ndarray:
    """Return how many relevant columns are among the first ones, by their number."""
    # Columns of equal score, such as weights of 0, are in random order.
    order = np.lexsort((np.random.default_rng(0).random(N_COLUMNS), -scores))
    return np.cumsum(order[:N_RANKED] < N_RELEVANT)


def rankings(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return how many relevant columns each method places first."""
    l1 = fit_l1_logistic(X, y)
    return {
        "switches, one fit": found(MEDFeatureSelector().fit(X, y).scores_),
        "L1 logistic, cross-validated": found(np.abs(l1.coef_[0])),
        "F test, column by column": found(f_classif(X, y)[0]),
    }


def main(options: Options) -> None:
    X, y = draw_rows(100)
    selector = MEDFeatureSelector().fit(X, y)
    kept = selector.get_support(indices=True)
    print(f"{len(kept)} columns kept, {np.sum(kept < N_RELEVANT)} of them relevant")
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.4), layout="constrained")
    kinds = ["relevant", "noise"]
    names = [f"{kinds[j >= N_RELEVANT]} {j}" for j in range(N_COLUMNS)]
    InclusionDisplay.from_estimator(
        selector, n_columns=N_SHOWN, feature_names=names, ax=axes[0]
    )
    seeds = range(100, 102 if options.quick else 120)
    draws = [rankings(*draw_rows(seed)) for seed in seeds]
    looks = [(BLUE, "-"), (RED, "--"), ("black", ":")]
    for name, (color, line) in zip(draws[0], looks, strict=True):
        counts = np.mean([draw[name] for draw in draws], axis=0)
        axes[1].plot(np.arange(1, N_RANKED + 1), counts, line, color=color, label=name)
        print(f"{name}: {counts[N_RELEVANT - 1]:.1f} of the first {N_RELEVANT}, ", end="")
        print(f"{counts[-1]:.1f} of the first {N_RANKED} are relevant")
    axes[1].set(xlabel="columns kept", ylabel=f"relevant ones, of {N_RELEVANT}")
    axes[1].legend()
    finish(figure, "feature_switches", options.save)


if __name__ == "__main__":
    main(read_options(__doc__ or ""))
