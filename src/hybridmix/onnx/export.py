"""Export of fitted models to ONNX."""

from __future__ import annotations

import json
from functools import singledispatch
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.estimators.components import committee_of
from hybridmix.estimators.density import MixtureDensity
from hybridmix.estimators.fitted_network import FittedNetwork
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.search import HybridMixtureClassifierCV
from hybridmix.models import Mixture
from hybridmix.models.calibration import Calibration
from hybridmix.models.committee import Committee
from hybridmix.onnx.densities import component_densities
from hybridmix.onnx.graph import Graph, Value, import_onnx
from hybridmix.onnx.tables import OUTPUTS, TableInputs, column_name

if TYPE_CHECKING:
    import onnx

DTYPES = ("float32", "float64")
# Runtimes of 2022 read these versions, and nothing later is needed.
_OPSET, _ML_OPSET, _IR_VERSION = 17, 3, 8


def to_onnx(model: Any, *, dtype: str = "float32") -> onnx.ModelProto:
    """Write a fitted model as an ONNX graph.

    The graph marginalises missing values exactly, as the model does. It reads and returns
    numbers of the given type, and computes in double precision.

    A table of numbers is one input ``X`` of shape (n, d); NaN is a missing value. If
    categories are strings, every column is an input of its own, of shape (n, 1), with the
    name of the column (``x0``, ``x1``, ... for arrays). A string that training did not
    see is a missing value.

    The outputs are ``label`` (n,), ``probabilities`` (n, C) and ``log_density`` (n,):
    what ``predict``, ``predict_proba`` and ``score_samples`` return.

    Parameters
    ----------
    model : HybridMixtureClassifier, HybridMixtureClassifierCV or MixtureDensity
        A fitted estimator.
    dtype : {"float32", "float64"}, default="float32"
        Type of the numbers that go in and come out.

    Returns
    -------
    proto : onnx.ModelProto
        Equal models make equal graphs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import MixtureDensity
    >>> from hybridmix.onnx import to_onnx
    >>> proto = to_onnx(MixtureDensity(2, random_state=0).fit(load_iris().data))
    >>> [output.name for output in proto.graph.output]
    ['label', 'probabilities', 'log_density']
    """
    import_onnx()
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is not one of {', '.join(DTYPES)}.")
    outcome = _outcome_of(model)
    mixture, schema = outcome.mixture, outcome.schema
    graph = Graph()
    table = TableInputs.declare(graph, schema, np.dtype(dtype))
    densities = component_densities(mixture.family, mixture.components, graph, table)
    volume = table.log_volume(graph)
    if volume is not None:
        densities = graph.op("Sub", densities, volume)
    log_joint = _log_joint(graph, densities, mixture.log_weights, outcome.offsets)
    scores = log_joint
    if outcome.committee is not None:
        scores = _votes(graph, table, outcome.committee)
    _declare_outputs(graph, log_joint, scores, outcome, np.dtype(dtype))
    return _proto(graph, type(model).__name__, schema)


class _Outcome(NamedTuple):
    """What a fitted model knows, and what it says about rows."""

    schema: Schema
    mixture: Mixture
    offsets: tuple[int, ...]
    classes: np.ndarray
    calibration: Calibration
    committee: Committee | None = None


@singledispatch
def _outcome_of(model: Any) -> _Outcome:
    raise TypeError(
        f"{type(model).__name__} cannot be exported to ONNX; "
        "HybridMixtureClassifier, HybridMixtureClassifierCV and MixtureDensity can."
    )


@_outcome_of.register
def _(model: MixtureClassifier) -> _Outcome:
    check_is_fitted(model, "model_")
    calibration = Calibration(model.temperature_, model.uniform_share_)
    mixture = model.model_
    return _Outcome(
        model.schema_,
        mixture,
        mixture.offsets,
        model.classes_,
        calibration,
        committee_of(model),
    )


@_outcome_of.register
def _(model: FittedNetwork) -> _Outcome:
    raise TypeError(
        f"{type(model).__name__} cannot be exported to ONNX: its features need the "
        "expected values of missing cells. HybridMixtureClassifier can be exported."
    )


@_outcome_of.register
def _(model: HybridMixtureClassifierCV) -> _Outcome:
    check_is_fitted(model, "best_estimator_")
    return _outcome_of(model.best_estimator_)


@_outcome_of.register
def _(model: MixtureDensity) -> _Outcome:
    check_is_fitted(model, "model_")
    mixture = model.model_
    # The components of a density are its classes.
    classes = np.arange(mixture.n_components)
    offsets = (*classes.tolist(), len(classes))
    return _Outcome(model.schema_, mixture, offsets, classes, Calibration())


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


def _votes(graph: Graph, table: TableInputs, committee: Committee) -> Value:
    """Return the logs of the class probabilities of a committee, (n, C)."""
    total: Value | None = None
    for member, share, calibration in committee.voters():
        assert isinstance(member, Mixture), "networks are refused before"
        densities = component_densities(member.family, member.components, graph, table)
        joint = _log_joint(graph, densities, member.log_weights, member.offsets)
        vote = _probabilities(graph, joint, committee.n_classes, calibration)
        vote = graph.op("Mul", vote, share)
        total = vote if total is None else graph.op("Add", total, vote)
    return graph.op("Log", total)


def _declare_outputs(
    graph: Graph,
    log_joint: Value,
    scores: Value,
    outcome: _Outcome,
    number: np.dtype[Any],
) -> None:
    """Declare what the graph returns: classes by their scores (n, C), and densities."""
    n_classes = len(outcome.classes)
    best = graph.op("ArgMax", scores, axis=1, keepdims=0)
    labels = _plain(outcome.classes)
    label = graph.op("Gather", graph.constant(labels), best)
    probabilities = _probabilities(graph, scores, n_classes, outcome.calibration)
    log_density = graph.op("ReduceLogSumExp", log_joint, axes=[1], keepdims=0)
    label_name, probabilities_name, log_density_name = OUTPUTS
    graph.output(label, labels.dtype, label_name, ["n"])
    graph.output(
        graph.cast(probabilities, number), number, probabilities_name, ["n", n_classes]
    )
    graph.output(graph.cast(log_density, number), number, log_density_name, ["n"])


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


def _proto(graph: Graph, name: str, schema: Schema) -> onnx.ModelProto:
    """Wrap a graph, and say where it comes from."""
    from hybridmix import __version__

    onnx = import_onnx()
    proto = onnx.helper.make_model(
        graph.proto(name),
        opset_imports=[
            onnx.helper.make_opsetid("", _OPSET),
            onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
        ],
        ir_version=_IR_VERSION,
        producer_name="hybridmix",
        producer_version=__version__,
    )
    columns = [column_name(schema, j) for j in range(schema.n_columns)]
    notes = {
        "hybridmix_version": __version__,
        "estimator": name,
        "feature_names": json.dumps(columns),
    }
    onnx.helper.set_model_props(proto, notes)
    onnx.checker.check_model(proto)
    return proto
