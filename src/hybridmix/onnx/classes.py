"""Classes of rows as outputs of a graph."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.models import Mixture
from hybridmix.models.calibration import Calibration
from hybridmix.models.committee import Committee
from hybridmix.models.readout import MarginalReadout, Readout
from hybridmix.onnx.densities import densities_in_units, mixture_densities
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.networks import layer_outputs
from hybridmix.onnx.tables import TableInputs


class Classes(NamedTuple):
    """What a fitted classifier knows, and what it says about rows."""

    schema: Schema
    mixture: Mixture
    offsets: tuple[int, ...]
    classes: np.ndarray
    calibration: Calibration
    voter: Committee | Readout | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return "label", "probabilities", "log_density"

    def write(self, graph: Graph, table: TableInputs) -> None:
        """Add what the graph computes, and declare its outputs."""
        # Before the density: networks find densities when they fill cells.
        votes = None if self.voter is None else _scores(graph, table, self.voter)
        densities = densities_in_units(graph, table, self.mixture)
        log_joint = _log_joint(graph, densities, self.mixture.log_weights, self.offsets)
        scores = log_joint if votes is None else votes
        best = graph.op("ArgMax", scores, axis=1, keepdims=0)
        labels = _plain(self.classes)
        label = graph.op("Gather", graph.constant(labels), best)
        n_classes = len(self.classes)
        probabilities = _probabilities(graph, scores, n_classes, self.calibration)
        log_density = graph.op("ReduceLogSumExp", log_joint, axes=[1], keepdims=0)
        names, number = self.outputs, table.number
        graph.output(label, labels.dtype, names[0], ["n"])
        graph.output(
            graph.cast(probabilities, number), number, names[1], ["n", n_classes]
        )
        graph.output(graph.cast(log_density, number), number, names[2], ["n"])


def _log_joint(
    graph: Graph, densities: Value, log_weights: FloatArray, offsets: tuple[int, ...]
) -> Value:
    """Return joint log densities (n, C), given those of components (n, J)."""
    most = int(np.diff(offsets).max())
    # Classes of fewer components than others are filled up by some of no weight.
    index = np.zeros((len(offsets) - 1, most), dtype=np.int64)
    weights = np.full(index.shape, -np.inf)
    for label, (first, last) in enumerate(pairwise(offsets)):
        index[label, : last - first] = np.arange(first, last)
        weights[label, : last - first] = log_weights[first:last]
    terms = graph.op("Add", graph.op("Gather", densities, index, axis=1), weights)
    return graph.op("ReduceLogSumExp", terms, axes=[2], keepdims=0)


def _scores(
    graph: Graph, table: TableInputs, voter: Committee | Mixture | Readout
) -> Value:
    """Return what says which class is more probable, (n, C)."""
    if isinstance(voter, Committee):
        return _votes(graph, table, voter)
    if isinstance(voter, Readout):
        layer = voter.output
        return layer_outputs(
            graph, table, voter.density, voter.embedding, layer.weights, layer.bias
        )
    densities = mixture_densities(graph, table, voter)
    return _log_joint(graph, densities, voter.log_weights, voter.offsets)


def _votes(graph: Graph, table: TableInputs, committee: Committee) -> Value:
    """Return the logs of the class probabilities of a committee, (n, C)."""
    total: Value | None = None
    for member, share, calibration in committee.voters():
        assert not isinstance(member, MarginalReadout), "fitted members are whole"
        scores = _scores(graph, table, member)
        vote = _probabilities(graph, scores, committee.n_classes, calibration)
        vote = graph.op("Mul", vote, share)
        total = vote if total is None else graph.op("Add", total, vote)
    return graph.op("Log", total)


def _plain(classes: np.ndarray) -> np.ndarray:
    """Return labels in a type of ONNX: strings (as objects), booleans or numbers."""
    kinds: dict[str, type] = {"i": np.int64, "u": np.int64, "b": np.bool_, "f": float}
    return classes.astype(kinds.get(classes.dtype.kind, object))


def _probabilities(
    graph: Graph, log_joint: Value, n_classes: int, calibration: Calibration
) -> Value:
    """Return what `Calibration.probabilities` does, (n, C)."""
    tempered = graph.op("Div", log_joint, calibration.temperature)
    posterior = graph.op("Softmax", tempered, axis=1)
    share = calibration.uniform_share
    return graph.op("Add", graph.op("Mul", posterior, 1.0 - share), share / n_classes)
