"""What changes during training to discriminate, and which iterate is kept.

The breast cancer table with diagonal Gaussians and a large tradeoff. A fifth of the
training rows is held out; the iterate with the fewest errors on them is kept.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import Options, finish, read_options
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score

from hybridmix import HybridMixtureClassifier
from hybridmix.plots import TrainingDisplay

STOPPED = {"n_steps": 200, "validation_fraction": 0.2, "patience": 30}
SETTINGS = {
    "likelihood": {"objective": "likelihood"},
    "tradeoff 100": {"tradeoff": 100.0},
    "tradeoff 100, 200 steps": {"tradeoff": 100.0, "n_steps": 200},
    "tradeoff 100, early stopping": {"tradeoff": 100.0, **STOPPED},
    "tradeoff 10": {"tradeoff": 10.0},
}


def main(options: Options) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = HybridMixtureClassifier(
        "hybrid",
        tradeoff=100.0,
        loss="hinge",
        n_components=1,
        covariance_type="diag",
        **STOPPED,
        random_state=0,
    ).fit(X, y)
    kept = int(np.argmin(model.history_["validation_error"]))
    print(f"{model.n_iter_} iterations, of which number {kept} was kept")
    figure, panels = plt.subplots(2, 2, figsize=(8.6, 5.6))
    TrainingDisplay.from_estimator(model, axes=panels.ravel())
    folds = RepeatedStratifiedKFold(
        n_splits=5, n_repeats=1 if options.quick else 2, random_state=0
    )
    print("\nCross-validated errors:\n")
    for name, setting in SETTINGS.items():
        other = HybridMixtureClassifier(
            "hybrid",
            loss="hinge",
            n_components=1,
            covariance_type="diag",
            random_state=0,
        )
        other.set_params(**setting)
        error = 1.0 - cross_val_score(other, X, y, cv=folds).mean()
        print(f"{name:<32}{100 * error:>6.1f} %")
    finish(figure, "training_traces", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
