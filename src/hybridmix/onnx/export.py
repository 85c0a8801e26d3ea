"""Export of fitted models to ONNX."""

from __future__ import annotations

import json
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix.data import Schema
from hybridmix.estimators.components import voter_of
from hybridmix.estimators.density import MixtureDensity
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.predictions import MixtureForecaster
from hybridmix.estimators.search import HybridMixtureClassifierCV
from hybridmix.models.calibration import Calibration
from hybridmix.onnx.classes import Classes
from hybridmix.onnx.graph import Graph, import_onnx
from hybridmix.onnx.regression import Targets
from hybridmix.onnx.tables import TableInputs, column_name

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
    what ``predict``, ``predict_proba`` and ``score_samples`` return. Those of a regressor
    are ``mean`` and ``deviation`` (n, t) of the targets, and ``log_density``.

    Parameters
    ----------
    model : estimator
        A fitted `HybridMixtureClassifier`, `HybridMixtureClassifierCV`,
        `MixtureNetworkClassifier`, `MixtureRegressor` or `MixtureDensity`.
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
    graph = Graph()
    table = TableInputs.declare(graph, outcome.schema, np.dtype(dtype), outcome.outputs)
    outcome.write(graph, table)
    return _proto(graph, type(model).__name__, outcome.schema)


@singledispatch
def _outcome_of(model: Any) -> Classes | Targets:
    raise TypeError(
        f"{type(model).__name__} cannot be exported to ONNX; HybridMixtureClassifier, "
        "HybridMixtureClassifierCV, MixtureNetworkClassifier, MixtureRegressor and "
        "MixtureDensity can."
    )


@_outcome_of.register
def _(model: MixtureClassifier) -> Classes:
    check_is_fitted(model, "model_")
    calibration = Calibration(model.temperature_, model.uniform_share_)
    mixture = model.model_
    return Classes(
        model.schema_,
        mixture,
        mixture.offsets,
        model.classes_,
        calibration,
        voter_of(model),
    )


@_outcome_of.register
def _(model: HybridMixtureClassifierCV) -> Classes | Targets:
    check_is_fitted(model, "best_estimator_")
    return _outcome_of(model.best_estimator_)


@_outcome_of.register
def _(model: MixtureForecaster) -> Targets:
    check_is_fitted(model, "predictive_")
    return Targets(model.schema_, model.model_, model.target_schema_, model.predictive_)


@_outcome_of.register
def _(model: MixtureDensity) -> Classes:
    check_is_fitted(model, "model_")
    mixture = model.model_
    # The components of a density are its classes.
    classes = np.arange(mixture.n_components)
    offsets = (*classes.tolist(), len(classes))
    return Classes(model.schema_, mixture, offsets, classes, Calibration())


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
