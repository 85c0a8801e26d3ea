"""Log densities of components as nodes of a graph."""

from __future__ import annotations

from functools import reduce, singledispatch
from typing import Any, Protocol

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.exceptions import UnsupportedError
from hybridmix.families import (
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Product,
    SubspaceGaussian,
)
from hybridmix.families.categorical import CategoricalParameters
from hybridmix.families.moments import DiagonalParameters, FullParameters
from hybridmix.families.prior import LOG_2PI
from hybridmix.families.product import ProductParameters
from hybridmix.families.subspace import SubspaceParameters
from hybridmix.models import Mixture
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.tables import RealRows, TableInputs

# The matrices of a block of rows with holes have about this many numbers: they stay in
# the cache of a processor, and memory does not grow with the rows.
_BLOCK = 1 << 18
_TO_THE_END = np.iinfo(np.int64).max


@singledispatch
def component_densities(family: Any, *_: Any) -> Value:
    """Return the log densities of all components, in the units of the table, (n, J).

    Families are exported by functions that are registered for them, in one line each::

        @component_densities.register
        def _(family: Laplace, parameters, graph, table): ...

    Parameters
    ----------
    family : Family
        Its class decides which function is called.
    parameters : Parameters
        The parameters of the components.
    graph : Graph
        Where the nodes go.
    table : TableInputs
        The columns, which are inputs of the graph.
    """
    raise UnsupportedError(
        family,
        "an export to ONNX",
        "Gaussian and categorical families do; for others, register a function with "
        "hybridmix.onnx.component_densities.",
    )


@component_densities.register
def _(
    family: Product, parameters: ProductParameters, graph: Graph, table: TableInputs
) -> Value:
    factors = zip(family.families, parameters.factors, strict=True)
    terms = [component_densities(*factor, graph, table) for factor in factors]
    return _sum(graph, terms)


@component_densities.register
def _(
    family: Categorical,
    parameters: CategoricalParameters,
    graph: Graph,
    table: TableInputs,
) -> Value:
    parts = np.split(parameters.log_probabilities, family.offsets[1:-1], axis=1)
    terms = [
        graph.op("MatMul", indicators, part.T)
        for indicators, part in zip(table.codes(graph), parts, strict=True)
    ]
    return _sum(graph, terms)


@component_densities.register
def _(
    _family: DiagonalGaussian,
    parameters: DiagonalParameters,
    graph: Graph,
    table: TableInputs,
) -> Value:
    rows = table.real(graph)
    squares = graph.op("Mul", rows.values, rows.values)
    features = graph.op("Concat", squares, rows.values, rows.presence(graph), axis=1)
    densities = graph.op("MatMul", features, parameters.masked_natural.T)
    return _in_units(graph, densities, rows, table.scale)


@component_densities.register
def _(
    _family: FullGaussian, parameters: FullParameters, graph: Graph, table: TableInputs
) -> Value:
    rows = table.real(graph)
    densities = _by_holes(graph, _FullDensities(parameters), rows)
    return _in_units(graph, densities, rows, table.scale)


@component_densities.register
def _(
    _family: SubspaceGaussian,
    parameters: SubspaceParameters,
    graph: Graph,
    table: TableInputs,
) -> Value:
    rows = table.real(graph)
    densities = _by_holes(graph, _SubspaceDensities(parameters), rows)
    return _in_units(graph, densities, rows, table.scale)


def densities_in_units(graph: Graph, table: TableInputs, mixture: Mixture) -> Value:
    """Return the log densities of components in the units of shaped columns, (n, J)."""
    densities = component_densities(mixture.family, mixture.components, graph, table)
    volume = table.log_volume(graph)
    return densities if volume is None else graph.op("Sub", densities, volume)


def _sum(graph: Graph, terms: list[Value]) -> Value:
    return reduce(lambda total, term: graph.op("Add", total, term), terms)


