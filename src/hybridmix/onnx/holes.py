"""Rows with holes, whose columns are correlated."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.tables import RealRows

# The matrices of a block of rows with holes have about this many numbers: they stay in
# the cache of a processor, and memory does not grow with the rows.
_BLOCK = 1 << 18
_TO_THE_END = np.iinfo(np.int64).max


class ByHoles(Protocol):
    """What needs matrices for every row with holes.

    Attributes
    ----------
    width : int
        Numbers w that each row gets.
    matrix_size : int
        Numbers of the matrices of a row.
    """

    width: int
    matrix_size: int

    def complete(self, graph: Graph, rows: RealRows) -> Value:
        """Return the numbers (n, w) of complete rows."""
        ...

    def holed(self, graph: Graph, rows: RealRows) -> Value:
        """Return the numbers (n, w) of any rows."""
        ...


def by_holes(graph: Graph, sought: ByHoles, rows: RealRows) -> Value:
    """Treat rows with holes apart, so that complete rows do not pay for them."""
    complete = sought.complete(graph, rows)
    everywhere = graph.op("ReduceMin", rows.presence(graph), axes=[1], keepdims=0)
    holed = graph.op("NonZero", graph.op("Equal", everywhere, 0.0))
    index = graph.op("Squeeze", holed, [0])

    branch = Graph(graph)
    replaced = branch.op(
        "ScatterND",
        complete,
        branch.op("Unsqueeze", index, [1]),
        _by_blocks(branch, sought, rows, index),
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


def _by_blocks(graph: Graph, sought: ByHoles, rows: RealRows, index: Value) -> Value:
    """Evaluate the rows of these numbers, (k, w), block by block to bound the memory."""
    largest = max(1, _BLOCK // sought.matrix_size)
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
    body.output(sought.holed(body, own), np.float64, shape=["block", sought.width])
    stacked = graph.op("Scan", blocks, body=body.proto("block"), num_scan_inputs=1)
    flat = graph.op("Reshape", stacked, [-1, sought.width])
    return graph.op("Slice", flat, [0], graph.op("Unsqueeze", n_rows, [0]), [0])


def _quotient_up(graph: Graph, number: Value, divisor: Value | int) -> Value:
    """Return a quotient of positive whole numbers, rounded up."""
    less_one = graph.op("Div", graph.op("Sub", number, 1), divisor)
    return graph.op("Add", less_one, 1)


def eliminated(
    graph: Graph, matrix: Value, border: Value, size: int
) -> tuple[Value, Value, Value]:
    r"""Eliminate the columns of positive definite matrices, one after the other.

    Rows are the last axis here, so that a step is one operation over all of them.

    Parameters
    ----------
    graph : Graph
        Where to.
    matrix : Value of shape (G, size + e, size, n)
        :math:`M` above :math:`C`; G is J, or 1 when all components share one.
    border : Value of shape (J, size + e, n)
        :math:`r` above zeros.
    size : int
        Number of columns.

    Returns
    -------
    log_determinant : Value of shape (n, G)
        :math:`\log|M|`.
    quadratic : Value of shape (n, J)
        :math:`r^\top M^{-1} r`.
    rest : Value of shape (J, e, n)
        :math:`-C M^{-1} r`.
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
    _, rest, *steps = graph.ops(
        "Loop", 4, size, True, matrix, border, body=body.proto("elimination")
    )
    log_determinant, quadratic = (
        graph.op("Transpose", graph.op("ReduceSum", step, [0], keepdims=0), perm=[1, 0])
        for step in steps
    )
    return log_determinant, quadratic, rest
