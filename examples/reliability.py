"""Probabilities after training to discriminate, before and after calibration.

Digits, a tied covariance, half of the rows for training. The temperature is fitted by
cross-validation within the training rows; labels stay the same.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, ORANGE, Options, finish, read_options
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hybridmix import HybridMixtureClassifier
from hybridmix.metrics import calibration_report
from hybridmix.plots import ReliabilityDisplay

TRADEOFFS = [0.0, 1.0, 10.0, 100.0]
N_BINS = 5


def main(options: Options) -> None:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0, stratify=y
    )
    tradeoffs = TRADEOFFS[-2:] if options.quick else TRADEOFFS
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.3))
    left.set_prop_cycle(color=[ORANGE, BLUE])
    losses = []
    print("tradeoff  calibrated  temperature  error  log loss  calibration error")
    for tradeoff in tradeoffs:
        for calibrate in (False, True):
            model = HybridMixtureClassifier(
                "hybrid" if tradeoff else "likelihood",
                tradeoff=tradeoff,
                loss="hinge",
                calibrate=calibrate,
                n_components=1,
                covariance_type="tied",
                random_state=0,
            ).fit(X, y)
            report = calibration_report(
                y_test, model.predict_proba(X_test), model.classes_, N_BINS
            )
            losses.append(report.log_loss)
            print(
                f"{tradeoff:8g}{calibrate!s:>12}{model.temperature_:13.1f}"
                f"{1 - report.accuracy:7.3f}{report.log_loss:10.2f}"
                f"{report.calibration_error:19.3f}"
            )
            if tradeoff == tradeoffs[-1]:
                name = "calibrated" if calibrate else "as trained"
                ReliabilityDisplay.from_estimator(
                    model, X_test, y_test, n_bins=N_BINS, name=name, ax=left
                )
                print(f"{'rows in the bins':>20}: {report.bin_counts.tolist()}")
    left.set_title(f"tradeoff {tradeoffs[-1]:g}")
    left.set(xlim=(0.3, 1.02), ylim=(0.3, 1.02))
    left.legend(loc="lower right")
    place = np.arange(len(tradeoffs))
    pairs = np.reshape(losses, (-1, 2)).T
    for own, color, marker, name in zip(
        pairs, (ORANGE, BLUE), "os", ("as trained", "calibrated"), strict=True
    ):
        right.plot(place, own, marker + "-", color=color, label=name)
    right.set_xticks(place, [f"{value:g}" for value in tradeoffs])
    right.set(xlabel="tradeoff", ylim=(0, None), title="log loss of the test rows")
    right.legend()
    finish(figure, "reliability", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