def _in_units(graph: Graph, densities: Value, rows: RealRows, scale: FloatArray) -> Value:
    """Take the volume by which scaling shrank the density out again."""
    log_scale = np.log(scale)[:, None]
    log_volume = graph.op("MatMul", rows.presence(graph), log_scale)
    return graph.op("Sub", densities, log_volume)


# Rows with holes ------------------------------------------------------------------------


class _CorrelatedDensities(Protocol):
    """Densities that need matrices for every row with holes.

    Attributes
    ----------
    n_components : int
        J.
    n_matrices : int
        Matrices of a row: J, or 1 when all components share one.
    size : int
        Columns of a matrix.
    """

    n_components: int
    n_matrices: int
    size: int

    def complete(self, graph: Graph, rows: RealRows) -> Value:
        """Return the log densities of complete rows, (n, J)."""
        ...

    def holed(self, graph: Graph, rows: RealRows) -> Value:
        """Return the log densities of any rows, (n, J)."""
        ...


def _by_holes(graph: Graph, densities: _CorrelatedDensities, rows: RealRows) -> Value:
    """Treat rows with holes apart, so that complete rows do not pay for them."""
    complete = densities.complete(graph, rows)
    everywhere = graph.op("ReduceMin", rows.presence(graph), axes=[1], keepdims=0)
    holed = graph.op("NonZero", graph.op("Equal", everywhere, 0.0))
    index = graph.op("Squeeze", holed, [0])

    branch = Graph(graph)
    replaced = branch.op(
        "ScatterND",
        complete,
        branch.op("Unsqueeze", index, [1]),
        _by_blocks(branch, densities, rows, index),
    )
    branch.output(replaced, np.float64)
    otherwise = Graph(graph)
    otherwise.output(complete, np.float64)
    return graph.op(
        "If",
        graph.op("Greater", graph.op("Size", index), 0),
        then_branch=branch.proto("rows_with_holes"),
        else_branch=otherwise.proto("no_holes"),
    )


