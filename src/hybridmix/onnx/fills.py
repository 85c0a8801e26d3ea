"""Expected values of missing cells as nodes of a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
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
    content_of,
    in_units,
    total,
)
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.holes import by_holes, eliminated
from hybridmix.onnx.tables import RealRows, TableInputs


class Filling(NamedTuple):
    """What the components of a mixture say about rows with holes.

    Attributes
    ----------
    densities : Value
        Log densities of what is observed, in the units of the table, (n, J).
    filled : callable
        Makes cells (n, D), their holes filled, of posteriors (n, J).
    """

    densities: Value
    filled: Callable[[Value], Value]


def expected_cells(graph: Graph, table: TableInputs, mixture: Mixture) -> Value:
    """Return what `hybridmix.models.embedding.expected_cells` does, (n, D).

    The densities that it takes are kept for whatever needs them later.
    """
    own = _filling(mixture.family, mixture.components, graph, table)
    table.known_densities[content_of(mixture.components)] = own.densities
    log_joint = graph.op("Add", own.densities, mixture.log_weights)
    return own.filled(graph.op("Softmax", log_joint, axis=1))


@singledispatch
def _filling(family: Any, *_: Any) -> Filling:
    raise UnsupportedError(
        family,
        "expected values of missing cells in ONNX",
        "Fit the network with features='posterior'.",
    )


@_filling.register
def _(
    family: Product, parameters: ProductParameters, graph: Graph, table: TableInputs
) -> Filling:
    factors = zip(family.families, parameters.factors, strict=True)
    parts = [_filling(*factor, graph, table) for factor in factors]

    def filled(posterior: Value) -> Value:
        return graph.op("Concat", *(own.filled(posterior) for own in parts), axis=1)

    return Filling(total(graph, [own.densities for own in parts]), filled)


@_filling.register
def _(
    family: Categorical,
    parameters: CategoricalParameters,
    graph: Graph,
    table: TableInputs,
) -> Filling:
    probabilities = np.exp(parameters.log_probabilities)
    columns = np.split(probabilities, family.offsets[1:-1], axis=1)

    def filled(posterior: Value) -> Value:
        parts = []
        for indicators, column in zip(table.codes(graph), columns, strict=True):
            has_any = graph.op("ReduceMax", indicators, axes=[1], keepdims=1)
            means = graph.op("MatMul", posterior, column)
            is_missing = graph.op("Equal", has_any, 0.0)
            parts.append(graph.op("Where", is_missing, means, indicators))
        return graph.op("Concat", *parts, axis=1)

    return Filling(component_densities(family, parameters, graph, table), filled)


@_filling.register
def _(
    family: DiagonalGaussian,
    parameters: DiagonalParameters,
    graph: Graph,
    table: TableInputs,
) -> Filling:
    rows = table.real(graph)

    def filled(posterior: Value) -> Value:
        means = graph.op("MatMul", posterior, parameters.means)
        return graph.op("Where", rows.observed, rows.values, means)

    return Filling(component_densities(family, parameters, graph, table), filled)


@_filling.register
def _(
    _family: FullGaussian, parameters: FullParameters, graph: Graph, table: TableInputs
) -> Filling:
    rows = table.real(graph)
    own = _FullFills(parameters)
    densities, expected = _evaluated(graph, table, rows, own)

    def filled(posterior: Value) -> Value:
        means = _weighted(graph, posterior, expected)
        return graph.op("Where", rows.observed, rows.values, means)

    return Filling(densities, filled)


@_filling.register
def _(
    _family: SubspaceGaussian,
    parameters: SubspaceParameters,
    graph: Graph,
    table: TableInputs,
) -> Filling:
    rows = table.real(graph)
    own = _SubspaceFills(parameters)
    densities, expected = _evaluated(graph, table, rows, own)

    def filled(posterior: Value) -> Value:
        subspace = parameters.subspace
        scores = _weighted(graph, posterior, expected)
        along = graph.op("MatMul", scores, subspace.loading.T)
        means = graph.op("Add", along, subspace.centre)
        return graph.op("Where", rows.observed, rows.values, means)

    return Filling(densities, filled)


def _weighted(graph: Graph, posterior: Value, expected: Value) -> Value:
    """Return means (n, e) of what components expect, (n, J, e)."""
    means = graph.op("MatMul", graph.op("Unsqueeze", posterior, [1]), expected)
    return graph.op("Squeeze", means, [1])


def _evaluated(
    graph: Graph, table: TableInputs, rows: RealRows, sought: _Fills
) -> tuple[Value, Value]:
    """Return log densities (n, J) and what components expect (n, J, e).

    One elimination gives both. Rows without holes have zeros for the latter.
    """
    n_components = sought.n_components
    both = by_holes(graph, sought, rows)
    densities = graph.op("Slice", both, [0], [n_components], [1])
    expected = graph.op("Slice", both, [n_components], [sought.width], [1])
    expected = graph.op("Reshape", expected, [0, n_components, sought.n_expected])
    return in_units(graph, densities, rows, table.scale), expected


class _Fills(ABC):
    """Densities of rows, and what components expect of those with holes.

    Attributes
    ----------
    n_components, n_expected : int
        J, and how many numbers e each of them expects.
    densities : FullDensities or SubspaceDensities
        The densities.
    """

    def __init__(
        self, densities: FullDensities | SubspaceDensities, n_expected: int
    ) -> None:
        self.densities = densities
        self.n_components, self.n_expected = densities.width, n_expected
        self.width = self.n_components * (1 + n_expected)
        self.matrix_size = 2 * densities.matrix_size

    def complete(self, graph: Graph, rows: RealRows) -> Value:
        densities = self.densities.complete(graph, rows)
        n_rows = graph.op("Slice", graph.op("Shape", densities), [0], [1])
        shape = graph.op("Concat", n_rows, [self.width - self.n_components], axis=0)
        return graph.op("Concat", densities, graph.op("Expand", 0.0, shape), axis=1)

    @abstractmethod
    def holed(self, graph: Graph, rows: RealRows) -> Value:
        """Return both for any rows, next to each other."""

    def _joined(self, graph: Graph, densities: Value, expected: Value) -> Value:
        """Put densities (n, J) next to what components expect, (J, e, n)."""
        by_row = graph.op("Transpose", expected, perm=[2, 0, 1])
        flat = graph.op("Reshape", by_row, [0, self.width - self.n_components])
        return graph.op("Concat", densities, flat, axis=1)


class _FullFills(_Fills):
    r"""Rows expected by Gaussians with any covariance.

    .. math:: \mu_j + \Sigma_{j, \cdot o} \Sigma_{j, oo}^{-1} (x_o - \mu_{j, o})
    """

    def __init__(self, parameters: FullParameters) -> None:
        self._parameters, self._own = parameters, FullDensities(parameters)
        super().__init__(self._own, self._own.size)

    def holed(self, graph: Graph, rows: RealRows) -> Value:
        means, covariances = self._parameters.means, self._parameters.covariances
        matrix, error = self._own.system(graph, rows)
        observed = graph.op("Transpose", rows.observed, perm=[1, 0])
        cross = graph.op("Where", observed, covariances[..., None], 0.0)
        *found, rest = eliminated(
            graph,
            graph.op("Concat", matrix, cross, axis=1),
            graph.op("Concat", error, graph.op("Mul", error, 0.0), axis=1),
            self._own.size,
        )
        densities = self._own.log_densities(graph, rows, *found)
        return self._joined(graph, densities, graph.op("Sub", means[:, :, None], rest))


class _SubspaceFills(_Fills):
    """Latent variables expected by the components of a subspace: `LatentRegression`."""

    def __init__(self, parameters: SubspaceParameters) -> None:
        self._parameters, self._own = parameters, SubspaceDensities(parameters)
        super().__init__(self._own, self._own.size)

    def holed(self, graph: Graph, rows: RealRows) -> Value:
        means = self._parameters.latent.means
        matrix, error, others = self._own.system(graph, rows)
        zeros = graph.op("Mul", matrix, 0.0)
        identity = graph.op("Add", zeros, np.eye(self._own.size)[..., None])
        *found, rest = eliminated(
            graph,
            graph.op("Concat", matrix, identity, axis=1),
            graph.op("Concat", error, graph.op("Mul", error, 0.0), axis=1),
            self._own.size,
        )
        densities = self._own.log_densities(graph, others, *found)
        return self._joined(graph, densities, graph.op("Sub", means[:, :, None], rest))
