"""Log densities of components as nodes of a graph."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import reduce, singledispatch
from typing import Any

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
from hybridmix.onnx.holes import by_holes, eliminated
from hybridmix.onnx.tables import RealRows, TableInputs


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
    return total(graph, terms)


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
    return total(graph, terms)


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
    return in_units(graph, densities, rows, table.scale)


@component_densities.register
def _(
    _family: FullGaussian, parameters: FullParameters, graph: Graph, table: TableInputs
) -> Value:
    rows = table.real(graph)
    densities = by_holes(graph, FullDensities(parameters), rows)
    return in_units(graph, densities, rows, table.scale)


@component_densities.register
def _(
    _family: SubspaceGaussian,
    parameters: SubspaceParameters,
    graph: Graph,
    table: TableInputs,
) -> Value:
    rows = table.real(graph)
    densities = by_holes(graph, SubspaceDensities(parameters), rows)
    return in_units(graph, densities, rows, table.scale)


def mixture_densities(graph: Graph, table: TableInputs, mixture: Mixture) -> Value:
    """Return the log densities of the components of a mixture, (n, J).

    What the graph already has of a mixture of the same components is used again.
    """
    known = table.known_densities
    key = content_of(mixture.components)
    if key not in known:
        family = mixture.family
        known[key] = component_densities(family, mixture.components, graph, table)
    return known[key]


def content_of(parameters: Any) -> Hashable:
    """Return what is the same for parameters that are equal, also after loading."""
    if isinstance(parameters, np.ndarray):
        return parameters.shape, parameters.tobytes()
    if isinstance(parameters, tuple):
        return tuple(map(content_of, parameters))
    if is_dataclass(parameters):
        own = [getattr(parameters, part.name) for part in fields(parameters)]
        return type(parameters), *map(content_of, own)
    return parameters if isinstance(parameters, Hashable) else id(parameters)


def densities_in_units(graph: Graph, table: TableInputs, mixture: Mixture) -> Value:
    """Return the log densities of components in the units of shaped columns, (n, J)."""
    densities = mixture_densities(graph, table, mixture)
    volume = table.log_volume(graph)
    return densities if volume is None else graph.op("Sub", densities, volume)


def total(graph: Graph, terms: list[Value]) -> Value:
    """Return the sum of values of the same shape."""
    return reduce(lambda sum_, term: graph.op("Add", sum_, term), terms)


def in_units(graph: Graph, densities: Value, rows: RealRows, scale: FloatArray) -> Value:
    """Take the volume by which scaling shrank the density out again."""
    log_scale = np.log(scale)[:, None]
    log_volume = graph.op("MatMul", rows.presence(graph), log_scale)
    return graph.op("Sub", densities, log_volume)


class FullDensities:
    """Gaussians with any covariance, one each or one for all."""

    def __init__(self, parameters: FullParameters) -> None:
        self._parameters = parameters
        self.width = len(parameters.means)
        self.n_matrices, self.size, _ = parameters.covariances.shape
        self.matrix_size = parameters.covariances.size

    def complete(self, graph: Graph, rows: RealRows) -> Value:
        """Return the log densities of complete rows, (n, J)."""
        whiteners, means = self._parameters.whiteners, self._parameters.means
        white = graph.op("MatMul", rows.values, whiteners.reshape(-1, self.size).T)
        white = graph.op("Reshape", white, [0, self.n_matrices, self.size])
        shifts = np.squeeze(whiteners @ means[:, :, None], axis=2)
        error = graph.op("Sub", white, shifts)
        squares = graph.op("ReduceSumSquare", error, axes=[2], keepdims=0)
        constants = -self._parameters.half_log_determinants - 0.5 * self.size * LOG_2PI
        return graph.op("Add", graph.op("Mul", squares, -0.5), constants)

    def holed(self, graph: Graph, rows: RealRows) -> Value:
        """Return the log densities of any rows, (n, J)."""
        matrix, error = self.system(graph, rows)
        log_determinant, quadratic, _ = eliminated(graph, matrix, error, self.size)
        return self.log_densities(graph, rows, log_determinant, quadratic)

    def log_densities(
        self, graph: Graph, rows: RealRows, log_determinant: Value, quadratic: Value
    ) -> Value:
        """Return the log densities (n, J) that an elimination leads to."""
        log_2pi = np.full((self.size, 1), LOG_2PI)
        log_volume = graph.op("MatMul", rows.presence(graph), log_2pi)
        log_volume = graph.op("Add", log_volume, log_determinant)
        return graph.op("Mul", graph.op("Add", quadratic, log_volume), -0.5)

    def system(self, graph: Graph, rows: RealRows) -> tuple[Value, Value]:
        """Return covariances (G, d, d, n) of what is observed, and errors (J, d, n)."""
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
        return matrix, graph.op("Where", observed, error, 0.0)


class SubspaceDensities:
    r"""Gaussians in a subspace, by the latent variables of `LatentRegression`.

    With scores :math:`h` and the matrix :math:`G` of a row, and
    :math:`M_j = S_j^{-1} + G`, the log density is half of

    .. math:: (h - G a_j)^\top M_j^{-1} (h - G a_j) + (2 h - G a_j)^\top a_j
              - \log|S_j M_j| - \sum_{i \in o} \Big[ \frac{(x_i - m_i)^2}{\psi_i}
              + \log 2\pi\psi_i \Big].
    """

    def __init__(self, parameters: SubspaceParameters) -> None:
        self._parameters = parameters
        self.width, self.size = parameters.latent.means.shape
        self.matrix_size = self.width * self.size**2

    def complete(self, graph: Graph, rows: RealRows) -> Value:
        """Return the log densities of complete rows, (n, J)."""
        regression = self._parameters.regression
        scores, noise = self._projected(graph, rows)
        quadratic, shifts = regression.quadratic[:, :-1], regression.quadratic[:, -1]
        white = graph.op("Add", graph.op("MatMul", scores, quadratic.T), shifts)
        white = graph.op("Reshape", white, [0, self.width, self.size])
        squares = graph.op("ReduceSumSquare", white, axes=[2], keepdims=0)
        linear, constants = regression.linear[:, :-1], regression.linear[:, -1]
        along = graph.op("Add", graph.op("MatMul", scores, linear.T), constants)
        total = graph.op("Add", graph.op("Mul", squares, 0.5), along)
        return graph.op("Sub", total, graph.op("Mul", noise, 0.5))

    def holed(self, graph: Graph, rows: RealRows) -> Value:
        """Return the log densities of any rows, (n, J)."""
        matrix, error, others = self.system(graph, rows)
        log_determinant, quadratic, _ = eliminated(graph, matrix, error, self.size)
        return self.log_densities(graph, others, log_determinant, quadratic)

    def log_densities(
        self, graph: Graph, others: Value, log_determinant: Value, quadratic: Value
    ) -> Value:
        """Return the log densities (n, J) that an elimination leads to."""
        total = graph.op("Sub", graph.op("Add", quadratic, others), log_determinant)
        return graph.op("Mul", total, 0.5)

    def system(self, graph: Graph, rows: RealRows) -> tuple[Value, Value, Value]:
        """Return matrices M (J, q, q, n), errors (J, q, n), and other terms (n, J)."""
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
        matrix = graph.op("Add", grams, latent.precisions[..., None])
        error = graph.op("Sub", scores, pulls)
        twice = graph.op("Sub", graph.op("Mul", scores, 2.0), pulls)
        along = graph.op("Mul", twice, latent.means)
        along = graph.op("ReduceSum", along, [2], keepdims=0)
        along = graph.op("Sub", along, 2.0 * latent.half_log_determinants)
        others = graph.op("Sub", along, noise)
        return matrix, graph.op("Transpose", error, perm=[1, 2, 0]), others

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
