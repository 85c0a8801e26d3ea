"""Errors, log loss and likelihood along a path of tradeoffs, by cross-validation.

The columns of the breast cancer table are strongly correlated, and diagonal Gaussians are
wrong about that. Each measure is the score of a search along the same tradeoffs.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, GREY, ORANGE, RED, Options, finish, read_options
from sklearn.datasets import load_breast_cancer

from hybridmix import HybridMixtureClassifier, HybridMixtureClassifierCV

TRADEOFFS = [0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
N_FOLDS = 5


def log_likelihood(model: object, X: np.ndarray, y: np.ndarray) -> float:  # noqa: ARG001
    """Score a model by how well it describes held-out rows."""
    return model.score_samples(X).mean()


# Name, scoring, what turns the score into the measure, colour and marker.
MEASURES = [
    ("error in %", "accuracy", lambda score: 100.0 * (1.0 - score), BLUE, "o"),
    ("log loss", "neg_log_loss", lambda score: -score, ORANGE, "s"),
    ("mean log-likelihood of a row", log_likelihood, lambda score: score, RED, "^"),
]


def main(options: Options) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    tradeoffs = TRADEOFFS[::4] if options.quick else TRADEOFFS
    figure, panels = plt.subplots(1, 3, figsize=(11.0, 3.4))
    print(f"{'tradeoff':<30}" + "".join(f"{value:>8g}" for value in tradeoffs))
    for axes, (name, scoring, measure, color, marker) in zip(
        panels, MEASURES, strict=True
    ):
        search = HybridMixtureClassifierCV(
            HybridMixtureClassifier(loss="hinge"),
            n_components=[1],
            covariance_type=["diag"],
            tradeoff=tradeoffs,
            cv=N_FOLDS,
            scoring=scoring,
            random_state=0,
        ).fit(X, y)
        results = search.cv_results_
        folds = measure(
            np.array([results[f"split{i}_test_score"] for i in range(N_FOLDS)])
        )
        mean = folds.mean(axis=0)
        print(f"{name:<30}" + "".join(f"{value:>8.2f}" for value in mean))
        axes.plot(tradeoffs, folds.T, color=GREY, linewidth=0.8, alpha=0.7)
        axes.plot(tradeoffs, mean, color=color, marker=marker, linewidth=2.0)
        best = search.best_index_
        axes.plot(
            tradeoffs[best], mean[best], "o", color="none", ms=13, markeredgecolor="black"
        )
        axes.set_xscale("symlog", linthresh=0.1)
        axes.set_xticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
        axes.minorticks_off()
        axes.set(xlabel="tradeoff", title=name)
    finish(figure, "tradeoff_path", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
