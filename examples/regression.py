"""Predictive distributions: a curve with two branches, and a table with holes.

On the left, some rows have one of two targets: their mean is of no use, the distribution
is. On the right, test rows of the diabetes table with a fifth of the cells missing.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLACK, BLUE, Options, finish, read_options
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from hybridmix import MixtureRegressor
from hybridmix.plots import PredictionIntervalsDisplay


def branches(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of one column, and targets on one of two branches for x > 0."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, n_rows)
    sign = rng.choice([-1.0, 1.0], n_rows)
    y = sign * 1.5 * np.sqrt(np.maximum(x, 0.0)) + 0.15 * rng.normal(size=n_rows)
    return x[:, None], y


def main(options: Options) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.3))
    X, y = branches(200 if options.quick else 600)
    curve = MixtureRegressor(8, covariance_type="full", tradeoff=1.0, random_state=0)
    curve.fit(X, y)
    x, values = np.linspace(-2.0, 2.0, 120), np.linspace(-3.0, 3.0, 150)
    rows = np.repeat(x, len(values))[:, None]
    logs = curve.log_predictive_density(rows, np.tile(values, len(x)))
    density = np.exp(logs).reshape(len(x), len(values)).T
    left.pcolormesh(x, values, np.sqrt(density), cmap="Blues", rasterized=True)
    left.plot(X[:, 0], y, ".", color=BLACK, markersize=2)
    left.plot(x, curve.predict(x[:, None]), color=BLUE, linestyle="--", label="mean")
    left.set(xlabel="x", ylabel="target", title="the density of the target given x")
    left.legend(loc="upper left")

    X, y = load_diabetes(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    effort = "fast" if options.quick else "balanced"
    model = MixtureRegressor(effort=effort, random_state=0).fit(X, y)
    display = PredictionIntervalsDisplay.from_estimator(model, X_test, y_test, ax=right)
    print(f"R2 of the test rows: {model.score(X_test, y_test):.2f}")
    print(f"90 % intervals hold {display.covered:.1%} of {len(y_test)} test rows")
    finish(figure, "regression", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
