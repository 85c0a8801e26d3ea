"""The data sets of Roth's thesis, split the way that it splits them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import load_arrays, load_xy
from sklearn.decomposition import PCA

MNIST_TRAINING = 50_000
MNIST_DIMENSIONS = 50
USPS_SIZES = (7000, 1000, 3000)


@dataclass(frozen=True)
class Split:
    """Rows to train on, to choose by, and to report on."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def scaled(self) -> Split:
        """Divide all columns by one number, for kernels: the mean variance becomes 1."""
        scale = np.sqrt(self.X.var(axis=0).mean())
        parts = (self.X / scale, self.y, self.X_val / scale, self.y_val)
        return Split(self.name, *parts, self.X_test / scale, self.y_test)

    def projected(self, dimensions: int) -> Split:
        """Reduce the columns by principal components of the training rows."""
        pca = PCA(dimensions, svd_solver="full").fit(self.X)
        return Split(
            self.name,
            pca.transform(self.X),
            self.y,
            pca.transform(self.X_val),
            self.y_val,
            pca.transform(self.X_test),
            self.y_test,
        )

    def thinned(self, n_rows: int) -> Split:
        """Keep the first training rows, and a share of the others, for smoke runs."""
        return Split(
            self.name,
            self.X[:n_rows],
            self.y[:n_rows],
            self.X_val[: n_rows // 2],
            self.y_val[: n_rows // 2],
            self.X_test[: n_rows // 2],
            self.y_test[: n_rows // 2],
        )


def mnist50(data: Path) -> Split:
    """Return MNIST in 50 principal components: 50,000 / 10,000 / 10,000 digits."""
    arrays = load_arrays(data, "mnist")
    X = arrays["X_train"].reshape(60_000, -1).astype(float)
    y = arrays["y_train"].astype(int)
    train, rest = slice(0, MNIST_TRAINING), slice(MNIST_TRAINING, None)
    X_test = arrays["X_test"].reshape(10_000, -1).astype(float)
    whole = Split(
        "MNIST-50",
        X[train],
        y[train],
        X[rest],
        y[rest],
        X_test,
        arrays["y_test"].astype(int),
    )
    return whole.projected(MNIST_DIMENSIONS)


def usps(data: Path, seed: int = 0) -> Split:
    """Return USPS in pixels, shuffled: 7000 / 1000 / 3000 digits."""
    X, y = load_xy(data, "usps_11000")
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X.reshape(len(X), -1)[order], y[order].astype(int)
    ends = np.cumsum(USPS_SIZES)
    parts = [(X[a:b], y[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return Split("USPS", *parts[0], *parts[1], *parts[2])


def with_official_test(data: Path, name: str) -> Split:
    """Return a data set with a test part of its own; a fifth of the rest validates."""
    arrays = load_arrays(data, name)
    X, y = arrays["X_train"].astype(float), arrays["y_train"].astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    held, train = order[: len(y) // 5], order[len(y) // 5 :]
    X_test, y_test = arrays["X_test"].astype(float), arrays["y_test"].astype(int)
    return Split(name, X[train], y[train], X[held], y[held], X_test, y_test)
