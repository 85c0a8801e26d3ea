"""The members of a committee, their shares, and what they decide together.

Two half moons with noise. Candidates compete on held-out rows; the three largest members
and the committee are drawn with the borders that they find.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import Options, Plane, draw_classes, finish, read_options
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss

from hybridmix import HybridMixtureClassifier

N_ROWS, N_TEST = 200, 5000
N_MEMBERS = 3
PLANE = Plane.around_origin(2.6)


def draw_rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_moons(n_rows, noise=0.35, random_state=seed)
    return 1.3 * (X - [0.5, 0.25]), y


def main(options: Options) -> None:
    X, y = draw_rows(N_ROWS, 0)
    X_test, y_test = draw_rows(N_TEST, 1)
    model = HybridMixtureClassifier(random_state=0).fit(X, y)
    voting = [row for row in model.leaderboard_ if row["share"] > 0]
    voting.sort(key=lambda row: -row["share"])
    names = [f"{row['candidate']}\nshare {100 * row['share']:.0f} %" for row in voting]
    panels = [*zip(names, model.members_, strict=True)][:N_MEMBERS]
    panels.append((f"the committee of {len(model.members_)}\n", model))
    figure, all_axes = plt.subplots(1, len(panels), figsize=(11.6, 3.7), squeeze=False)
    print(f"Test rows: {N_TEST}\n")
    for axes, (name, own) in zip(all_axes[0], panels, strict=True):
        PLANE.draw_border(axes, own)
        draw_classes(axes, X, y)
        probabilities = own.predict_proba(X_test)
        error = np.mean(own.predict(X_test) != y_test)
        loss = log_loss(y_test, probabilities)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel(f"{100 * error:.1f} % errors, log loss {loss:.3f}")
        print(f"{' '.join(name.split()):<50}{100 * error:>5.1f} %{loss:>8.3f}")
    finish(figure, "committee", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