def _by_blocks(
    graph: Graph, densities: _CorrelatedDensities, rows: RealRows, index: Value
) -> Value:
    """Evaluate the rows of these numbers, (k, J), block by block to bound the memory."""
    largest = max(1, _BLOCK // (densities.n_matrices * densities.size**2))
    n_rows = graph.op("Size", index)
    n_blocks = _quotient_up(graph, n_rows, largest)
    block = _quotient_up(graph, n_rows, n_blocks)
    # Blocks are of one size. The first row stands in where the last one is not full.
    spare = graph.op("Sub", graph.op("Mul", n_blocks, block), n_rows)
    padding = graph.op("Concat", [0], graph.op("Unsqueeze", spare, [0]), axis=0)
    shape = [graph.op("Unsqueeze", side, [0]) for side in (n_blocks, block)]
    blocks = graph.op(
        "Reshape", graph.op("Pad", index, padding), graph.op("Concat", *shape, axis=0)
    )

    body = Graph(graph)
    own = rows.take(body, body.input(np.int64))
    body.output(
        densities.holed(body, own), np.float64, shape=["block", densities.n_components]
    )
    stacked = graph.op("Scan", blocks, body=body.proto("block"), num_scan_inputs=1)
    flat = graph.op("Reshape", stacked, [-1, densities.n_components])
    return graph.op("Slice", flat, [0], graph.op("Unsqueeze", n_rows, [0]), [0])


def _quotient_up(graph: Graph, number: Value, divisor: Value | int) -> Value:
    """Return a quotient of positive whole numbers, rounded up."""
    less_one = graph.op("Div", graph.op("Sub", number, 1), divisor)
    return graph.op("Add", less_one, 1)


def _eliminated(
    graph: Graph, matrix: Value, border: Value, size: int
) -> tuple[Value, Value]:
    r"""Eliminate the columns of positive definite matrices, one after the other.

    Rows are the last axis here, so that a step is one operation over all of them.

    Parameters
    ----------
    graph : Graph
        Where to.
    matrix : Value of shape (G, size, size, n)
        :math:`M`; G is J, or 1 when all components share one.
    border : Value of shape (J, size, n)
        :math:`r`.
    size : int
        Number of columns.

    Returns
    -------
    log_determinant : Value of shape (n, G)
        :math:`\log|M|`.
    quadratic : Value of shape (n, J)
        :math:`r^\top M^{-1} r`.
    """
    body = Graph(graph)
    body.input(np.int64, shape=[])  # the number of the step
    going = body.input(np.bool_, shape=[])
    left, rest = body.input(np.float64), body.input(np.float64)
    pivot = body.op("Slice", left, [0, 0], [1, 1], [1, 2])
    row = body.op("Slice", left, [0, 1], [1, _TO_THE_END], [1, 2])
    column = body.op("Slice", left, [1, 0], [_TO_THE_END, 1], [1, 2])
    others = body.op("Slice", left, [1, 1], [_TO_THE_END] * 2, [1, 2])
    first = body.op("Slice", rest, [0], [1], [1])
    others_of_rest = body.op("Slice", rest, [1], [_TO_THE_END], [1])
    share = body.op("Div", column, pivot)
    explained = body.op("Mul", share, row)
    explained_of_rest = body.op("Mul", body.op("Squeeze", share, [2]), first)
    pivot = body.op("Squeeze", pivot, [1, 2])
    first = body.op("Squeeze", first, [1])
    body.output(going, np.bool_, shape=[])
    body.output(body.op("Sub", others, explained), np.float64)
    body.output(body.op("Sub", others_of_rest, explained_of_rest), np.float64)
    body.output(body.op("Log", pivot), np.float64)
    body.output(body.op("Div", body.op("Mul", first, first), pivot), np.float64)
    _, _, *steps = graph.ops(
        "Loop", 4, size, True, matrix, border, body=body.proto("elimination")
    )
    log_determinant, quadratic = (
        graph.op("Transpose", graph.op("ReduceSum", step, [0], keepdims=0), perm=[1, 0])
        for step in steps
    )
    return log_determinant, quadratic


class _FullDensities:
    """Gaussians with any covariance, one each or one for all."""

    def __init__(self, parameters: FullParameters) -> None:
        self._parameters = parameters
        self.n_components = len(parameters.means)
        self.n_matrices, self.size, _ = parameters.covariances.shape

    def complete(self, graph: Graph, rows: RealRows) -> Value:
        whiteners, means = self._parameters.whiteners, self._parameters.means
        white = graph.op("MatMul", rows.values, whiteners.reshape(-1, self.size).T)
        white = graph.op("Reshape", white, [0, self.n_matrices, self.size])
        shifts = np.squeeze(whiteners @ means[:, :, None], axis=2)
        error = graph.op("Sub", white, shifts)
        squares = graph.op("ReduceSumSquare", error, axes=[2], keepdims=0)
        constants = -self._parameters.half_log_determinants - 0.5 * self.size * LOG_2PI
        return graph.op("Add", graph.op("Mul", squares, -0.5), constants)

    def holed(self, graph: Graph, rows: RealRows) -> Value:
        means, covariances = self._parameters.means, self._parameters.covariances
        values, observed = (graph.op("Transpose", part, perm=[1, 0]) for part in rows)
        both = graph.op(
            "And",
            graph.op("Unsqueeze", observed, [0]),
            graph.op("Unsqueeze", observed, [1]),
        )
        # Missing columns are independent of the others and have the variance one and no
        # error: they add nothing to determinants and quadratic forms.
        identity = np.eye(self.size)[:, :, None]
        matrix = graph.op("Where", both, covariances[..., None], identity)
        error = graph.op("Sub", values, means[:, :, None])
        error = graph.op("Where", observed, error, 0.0)
        log_determinant, quadratic = _eliminated(graph, matrix, error, self.size)
        log_2pi = np.full((self.size, 1), LOG_2PI)
        log_volume = graph.op("MatMul", rows.presence(graph), log_2pi)
        log_volume = graph.op("Add", log_volume, log_determinant)
        return graph.op("Mul", graph.op("Add", quadratic, log_volume), -0.5)


class _SubspaceDensities:
    r"""Gaussians in a subspace, by the latent variables of `LatentRegression`.

    With scores :math:`h` and the matrix :math:`G` of a row, and
    :math:`M_j = S_j^{-1} + G`, the log density is half of

    .. math:: (h - G a_j)^\top M_j^{-1} (h - G a_j) + (2 h - G a_j)^\top a_j
              - \log|S_j M_j| - \sum_{i \in o} \Big[ \frac{(x_i - m_i)^2}{\psi_i}
              + \log 2\pi\psi_i \Big].
    """

    def __init__(self, parameters: SubspaceParameters) -> None:
        self._parameters = parameters
        self.n_components, self.size = parameters.latent.means.shape
        self.n_matrices = self.n_components

    def complete(self, graph: Graph, rows: RealRows) -> Value:
        regression = self._parameters.regression
        scores, noise = self._projected(graph, rows)
        quadratic, shifts = regression.quadratic[:, :-1], regression.quadratic[:, -1]
        white = graph.op("Add", graph.op("MatMul", scores, quadratic.T), shifts)
        white = graph.op("Reshape", white, [0, self.n_matrices, self.size])
        squares = graph.op("ReduceSumSquare", white, axes=[2], keepdims=0)
        linear, constants = regression.linear[:, :-1], regression.linear[:, -1]
        along = graph.op("Add", graph.op("MatMul", scores, linear.T), constants)
        total = graph.op("Add", graph.op("Mul", squares, 0.5), along)
        return graph.op("Sub", total, graph.op("Mul", noise, 0.5))

    def holed(self, graph: Graph, rows: RealRows) -> Value:
        latent, subspace = self._parameters.latent, self._parameters.subspace
        scores, noise = self._projected(graph, rows)
        scores = graph.op("Unsqueeze", scores, [1])
        # Formed by the graph, they do not take space in the file; once, outside of loops.
        around = graph.outermost
        products = around.op(
            "Mul", subspace.scaled[:, :, None], subspace.loading[:, None]
        )
        products = around.op("Reshape", products, [0, -1])
        grams = graph.op("MatMul", rows.presence(graph), products)
        grams = graph.op("Reshape", grams, [0, self.size, self.size])
        # The matrices are symmetric, so that either side will do.
        pulls = graph.op("MatMul", latent.means, grams)
        grams = graph.op("Transpose", grams, perm=[1, 2, 0])
        error = graph.op("Sub", scores, pulls)
        log_determinant, quadratic = _eliminated(
            graph,
            graph.op("Add", grams, latent.precisions[..., None]),
            graph.op("Transpose", error, perm=[1, 2, 0]),
            self.size,
        )
        twice = graph.op("Sub", graph.op("Mul", scores, 2.0), pulls)
        along = graph.op("Mul", twice, latent.means)
        along = graph.op("ReduceSum", along, [2], keepdims=0)
        log_determinant = graph.op(
            "Add", log_determinant, 2.0 * latent.half_log_determinants
        )
        total = graph.op("Sub", graph.op("Add", quadratic, along), log_determinant)
        return graph.op("Mul", graph.op("Sub", total, noise), 0.5)

    def _projected(self, graph: Graph, rows: RealRows) -> tuple[Value, Value]:
        """Return scores (n, q), and twice the negative log density of noise (n, 1)."""
        subspace = self._parameters.subspace
        error = graph.op("Sub", rows.values, subspace.centre)
        error = graph.op("Where", rows.observed, error, 0.0)
        squares = graph.op("Mul", error, error)
        squares = graph.op("MatMul", squares, 1.0 / subspace.noise[:, None])
        log_volumes = subspace.log_volumes[:, None]
        log_volume = graph.op("MatMul", rows.presence(graph), log_volumes)
        scores = graph.op("MatMul", error, subspace.scaled)
        return scores, graph.op("Add", squares, log_volume)
