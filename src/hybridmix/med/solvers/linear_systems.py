r"""Newton's systems of linear models, by whichever factorisation is the smallest.

Of outputs :math:`F = w X^\top + b`, losses with curvatures :math:`d` of the constraints
and a penalty of weights and biases, the second derivative is

.. math:: H = \mathrm{diag}(1, \pi) + A^\top W \mathrm{diag}(d) W^\top A,
          \qquad A = [X, 1],

with :math:`W` the adjoint of the constraints. Constraints that have no curvature at
a point do not take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from hybridmix._typing import FloatArray, IntArray
from hybridmix.med.block_matrix import BlockMatrix
from hybridmix.med.constraints import Constraints
from hybridmix.med.models.linear import outputs_of, statistics

# Larger systems are solved by conjugate gradients, sparse ones earlier.
_MOST_DENSE, _MOST_SPARSE, _MOST_JOINT = 3000, 1000, 1500
_CHUNK_CELLS = 1 << 16
_MOST_CONJUGATE = 250
# Of the largest curvature: holds flat biases where no row says anything about them.
_RIDGE = 1e-10
_JITTERS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-4)


@dataclass(frozen=True)
class LinearSystems:
    """The quadratic models of the primal of one table.

    Parameters
    ----------
    X : ndarray, sparse array or BlockMatrix of shape (n, p)
        Rows.
    constraints : Constraints
        What is asked of the outputs.
    bias_variance : float
        Of the biases; 0 without biases, infinite for flat ones.
    """

    X: FloatArray | sparse.csr_array | BlockMatrix
    constraints: Constraints
    bias_variance: float

    def solve(
        self, curvature: FloatArray, gradient: FloatArray, accuracy: float
    ) -> FloatArray:
        """Return the solution of Newton's system.

        Parameters
        ----------
        curvature : ndarray of shape (R,)
            Curvatures of the constraints, with their weights.
        gradient : ndarray of shape (C, p + 1)
            Right-hand side; biases come last.
        accuracy : float
            Relative residual that is good enough, for conjugate gradients.
        """
        n_outputs, size = gradient.shape
        most = _MOST_SPARSE if sparse.issparse(self.X) else _MOST_DENSE
        if n_outputs > 1:
            curved = np.flatnonzero(curvature)
            if len(curved) < min(gradient.size, most):
                return self._by_constraints(curvature, curved, gradient)
            if gradient.size <= _MOST_JOINT:
                return self._by_columns(curvature, gradient)
            return self._by_products(curvature, gradient, accuracy)
        by_row = self._row_curvature(curvature, 0)[0]
        rows = np.flatnonzero(by_row)
        if len(rows) < size - 1 and len(rows) <= most:
            return self._by_rows(by_row, rows, gradient)
        if size - 1 <= most:
            return self._by_columns(curvature, gradient)
        return self._by_products(curvature, gradient, accuracy)

    @cached_property
    def _gram(self) -> FloatArray | None:
        """Products (n, n) of all rows, where they are fewer than the columns."""
        n, p = self.X.shape
        # Those in blocks are read where they are asked for.
        if n > p or n > _MOST_DENSE or isinstance(self.X, BlockMatrix):
            return None
        return _dense(self.X @ self.X.T)

    @cached_property
    def _squares(self) -> FloatArray | sparse.csr_array | BlockMatrix:
        X = self.X
        if isinstance(X, np.ndarray | BlockMatrix):
            return X**2
        return sparse.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape)

    def _row_curvature(self, curvature: FloatArray, output: int) -> FloatArray:
        """Return curvatures (C, n) between an output and all of them, by row."""
        return self.constraints.signed(curvature * self.balance(output))

    def balance(self, output: int) -> FloatArray:
        """Return how the margins (R,) change with the bias of an output."""
        unit = np.zeros((self.constraints.n_outputs, 1))
        unit[output] = 1.0
        shape = (self.constraints.n_outputs, self.constraints.n_rows)
        return self.constraints.margins(np.broadcast_to(unit, shape))

    def _bias_precision(self, largest: float) -> float:
        if self.bias_variance == np.inf:
            return _RIDGE * max(largest, 1.0)
        return 1.0 / self.bias_variance

    # Columns --------------------------------------------------------------------

    def _by_columns(self, curvature: FloatArray, gradient: FloatArray) -> FloatArray:
        """Solve by a factor of the whole second derivative, C (p + 1) squared."""
        n_outputs, size = gradient.shape
        hessian = np.zeros((n_outputs, size, n_outputs, size))
        for one in range(n_outputs):
            by_row = self._row_curvature(curvature, one)
            for other in range(one, n_outputs):
                block = _weighted_gram(self.X, by_row[other])
                hessian[one, :, other] = hessian[other, :, one] = block
        flat = hessian.reshape(gradient.size, gradient.size)
        biases = np.arange(size - 1, gradient.size, size)
        penalty = np.ones(gradient.size)
        if self.bias_variance == 0.0:
            flat[biases], flat[:, biases] = 0.0, 0.0
        else:
            largest = float(flat[biases, biases].max())
            penalty[biases] = self._bias_precision(largest)
        flat[np.diag_indices_from(flat)] += penalty
        return _solved(flat, gradient.ravel()).reshape(gradient.shape)

    # Rows -----------------------------------------------------------------------

    def _by_rows(
        self, by_row: FloatArray, rows: IntArray, gradient: FloatArray
    ) -> FloatArray:
        r"""Solve by a factor of the rows that have a curvature, for one output.

        With :math:`K = X X^\top + \mathrm{diag}(1/d)` of these rows, Woodbury's identity
        and the elimination of the weights give, for a right-hand side :math:`(r, s)`,

        .. math:: \beta = \frac{s - 1^\top K^{-1} X r}{\pi + 1^\top K^{-1} 1}, \qquad
                  v = r - X^\top K^{-1} (X r + \beta).
        """
        right, last = gradient[0, :-1], float(gradient[0, -1])
        curved = by_row[rows]
        X = self.X[rows]
        known = self._gram
        system = _dense(X @ X.T) if known is None else known[np.ix_(rows, rows)]
        system[np.diag_indices_from(system)] += 1.0 / curved
        pushed = X @ right
        both = np.column_stack([pushed, np.ones(len(rows))])
        solved = _solved(system, both)
        bias = 0.0
        if self.bias_variance > 0.0:
            precision = self._bias_precision(float(curved.sum()))
            bias = (last - solved[:, 0].sum()) / (precision + solved[:, 1].sum())
        weights = right - X.T @ (solved[:, 0] + bias * solved[:, 1])
        return np.append(weights, bias)[None]

    # Constraints ----------------------------------------------------------------

    def _by_constraints(
        self, curvature: FloatArray, curved: IntArray, gradient: FloatArray
    ) -> FloatArray:
        r"""Solve by a factor of the constraints that have a curvature.

        As for one output, with :math:`U` and :math:`B` the derivatives of their margins
        by weights and biases, and :math:`K = U U^\top + \mathrm{diag}(1/d)`:

        .. math:: \beta = (\pi I + B^\top K^{-1} B)^{-1} (s - B^\top K^{-1} U r), \qquad
                  v = r - U^\top K^{-1} (U r + B \beta).
        """
        asked = self.constraints
        by_bias = np.stack([self.balance(c)[curved] for c in range(asked.n_outputs)])
        X = self.X[asked.rows[curved]]
        system = (by_bias.T @ by_bias) * _dense(X @ X.T)
        system[np.diag_indices_from(system)] += 1.0 / curvature[curved]
        pushed = asked.margins(outputs_of(self.X, gradient[:, :-1]))[curved]
        solved = _solved(system, np.column_stack([pushed, by_bias.T]))
        bias = np.zeros(asked.n_outputs)
        if self.bias_variance > 0.0:
            inner = by_bias @ solved[:, 1:]
            inner += self._bias_precision(float(curvature.max())) * np.eye(len(inner))
            right = gradient[:, -1] - by_bias @ solved[:, 0]
            bias[:] = np.linalg.lstsq(inner, right, rcond=None)[0]
        slopes = np.zeros(asked.n_constraints)
        slopes[curved] = solved[:, 0] + solved[:, 1:] @ bias
        weights = gradient[:, :-1] - statistics(self.X, asked.signed(slopes))
        return np.column_stack([weights, bias])

    # Products -------------------------------------------------------------------

    def _by_products(
        self, curvature: FloatArray, gradient: FloatArray, accuracy: float
    ) -> FloatArray:
        """Solve by conjugate gradients, with the diagonal as the preconditioner."""
        diagonal = np.empty_like(gradient)
        for output in range(len(gradient)):
            own = self._row_curvature(curvature, output)[output]
            diagonal[output, :-1] = 1.0 + self._squares.T @ own
            diagonal[output, -1] = own.sum()
        has_bias = self.bias_variance > 0.0
        precision = 1.0
        if has_bias:
            precision = self._bias_precision(float(diagonal[:, -1].max()))
        diagonal[:, -1] = diagonal[:, -1] * has_bias + precision

        def product(vector: FloatArray) -> FloatArray:
            outputs = outputs_of(self.X, vector[:, :-1]) + has_bias * vector[:, -1:]
            signed = self.constraints.signed(
                curvature * self.constraints.margins(outputs)
            )
            result = np.empty_like(vector)
            result[:, :-1] = statistics(self.X, signed) + vector[:, :-1]
            result[:, -1] = has_bias * signed.sum(axis=1) + precision * vector[:, -1]
            return result

        return conjugate_gradients(product, gradient, diagonal, accuracy)


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    diagonal: FloatArray,
    accuracy: float,
) -> FloatArray:
    """Solve a positive definite system that is known by its products.

    Parameters
    ----------
    product : callable
        The system times a vector.
    right : ndarray
        Right-hand side, of any shape.
    diagonal : ndarray
        Diagonal of the system, or of one near it.
    accuracy : float
        Relative residual to stop at, in the norm of the inverse diagonal.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    scaled = residual / diagonal
    direction = scaled
    norm = first = float(np.vdot(residual, scaled))
    for _ in range(_MOST_CONJUGATE):
        if norm <= accuracy**2 * first:
            break
        image = product(direction)
        step = norm / float(np.vdot(direction, image))
        solution += step * direction
        residual -= step * image
        scaled = residual / diagonal
        before, norm = norm, float(np.vdot(residual, scaled))
        direction = scaled + (norm / before) * direction
    return solution


