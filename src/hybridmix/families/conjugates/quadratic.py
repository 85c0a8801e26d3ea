"""Sums of outer products of rows, and quadratic forms of rows."""

from __future__ import annotations

import numpy as np

from hybridmix._typing import FloatArray


def second_moments(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``sum_n w_n x_n x_n^T`` (J, d, d) of columns (d, n) by weights (J, n)."""
    return np.stack([(columns * own) @ columns.T for own in weights])


def quadratic_forms(columns: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return ``x_n^T A x_n`` (J, n) of columns (d, n) by matrices (J, d, d)."""
    return np.stack([np.einsum("in,in->n", a @ columns, columns) for a in matrices])
