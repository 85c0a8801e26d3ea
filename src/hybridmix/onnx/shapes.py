"""Shapes of columns as nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from hybridmix.data.shapes import ColumnShape, Logarithm, Logit, SinhArcsinh
from hybridmix.data.shaping import Shaping
from hybridmix.exceptions import UnsupportedError
from hybridmix.onnx.graph import Graph, Value

_FARTHEST = 1e50
# Hyperbolic functions of larger angles are too large for what is done with them.
_STEEPEST = 300.0


class Mapped(NamedTuple):
    """Mapped values (n, k) of columns, and logs of the derivatives of the maps."""

    values: Value
    log_derivatives: Value


@singledispatch
def mapped(transform: Any, *_: Any) -> Mapped:
    """Return what a transform makes of values (n, 1) of a graph."""
    raise UnsupportedError(transform, "an export to ONNX", "Use column_shapes='plain'.")


@mapped.register
def _(transform: SinhArcsinh, graph: Graph, values: Value) -> Mapped:
    u = graph.op("Div", graph.op("Sub", values, transform.centre), transform.scale)
    u = graph.op("Clip", u, -_FARTHEST, _FARTHEST)
    size = graph.op("Abs", u)
    # Runtimes have no hyperbolic functions of double precision.
    root = graph.op("Sqrt", graph.op("Add", graph.op("Mul", u, u), 1.0))
    arsinh = graph.op("Log", graph.op("Add", size, root))
    arsinh = graph.op("Mul", graph.op("Sign", u), arsinh)
    angle = graph.op("Sub", graph.op("Mul", arsinh, transform.tail), transform.skew)
    grown, shrunk = graph.op("Exp", angle), graph.op("Exp", graph.op("Neg", angle))
    sinh = graph.op("Mul", graph.op("Sub", grown, shrunk), 0.5)
    cosh = graph.op("Mul", graph.op("Add", grown, shrunk), 0.5)
    slope = graph.op("Sub", graph.op("Log", cosh), graph.op("Log", root))
    return Mapped(sinh, graph.op("Add", slope, np.log(transform.tail / transform.scale)))


@mapped.register
def _(transform: Logarithm, graph: Graph, values: Value) -> Mapped:
    least = transform.least
    log = graph.op("Log", graph.op("Max", values, least))
    below = graph.op("Div", graph.op("Sub", values, least), least)
    below = graph.op("Clip", below, -_FARTHEST, 0.0)
    return Mapped(graph.op("Add", log, below), graph.op("Neg", log))


@mapped.register
def _(transform: Logit, graph: Graph, values: Value) -> Mapped:
    margin, width = transform.margin, transform.high - transform.low
    u = graph.op("Div", graph.op("Sub", values, transform.low), width)
    inner = graph.op("Clip", u, margin, 1.0 - margin)
    beyond = graph.op("Div", graph.op("Sub", u, inner), margin * (1.0 - margin))
    beyond = graph.op("Clip", beyond, -_FARTHEST, _FARTHEST)
    low, high = graph.op("Log", inner), graph.op("Log", graph.op("Sub", 1.0, inner))
    logit = graph.op("Add", graph.op("Sub", low, high), beyond)
    slope = graph.op("Neg", graph.op("Add", low, high))
    return Mapped(logit, graph.op("Sub", slope, np.log(width)))


@singledispatch
def inverted(transform: Any, *_: Any) -> Value:
    """Return what a transform maps to these values of a graph, of any shape."""
    raise UnsupportedError(transform, "an export to ONNX", "Use target_shapes='plain'.")


@inverted.register
def _(transform: SinhArcsinh, graph: Graph, values: Value) -> Value:
    root = graph.op("Sqrt", graph.op("Add", graph.op("Mul", values, values), 1.0))
    arsinh = graph.op("Log", graph.op("Add", graph.op("Abs", values), root))
    arsinh = graph.op("Mul", graph.op("Sign", values), arsinh)
    angle = graph.op("Div", graph.op("Add", arsinh, transform.skew), transform.tail)
    angle = graph.op("Clip", angle, -_STEEPEST, _STEEPEST)
    grown, shrunk = graph.op("Exp", angle), graph.op("Exp", graph.op("Neg", angle))
    twice = graph.op("Sub", grown, shrunk)
    scaled = graph.op("Mul", twice, 0.5 * transform.scale)
    return graph.op("Add", scaled, transform.centre)


@inverted.register
def _(transform: Logarithm, graph: Graph, values: Value) -> Value:
    start = np.log(transform.least)
    below = graph.op("Min", graph.op("Sub", values, start), 0.0)
    above = graph.op("Exp", graph.op("Max", values, start))
    return graph.op("Add", above, graph.op("Mul", below, transform.least))


@inverted.register
def _(transform: Logit, graph: Graph, values: Value) -> Value:
    margin, width = transform.margin, transform.high - transform.low
    end = np.log1p(-margin) - np.log(margin)
    inner = graph.op("Clip", values, -end, end)
    beyond = graph.op("Sub", values, inner)
    beyond = graph.op("Mul", beyond, margin * (1.0 - margin))
    odds = graph.op("Exp", graph.op("Neg", inner))
    share = graph.op("Div", 1.0, graph.op("Add", odds, 1.0))
    share = graph.op("Add", share, beyond)
    return graph.op("Add", graph.op("Mul", share, width), transform.low)


def shaped(graph: Graph, raw: Value, shaping: Shaping, n_columns: int) -> Value:
    """Return columns (n, d) with those mapped that have a transform."""
    columns = [
        _column(graph, raw, k)
        if k not in shaping.shapes or shaping.shapes[k].transform is None
        else mapped(shaping.shapes[k].transform, graph, _column(graph, raw, k)).values
        for k in range(n_columns)
    ]
    return graph.op("Concat", *columns, axis=1)


def log_volume(graph: Graph, raw: Value, shaping: Shaping) -> Value | None:
    """Return by how much the maps shrink log densities, (n, 1); None for no maps."""
    total: Value | None = None
    for place, shape in shaping.shapes.items():
        if shape.transform is None:
            continue
        values = _column(graph, raw, place)
        slope = mapped(shape.transform, graph, values).log_derivatives
        is_missing = graph.op("IsNaN", values)
        if shape.spikes:
            is_missing = graph.op("Or", is_missing, _any_spike(graph, values, shape))
        own = graph.op("Where", is_missing, 0.0, graph.op("Neg", slope))
        total = own if total is None else graph.op("Add", total, own)
    return total


def hidden(graph: Graph, raw: Value, shaping: Shaping, n_columns: int) -> Value:
    """Return which cells (n, d) have no value of their own: holes and spikes."""
    columns = []
    for k in range(n_columns):
        values = _column(graph, raw, k)
        is_missing = graph.op("IsNaN", values)
        if k in shaping.spiked:
            spike = _any_spike(graph, values, shaping.spiked[k])
            is_missing = graph.op("Or", is_missing, spike)
        columns.append(is_missing)
    return graph.op("Concat", *columns, axis=1)


def spike_indicators(graph: Graph, raw: Value, shaping: Shaping) -> list[Value]:
    """Return which code each cell has, (n, 1 + s) of 0 and 1 for each spiked column."""
    indicators = []
    for place, shape in shaping.spiked.items():
        values = _column(graph, raw, place)
        spikes = [_equal(graph, values, spike) for spike in shape.spikes]
        others = graph.op("Or", graph.op("IsNaN", values), _any(graph, spikes))
        parts = [graph.op("Not", others), *spikes]
        numbers = [graph.cast(part, np.float64) for part in parts]
        indicators.append(graph.op("Concat", *numbers, axis=1))
    return indicators


def _column(graph: Graph, raw: Value, place: int) -> Value:
    return graph.op("Gather", raw, [place], axis=1)


def _any_spike(graph: Graph, values: Value, shape: ColumnShape) -> Value:
    return _any(graph, [_equal(graph, values, spike) for spike in shape.spikes])


def _equal(graph: Graph, values: Value, spike: float) -> Value:
    exact = graph.op("Equal", values, spike)
    return graph.op("Or", exact, graph.op("Equal", values, float(np.float32(spike))))


def _any(graph: Graph, masks: Sequence[Value]) -> Value:
    result = masks[0]
    for mask in masks[1:]:
        result = graph.op("Or", result, mask)
    return result
