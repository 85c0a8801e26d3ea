"""Quantiles of mixtures of Gaussians and atoms as nodes of a graph."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from hybridmix._typing import FloatArray
from hybridmix.data.shapes import ColumnShape
from hybridmix.models.predictive import TAIL
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.shapes import inverted

# Bisection ends at 2 to the minus this of the width that the components span.
_N_HALVINGS = 50
# Where the argument of the polynomial is zero, and its degree.
_MIDDLE, _DEGREE = 3.75, 18
# Quantiles nearer to a spike than this, in what a bisection starts with, are the spike.
_SAME = 1e-9


class Pool(NamedTuple):
    """The distributions of a target, mapped by its transform.

    Attributes
    ----------
    weights, means, deviations : Value
        Of the Gaussians, (n, J).
    masses : Value or None
        Of the spikes, (n, s).
    """

    weights: Value
    means: Value
    deviations: Value
    masses: Value | None


def quantiles(graph: Graph, pool: Pool, shape: ColumnShape, levels: FloatArray) -> Value:
    """Return quantiles (n, q) in the units of a target, as the model finds them.

    A bisection for all levels at once: `hybridmix.models.predictive.Forecast.quantiles`.
    """
    spikes = np.array(shape.spikes, dtype=np.float64)
    atoms = shape.forward(spikes)
    reach = graph.op("Mul", pool.deviations, TAIL)
    low, high = graph.op("Sub", pool.means, reach), graph.op("Add", pool.means, reach)
    low = graph.op("ReduceMin", low, axes=[1], keepdims=1)
    high = graph.op("ReduceMax", high, axes=[1], keepdims=1)
    low = graph.op("Min", low, np.min(atoms, initial=np.inf))
    high = graph.op("Max", high, np.max(atoms, initial=-np.inf))
    width = graph.op("Sub", high, low)
    starts = [graph.op("Add", end, np.zeros_like(levels)) for end in (low, high)]

    body = Graph(graph)
    body.input(np.int64, shape=[])  # the number of the step
    going = body.input(np.bool_, shape=[])
    lower, upper = body.input(np.float64), body.input(np.float64)
    middle = body.op("Mul", body.op("Add", lower, upper), 0.5)
    is_below = body.op("Less", _shares_below(body, pool, atoms, middle), levels)
    body.output(going, np.bool_, shape=[])
    body.output(body.op("Where", is_below, middle, lower), np.float64)
    body.output(body.op("Where", is_below, upper, middle), np.float64)
    _, found = graph.ops(
        "Loop", 2, _N_HALVINGS, True, *starts, body=body.proto("bisection")
    )
    values = found
    if shape.transform is not None:
        values = inverted(shape.transform, graph, found)
    values = graph.op("Clip", values, shape.low, shape.high)
    for spike, atom in zip(spikes, atoms, strict=True):
        distance = graph.op("Abs", graph.op("Sub", found, atom))
        is_spike = graph.op("Less", distance, graph.op("Mul", width, _SAME))
        values = graph.op("Where", is_spike, spike, values)
    return values


def _shares_below(graph: Graph, pool: Pool, atoms: FloatArray, values: Value) -> Value:
    """Return the probabilities (n, q) of no more than the values (n, q)."""
    weights, means, deviations = (
        graph.op("Unsqueeze", part, [1])
        for part in (pool.weights, pool.means, pool.deviations)
    )
    values = graph.op("Unsqueeze", values, [2])
    scores = graph.op("Div", graph.op("Sub", values, means), deviations)
    terms = graph.op("Mul", weights, normal_shares(graph, scores))
    total = graph.op("ReduceSum", terms, [2], keepdims=0)
    if pool.masses is None:
        return total
    is_reached = graph.cast(graph.op("GreaterOrEqual", values, atoms), np.float64)
    spikes = graph.op("Mul", graph.op("Unsqueeze", pool.masses, [1]), is_reached)
    return graph.op("Add", total, graph.op("ReduceSum", spikes, [2], keepdims=0))


def normal_shares(graph: Graph, scores: Value) -> Value:
    r"""Return the standard normal distribution function of a value of any shape.

    Runtimes have the error function in single precision only. With
    :math:`x = |z| / \sqrt 2`, the function
    :math:`(1 + 2 x) e^{x^2} \operatorname{erfc} x` is nearly a polynomial in
    :math:`(x - c) / (x + c)` (Shepherd and Laframboise, 1981).
    """
    x = graph.op("Mul", graph.op("Abs", scores), np.sqrt(0.5))
    place = graph.op("Div", graph.op("Sub", x, _MIDDLE), graph.op("Add", x, _MIDDLE))
    first, *others = coefficients()[::-1]
    value = graph.op("Add", graph.op("Mul", place, first), others[0])
    for coefficient in others[1:]:
        value = graph.op("Add", graph.op("Mul", value, place), coefficient)
    value = graph.op("Div", value, graph.op("Add", graph.op("Mul", x, 2.0), 1.0))
    decay = graph.op("Exp", graph.op("Neg", graph.op("Mul", x, x)))
    tail = graph.op("Mul", graph.op("Mul", decay, value), 0.5)
    is_negative = graph.op("Less", scores, 0.0)
    return graph.op("Where", is_negative, tail, graph.op("Sub", 1.0, tail))


@cache
def coefficients() -> FloatArray:
    """Return the coefficients of the polynomial of `normal_shares`, lowest first."""
    places = chebyshev.chebpts1(_DEGREE + 1)
    x = _MIDDLE * (1.0 + places) / (1.0 - places)
    fitted = chebyshev.chebfit(places, (1.0 + 2.0 * x) * erfcx(x), _DEGREE)
    return np.asarray(chebyshev.cheb2poly(fitted), dtype=np.float64)
