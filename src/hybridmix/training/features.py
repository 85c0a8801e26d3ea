"""Features whose inner products are a kernel, for solvers of linear functions."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hybridmix._typing import FloatArray
from hybridmix.training.machines import MachineOptions, Matrix

# Directions whose variance is smaller, relative to the largest one, are left out.
_NEGLIGIBLE = 1e-10


def inner_product_features(
    X: Matrix, options: MachineOptions
) -> tuple[FloatArray, FloatArray]:
    """Return features (n, q) whose inner products are the kernel, and a basis (p, q).

    The basis turns weights of the features into weights of the columns, or of the rows
    for kernels.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Rows, or their kernel matrix.
    options : MachineOptions
        Says which kernel.
    """
    if options.kernels or options.precomputed:
        rows = np.asarray(X)
        kernel = rows if options.precomputed else options.kernels[0].between(rows, rows)
        values, vectors = np.linalg.eigh(np.asarray(kernel, dtype=np.float64))
        used = values > _NEGLIGIBLE * values[-1]
        roots = np.sqrt(values[used])
        return vectors[:, used] * roots, vectors[:, used] / roots
    dense = X.toarray() if isinstance(X, sparse.csr_array) else X
    left, values, right = np.linalg.svd(dense, full_matrices=False)
    used = values > _NEGLIGIBLE * values[0]
    return left[:, used] * values[used], right[used].T
