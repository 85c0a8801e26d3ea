"""Rows without a target keep a polynomial in range.

On the left, a polynomial of degree 8 is fitted to rows from 0 to 10, and runs away from
10 on. On the right, rows from 10 to 14 take part in training without their targets.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLACK, BLUE, Options, finish, read_options

from hybridmix import MEDRegressor


def noisy_sine(n_known: int, n_unknown: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of one column, and targets that are missing from 10 on."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 10, n_known), rng.uniform(10, 14, n_unknown)])
    y = np.sin(x) + 0.1 * rng.normal(size=len(x))
    return x, np.where(x < 10.0, y, np.nan)


def rows(x: np.ndarray) -> np.ndarray:
    """Return values from 0 to 14 as a column between -1 and 1."""
    return (x[:, None] - 7.0) / 7.0


def main(options: Options) -> None:
    x, y = noisy_sine(60, 40)
    unknown, line = np.isnan(y), np.linspace(0.0, 14.0, 300)
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), sharey=True)
    titles = {None: "rows without a target left out", "gaussian": "and used"}
    C = 10.0 if options.quick else 30.0
    for ax, (transduction, title) in zip(axes, titles.items(), strict=True):
        model = MEDRegressor(
            "poly", C=C, degree=8, gamma=1.0, tol=1e-3, transduction=transduction
        ).fit(rows(x), y)
        ax.plot(line, np.sin(line), color=BLACK, linewidth=0.8, label="truth")
        ax.plot(line, model.predict(rows(line)), color=BLUE, label="prediction")
        ax.plot(x[~unknown], y[~unknown], ".", color=BLACK, markersize=4)
        ax.plot(x[unknown], np.full(unknown.sum(), -2.8), "|", color=BLACK)
        ax.set(xlabel="x", title=title, ylim=(-3.0, 3.0))
        largest = np.abs(model.predict(rows(x[unknown]))).max()
        print(f"{title}: largest prediction from 10 on {largest:.1f}")
    axes[0].set_ylabel("target")
    axes[0].legend(loc="upper left")
    finish(figure, "med_regression", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
