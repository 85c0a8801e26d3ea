"""The class scores of networks as nodes of a graph."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hybridmix.models.embedding import LINEAR, LOG_JOINT, POSTERIOR
from hybridmix.models.readout import Readout
from hybridmix.onnx.densities import component_densities
from hybridmix.onnx.fills import expected_cells
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.tables import TableInputs


def class_scores(graph: Graph, table: TableInputs, readout: Readout) -> Value:
    """Return the scores (n, C) that the output layer gives to classes."""
    features = graph.op("Concat", *_features(graph, table, readout), axis=1)
    output = readout.output
    return graph.op("Add", graph.op("MatMul", features, output.weights.T), output.bias)


def _features(graph: Graph, table: TableInputs, readout: Readout) -> list[Value]:
    """Return features of each kind, (n, f), as `Embedding.features` does."""
    density, embedding = readout.density, readout.embedding
    densities = component_densities(density.family, density.components, graph, table)
    log_joint = graph.op("Add", densities, density.log_weights)
    posterior = _posterior(graph, log_joint, readout)
    cells = ""
    if embedding.filler is not None:
        cells = expected_cells(graph, table, embedding.filler)
    parts = []
    for kind in embedding.kinds:
        if kind == POSTERIOR:
            parts.append(posterior)
        elif kind == LOG_JOINT:
            parts.append(_standardised(graph, table, log_joint, readout))
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


def _posterior(graph: Graph, log_joint: Value, readout: Readout) -> Value:
    """Return tempered posteriors (n, J), over all components or within classes."""
    tempered = graph.op("Div", log_joint, readout.embedding.temperature)
    if not readout.embedding.by_class:
        return graph.op("Softmax", tempered, axis=1)
    parts = [
        graph.op("Softmax", graph.op("Slice", tempered, [first], [last], [1]), axis=1)
        for first, last in pairwise(readout.density.offsets)
    ]
    return graph.op("Concat", *parts, axis=1)


def _standardised(
    graph: Graph, table: TableInputs, log_joint: Value, readout: Readout
) -> Value:
    """Return log joint densities (n, J) in the scale of the model, standardised."""
    if table.schema.real:
        presence = table.real(graph).presence(graph)
        log_volume = graph.op("MatMul", presence, np.log(table.scale)[:, None])
        log_joint = graph.op("Add", log_joint, log_volume)
    centred = graph.op("Sub", log_joint, readout.embedding.centre)
    return graph.op("Div", centred, readout.embedding.spread)
