"""Means, deviations and quantiles of real targets as outputs of a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.shapes import LARGEST, ColumnShape, gaussian_quadrature
from hybridmix.data.targets import TargetPlaces
from hybridmix.models import Mixture
from hybridmix.models.conditional import FLATTEST
from hybridmix.models.embedding import Embedding
from hybridmix.models.predictive import Predictive
from hybridmix.onnx.densities import component_densities, densities_in_units
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.networks import layer_outputs
from hybridmix.onnx.quantiles import Pool, quantiles
from hybridmix.onnx.shapes import inverted
from hybridmix.onnx.tables import TableInputs

# Names of outputs.
MEAN, DEVIATION, QUANTILES, LOG_DENSITY = "mean", "deviation", "quantiles", "log_density"


class Targets(NamedTuple):
    """What a fitted regressor knows: rows, and mixtures of rows and targets.

    The graph has quantiles of the targets if there are levels, (q,).
    """

    schema: Schema
    mixture: Mixture
    target_schema: Schema
    predictive: Predictive
    levels: FloatArray

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return MEAN, DEVIATION, *quantile_names(self.levels), LOG_DENSITY

    def write(self, graph: Graph, table: TableInputs) -> None:
        """Add what the graph computes, and declare its outputs."""
        reach = _reach(graph, table)
        n_targets = self.target_schema.n_columns
        parts = [self._target(graph, table, reach, k) for k in range(n_targets)]
        for name, values in zip(self.outputs, zip(*parts, strict=True), strict=False):
            declare_targets(graph, table, name, graph.op("Concat", *values, axis=1))
        declare_density(graph, table, self.mixture)

    def _target(
        self, graph: Graph, table: TableInputs, reach: Value, k: int
    ) -> tuple[Value, ...]:
        """Return the mean and the deviation (n, 1) of a target, in its units.

        After them come its quantiles (n, 1, q), if there are levels.
        """
        targets, places = self.target_schema, self._places
        shape = targets.shaping.shapes.get(k, ColumnShape())
        scale = targets.scale[k]
        parts = [
            _given_rows(graph, table, reach, self._with_target(member, places.real[k]))
            for member in self.predictive.members
        ]
        weights, means, deviations = (
            graph.op("Concat", *own, axis=1) for own in zip(*parts, strict=True)
        )
        sizes = [member.n_components for member in self.predictive.members]
        weights = graph.op("Mul", weights, np.repeat(self.predictive.shares, sizes))
        means = graph.op("Add", graph.op("Mul", means, scale), targets.centre[k])
        deviations = graph.op("Mul", deviations, self.predictive.spread * scale)
        masses, code = None, places.codes[k]
        if code is not None:
            # Within a component, whether the target is a spike does not depend on the
            # row.
            shares = np.concatenate(
                [_code_probabilities(member, code) for member in self.predictive.members]
            )
            masses = graph.op("MatMul", weights, shares[:, 1:])
            weights = graph.op("Mul", weights, shares[:, 0])
        found: list[Value] = []
        if self.levels.size:
            own = Pool(weights, means, deviations, masses)
            found = [
                graph.op("Unsqueeze", quantiles(graph, own, shape, self.levels), [1])
            ]
        if shape.transform is not None:
            means, deviations = _unmapped(graph, shape, means, deviations)
        return *_pooled(graph, weights, means, deviations, shape, masses), *found

    @property
    def _places(self) -> TargetPlaces:
        return TargetPlaces.of(self.schema, self.target_schema)

    def _with_target(self, member: Mixture, place: int) -> Mixture:
        """Return the marginal of rows and one target, without its spikes."""
        real, codes = range(len(self.schema.real)), range(len(self.schema.code_sizes))
        return member.marginal([*real, place], list(codes))


class LayerTargets(NamedTuple):
    """What a fitted network regressor knows: a mixture of rows, and an output layer.

    The deviations of the errors are None for a layer that has none.
    """

    schema: Schema
    mixture: Mixture
    embedding: Embedding
    weights: FloatArray
    bias: FloatArray
    deviations: FloatArray | None
    levels: FloatArray

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        deviation = () if self.deviations is None else (DEVIATION,)
        return MEAN, *deviation, *quantile_names(self.levels), LOG_DENSITY

    def write(self, graph: Graph, table: TableInputs) -> None:
        """Add what the graph computes, and declare its outputs."""
        means = layer_outputs(
            graph, table, self.mixture, self.embedding, self.weights, self.bias
        )
        declare_targets(graph, table, MEAN, means)
        if self.deviations is not None:
            shape = graph.op("Shape", means)
            constant = graph.op("Expand", self.deviations[None], shape)
            declare_targets(graph, table, DEVIATION, constant)
            for name in quantile_names(self.levels):
                steps = self.deviations[:, None] * ndtri(self.levels)
                values = graph.op("Add", graph.op("Unsqueeze", means, [2]), steps)
                declare_targets(graph, table, name, values)
        declare_density(graph, table, self.mixture)


def quantile_names(levels: FloatArray) -> tuple[str, ...]:
    """Return the names of outputs for quantiles: one, if there are levels."""
    return (QUANTILES,) if levels.size else ()


def declare_targets(graph: Graph, table: TableInputs, name: str, values: Value) -> None:
    """Declare what is known of targets, (n, t) or (n, t, q), as an output."""
    shape = ["n", "targets", "levels"][: 3 if name == QUANTILES else 2]
    graph.output(graph.cast(values, table.number), table.number, name, shape)


def declare_density(graph: Graph, table: TableInputs, mixture: Mixture) -> None:
    """Declare the log density of rows, without their targets, as an output."""
    densities = densities_in_units(graph, table, mixture)
    log_joint = graph.op("Add", densities, mixture.log_weights)
    log_density = graph.op("ReduceLogSumExp", log_joint, axes=[1], keepdims=0)
    number = table.number
    graph.output(graph.cast(log_density, number), number, LOG_DENSITY, ["n"])


def _code_probabilities(member: Mixture, code: int) -> FloatArray:
    """Return the probabilities (J, 1 + s) of the codes of a target in each component."""
    components: Any = member.marginal([], [code]).components
    return np.exp(components.log_probabilities)


def _reach(graph: Graph, table: TableInputs) -> Value:
    """Return how far a row is from the centre, (n, 1), but at least one."""
    if table.schema.real:
        farthest = graph.op("Abs", table.real(graph).values)
    else:
        farthest = table.codes(graph)[0]
    farthest = graph.op("ReduceMax", farthest, axes=[1], keepdims=1)
    return graph.op("Max", farthest, 1.0)


def _given_rows(
    graph: Graph, table: TableInputs, reach: Value, mixture: Mixture
) -> tuple[Value, Value, Value]:
    r"""Return probabilities, and means and deviations of a target, by component, (n, J).

    As in `conditional`, three evaluations determine what is quadratic in the target, here
    at :math:`-h`, 0 and :math:`h`. With :math:`h` as far from the centre as the row is,
    their differences keep their digits, however far that is.
    """
    values = [graph.op("Mul", reach, side) for side in (-1.0, 0.0, 1.0)]
    paired = table.paired(graph, values)
    densities = component_densities(mixture.family, mixture.components, graph, paired)
    below, middle, above = graph.ops("Split", 3, densities, axis=0)
    twice = graph.op("Mul", middle, 2.0)
    bend = graph.op("Sub", graph.op("Sub", twice, below), above)
    curvature = graph.op("Div", bend, graph.op("Mul", reach, reach))
    curvature = graph.op("Max", curvature, FLATTEST)
    rise = graph.op("Mul", graph.op("Sub", above, below), 0.5)
    means = graph.op("Div", graph.op("Div", rise, reach), curvature)
    # The integral over the target, up to a constant.
    squares = graph.op("Mul", graph.op("Mul", means, means), curvature)
    gain = graph.op("Sub", squares, graph.op("Log", curvature))
    logs = graph.op("Add", middle, graph.op("Mul", gain, 0.5))
    weights = graph.op("Softmax", graph.op("Add", logs, mixture.log_weights), axis=1)
    deviations = graph.op("Div", 1.0, graph.op("Sqrt", curvature))
    return weights, means, deviations


def _unmapped(
    graph: Graph, shape: ColumnShape, means: Value, deviations: Value
) -> tuple[Value, Value]:
    """Return what `ColumnShape.moments` does, with means held among known values."""
    nodes, weights = gaussian_quadrature()

    def inverse(mapped: Value) -> Value:
        values = inverted(shape.transform, graph, mapped)
        return graph.op("Clip", values, -LARGEST, LARGEST)

    centre = inverse(graph.op("Unsqueeze", means, [2]))
    steps = graph.op("Mul", graph.op("Unsqueeze", deviations, [2]), nodes)
    mapped = graph.op("Add", graph.op("Unsqueeze", means, [2]), steps)
    # Differences to the centre keep their digits.
    steps = graph.op("Sub", inverse(mapped), centre)
    first, second = (
        graph.op("MatMul", part, weights[:, None])
        for part in (steps, graph.op("Mul", steps, steps))
    )
    variances = graph.op("Sub", second, graph.op("Mul", first, first))
    deviations = graph.op("Sqrt", graph.op("Max", variances, 0.0))
    means = graph.op("Clip", graph.op("Add", centre, first), shape.least, shape.most)
    return graph.op("Squeeze", means, [2]), graph.op("Squeeze", deviations, [2])


def _pooled(
    graph: Graph,
    weights: Value,
    means: Value,
    deviations: Value,
    shape: ColumnShape,
    masses: Value | None = None,
) -> tuple[Value, Value]:
    """Return mean and deviation (n, 1) of all components, and of spikes (n, s)."""
    mean = _weighted(graph, weights, means)
    spikes = np.array(shape.spikes, dtype=np.float64)
    if masses is not None:
        mean = graph.op("Add", mean, graph.op("MatMul", masses, spikes[:, None]))
    offset = graph.op("Sub", means, mean)
    squares = [graph.op("Mul", part, part) for part in (deviations, offset)]
    variance = _weighted(graph, weights, graph.op("Add", *squares))
    if masses is not None:
        offset = graph.op("Sub", spikes, mean)
        own = _weighted(graph, masses, graph.op("Mul", offset, offset))
        variance = graph.op("Add", variance, own)
    low, high = min((shape.low, *shape.spikes)), max((shape.high, *shape.spikes))
    return graph.op("Clip", mean, low, high), graph.op("Sqrt", variance)


def _weighted(graph: Graph, weights: Value, values: Value) -> Value:
    """Return weighted sums over components, (n, 1)."""
    return graph.op("ReduceSum", graph.op("Mul", weights, values), [1], keepdims=1)