def _weighted_gram(
    X: FloatArray | sparse.csr_array | BlockMatrix, weights: FloatArray
) -> FloatArray:
    """Return ``[X, 1]' diag(weights) [X, 1]``, for weights of any sign."""
    if isinstance(X, BlockMatrix):
        return X.summed(_weighted_gram, weights)
    size = X.shape[1] + 1
    gram = np.zeros((size, size))
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(sign * weights > 0.0)
        for chunk in _chunks(rows, size):
            roots = np.sqrt(np.abs(weights[chunk]))
            scaled = X[chunk] * roots[:, None]
            border = scaled.T @ roots
            gram[:-1, :-1] += sign * _dense(scaled.T @ scaled)
            gram[:-1, -1] += sign * border
            gram[-1, :-1] += sign * border
            gram[-1, -1] += sign * float(roots @ roots)
    return gram


def _chunks(rows: IntArray, size: int) -> Iterator[IntArray]:
    """Split rows into chunks whose copies stay in the cache."""
    length = max(_CHUNK_CELLS // size, 256)
    for start in range(0, len(rows), length):
        yield rows[start : start + length]


def _dense(matrix: Any) -> FloatArray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def _solved(system: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system, with a little more of it if it has to be."""
    scale = 1.0 / np.sqrt(system.diagonal())
    scaled = system * scale
    scaled *= scale[:, None]
    along = scale if right.ndim == 1 else scale[:, None]
    for jitter in (0.0, *_JITTERS):
        scaled[np.diag_indices_from(scaled)] += jitter
        try:
            factor = linalg.cho_factor(scaled, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
        return along * linalg.cho_solve(factor, along * right, check_finite=False)
    raise FloatingPointError("Newton's system is not finite; are the rows too large?")
