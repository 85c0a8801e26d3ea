"""The outputs of networks as nodes of a graph."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.models import Mixture
from hybridmix.models.embedding import LINEAR, LOG_JOINT, POSTERIOR, Embedding
from hybridmix.onnx.densities import mixture_densities
from hybridmix.onnx.fills import expected_cells
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.tables import TableInputs


def layer_outputs(
    graph: Graph,
    table: TableInputs,
    density: Mixture,
    embedding: Embedding,
    weights: FloatArray,
    bias: FloatArray,
) -> Value:
    """Return what an output layer makes of rows: class scores or targets, (n, C)."""
    parts = _features(graph, table, density, embedding)
    features = graph.op("Concat", *parts, axis=1)
    return graph.op("Add", graph.op("MatMul", features, weights.T), bias)


def _features(
    graph: Graph, table: TableInputs, density: Mixture, embedding: Embedding
) -> list[Value]:
    """Return features of each kind, (n, f), as `Embedding.features` does."""
    # What fills cells finds densities on the way, often those that come next.
    cells = ""
    if embedding.filler is not None:
        cells = expected_cells(graph, table, embedding.filler)
    densities = mixture_densities(graph, table, density)
    log_joint = graph.op("Add", densities, density.log_weights)
    posterior = _posterior(graph, log_joint, density, embedding)
    parts = []
    for kind in embedding.kinds:
        if kind == POSTERIOR:
            parts.append(posterior)
        elif kind == LOG_JOINT:
            parts.append(_standardised(graph, table, log_joint, embedding))
        elif kind == LINEAR:
            parts.append(cells)
        else:
            products = graph.op(
                "Mul",
                graph.op("Unsqueeze", posterior, [2]),
                graph.op("Unsqueeze", cells, [1]),
            )
            parts.append(graph.op("Reshape", products, [0, embedding.sizes()[kind]]))
    return parts


def _posterior(
    graph: Graph, log_joint: Value, density: Mixture, embedding: Embedding
) -> Value:
    """Return tempered posteriors (n, J), over all components or within classes."""
    tempered = graph.op("Div", log_joint, embedding.temperature)
    if not embedding.by_class:
        return graph.op("Softmax", tempered, axis=1)
    parts = [
        graph.op("Softmax", graph.op("Slice", tempered, [first], [last], [1]), axis=1)
        for first, last in pairwise(density.offsets)
    ]
    return graph.op("Concat", *parts, axis=1)


def _standardised(
    graph: Graph, table: TableInputs, log_joint: Value, embedding: Embedding
) -> Value:
    """Return log joint densities (n, J) in the scale of the model, standardised."""
    if table.schema.real:
        presence = table.real(graph).presence(graph)
        log_volume = graph.op("MatMul", presence, np.log(table.scale)[:, None])
        log_joint = graph.op("Add", log_joint, log_volume)
    centred = graph.op("Sub", log_joint, embedding.centre)
    return graph.op("Div", centred, embedding.spread)
