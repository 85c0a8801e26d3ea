"""Expected values of missing cells as nodes of a graph."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

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
from hybridmix.families.product import ProductParameters
from hybridmix.families.subspace import SubspaceParameters
from hybridmix.models import Mixture
from hybridmix.onnx.densities import (
    FullDensities,
    SubspaceDensities,
    component_densities,
)
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.holes import by_holes, eliminated
from hybridmix.onnx.tables import RealRows, TableInputs


def expected_cells(graph: Graph, table: TableInputs, mixture: Mixture) -> Value:
    """Return what `hybridmix.models.embedding.expected_cells` does, (n, D)."""
    densities = component_densities(mixture.family, mixture.components, graph, table)
    log_joint = graph.op("Add", densities, mixture.log_weights)
    posterior = graph.op("Softmax", log_joint, axis=1)
    return _filled(mixture.family, mixture.components, graph, table, posterior)


@singledispatch
def _filled(family: Any, *_: Any) -> Value:
    """Return cells (n, D), their holes filled, given the posteriors of components."""
    raise UnsupportedError(
        family,
        "expected values of missing cells in ONNX",
        "Fit the network with features='posterior'.",
    )


@_filled.register
def _(
    family: Product,
    parameters: ProductParameters,
    graph: Graph,
    table: TableInputs,
    posterior: Value,
) -> Value:
    factors = zip(family.families, parameters.factors, strict=True)
    parts = [_filled(*factor, graph, table, posterior) for factor in factors]
    return graph.op("Concat", *parts, axis=1)


@_filled.register
def _(
    family: Categorical,
    parameters: CategoricalParameters,
    graph: Graph,
    table: TableInputs,
    posterior: Value,
) -> Value:
    probabilities = np.exp(parameters.log_probabilities)
    columns = np.split(probabilities, family.offsets[1:-1], axis=1)
    parts = []
    for indicators, column in zip(table.codes(graph), columns, strict=True):
        has_any = graph.op("ReduceMax", indicators, axes=[1], keepdims=1)
        means = graph.op("MatMul", posterior, column)
        is_missing = graph.op("Equal", has_any, 0.0)
        parts.append(graph.op("Where", is_missing, means, indicators))
    return graph.op("Concat", *parts, axis=1)


@_filled.register
def _(
    _family: DiagonalGaussian,
    parameters: DiagonalParameters,
    graph: Graph,
    table: TableInputs,
    posterior: Value,
) -> Value:
    rows = table.real(graph)
    means = graph.op("MatMul", posterior, parameters.means)
    return graph.op("Where", rows.observed, rows.values, means)


@_filled.register
def _(
    _family: FullGaussian,
    parameters: FullParameters,
    graph: Graph,
    table: TableInputs,
    posterior: Value,
) -> Value:
    rows = _WeightedRows(*table.real(graph), posterior)
    return by_holes(graph, _FullFills(parameters), rows)


@_filled.register
def _(
    _family: SubspaceGaussian,
    parameters: SubspaceParameters,
    graph: Graph,
    table: TableInputs,
    posterior: Value,
) -> Value:
    rows = _WeightedRows(*table.real(graph), posterior)
    return by_holes(graph, _SubspaceFills(parameters), rows)


class _WeightedRows(NamedTuple):
    """Real columns as `RealRows` has them, and posteriors (n, J) of components."""

    values: Value
    observed: Value
    posterior: Value

    @property
    def real(self) -> RealRows:
        return RealRows(self.values, self.observed)

    def take(self, graph: Graph, index: Value) -> _WeightedRows:
        """Return the rows of these numbers."""
        parts = (graph.op("Gather", part, index, axis=0) for part in self)
        return _WeightedRows(*parts)

    def presence(self, graph: Graph) -> Value:
        """Return the mask as numbers."""
        return self.real.presence(graph)

    def mean(self, graph: Graph, by_component: Value) -> Value:
        """Return weighted means (n, d) of what components expect, (J, d, n)."""
        weights = graph.op("Transpose", self.posterior, perm=[1, 0])
        weights = graph.op("Unsqueeze", weights, [1])
        terms = graph.op("Mul", by_component, weights)
        return graph.op(
            "Transpose", graph.op("ReduceSum", terms, [0], keepdims=0), perm=[1, 0]
        )

    def filled(self, graph: Graph, means: Value) -> Value:
        """Return the values, with means (n, d) where they are missing."""
        return graph.op("Where", self.observed, self.values, means)


class _FullFills:
    r"""Rows filled by Gaussians with any covariance.

    .. math:: \sum_j r_j \big[ \mu_j + \Sigma_{j, \cdot o} \Sigma_{j, oo}^{-1}
              (x_o - \mu_{j, o}) \big]
    """

    def __init__(self, parameters: FullParameters) -> None:
        self._parameters = parameters
        self._densities = FullDensities(parameters)
        self.width = parameters.means.shape[1]
        self.matrix_size = 2 * self._densities.matrix_size

    def complete(self, _graph: Graph, rows: _WeightedRows) -> Value:
        return rows.values

    def holed(self, graph: Graph, rows: _WeightedRows) -> Value:
        means, covariances = self._parameters.means, self._parameters.covariances
        matrix, error = self._densities.system(graph, rows.real)
        observed = graph.op("Transpose", rows.observed, perm=[1, 0])
        cross = graph.op("Where", observed, covariances[..., None], 0.0)
        _, _, rest = eliminated(
            graph,
            graph.op("Concat", matrix, cross, axis=1),
            graph.op("Concat", error, graph.op("Mul", error, 0.0), axis=1),
            self.width,
        )
        expected = graph.op("Sub", means[:, :, None], rest)
        return rows.filled(graph, rows.mean(graph, expected))


class _SubspaceFills:
    """Rows filled by the expected latent variables of `LatentRegression`."""

    def __init__(self, parameters: SubspaceParameters) -> None:
        self._parameters = parameters
        self._densities = SubspaceDensities(parameters)
        self.width = len(parameters.subspace.centre)
        self.matrix_size = 2 * self._densities.matrix_size

    def complete(self, _graph: Graph, rows: _WeightedRows) -> Value:
        return rows.values

    def holed(self, graph: Graph, rows: _WeightedRows) -> Value:
        latent, subspace = self._parameters.latent, self._parameters.subspace
        matrix, error, _ = self._densities.system(graph, rows.real)
        zeros = graph.op("Mul", matrix, 0.0)
        identity = graph.op("Add", zeros, np.eye(self._densities.size)[..., None])
        _, _, rest = eliminated(
            graph,
            graph.op("Concat", matrix, identity, axis=1),
            graph.op("Concat", error, graph.op("Mul", error, 0.0), axis=1),
            self._densities.size,
        )
        scores = rows.mean(graph, graph.op("Sub", latent.means[:, :, None], rest))
        along = graph.op("MatMul", scores, subspace.loading.T)
        return rows.filled(graph, graph.op("Add", along, subspace.centre))
