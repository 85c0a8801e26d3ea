"""Export of fitted models to ONNX."""

from __future__ import annotations

import json
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.estimators.components import voter_of
from hybridmix.estimators.density import MixtureDensity
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.network_regressor import MixtureNetworkRegressor
from hybridmix.estimators.predictions import MixtureForecaster
from hybridmix.estimators.search import HybridMixtureClassifierCV
from hybridmix.estimators.targets import checked_levels, has_distribution
from hybridmix.models.calibration import Calibration
from hybridmix.onnx.classes import Classes
from hybridmix.onnx.graph import Graph, import_onnx
from hybridmix.onnx.regression import LayerTargets, Targets
from hybridmix.onnx.tables import TableInputs, column_name

if TYPE_CHECKING:
    import onnx

DTYPES = ("float32", "float64")
# Runtimes of 2022 read these versions, and nothing later is needed.
_OPSET, _ML_OPSET, _IR_VERSION = 17, 3, 8


def to_onnx(
    model: Any, *, dtype: str = "float32", quantiles: Any = None
) -> onnx.ModelProto:
    """Write a fitted model as an ONNX graph.

    The graph marginalises missing values exactly, as the model does. It reads and returns
    numbers of the given type, and computes in double precision.

    A table of numbers is one input ``X`` of shape (n, d); NaN is a missing value. If
    categories are strings, every column is an input of its own, of shape (n, 1), with the
    name of the column (``x0``, ``x1``, ... for arrays). A string that training did not
    see is a missing value.

    The outputs are ``label`` (n,), ``probabilities`` (n, C) and ``log_density`` (n,):
    what ``predict``, ``predict_proba`` and ``score_samples`` return. Those of a regressor
    are ``mean`` and ``deviation`` (n, t) of the targets, ``quantiles`` (n, t, q) if asked
    for, and ``log_density``. A `MixtureNetworkRegressor` of ``output="epsilon"`` has
    neither deviations nor quantiles.

    Parameters
    ----------
    model : estimator
        A fitted `HybridMixtureClassifier`, `HybridMixtureClassifierCV`,
        `MixtureNetworkClassifier`, `MixtureRegressor`, `MixtureNetworkRegressor` or
        `MixtureDensity`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the numbers that go in and come out.
    quantiles : float, array-like of shape (q,) or None, default=None
        Levels between 0 and 1, for regressors: the graph also has the quantiles that
        ``predict_quantiles`` returns. The ends of a 90 % interval are (0.05, 0.95).

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
    levels = np.empty(0)
    if quantiles is not None:
        levels = np.atleast_1d(checked_levels(quantiles))
    outcome = _outcome_of(model, levels)
    graph = Graph()
    table = TableInputs.declare(graph, outcome.schema, np.dtype(dtype), outcome.outputs)
    outcome.write(graph, table)
    return _proto(graph, type(model).__name__, outcome.schema)


Outcome = Classes | Targets | LayerTargets


@singledispatch
def _outcome_of(model: Any, _levels: FloatArray) -> Outcome:
    raise TypeError(
        f"{type(model).__name__} cannot be exported to ONNX; HybridMixtureClassifier, "
        "HybridMixtureClassifierCV, MixtureNetworkClassifier, MixtureRegressor, "
        "MixtureNetworkRegressor and MixtureDensity can."
    )


@_outcome_of.register
def _(model: MixtureClassifier, levels: FloatArray) -> Outcome:
    check_is_fitted(model, "model_")
    _refuse_levels(model, levels)
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
def _(model: HybridMixtureClassifierCV, levels: FloatArray) -> Outcome:
    check_is_fitted(model, "best_estimator_")
    return _outcome_of(model.best_estimator_, levels)


@_outcome_of.register
def _(model: MixtureForecaster, levels: FloatArray) -> Outcome:
    check_is_fitted(model, "predictive_")
    return Targets(
        model.schema_, model.model_, model.target_schema_, model.predictive_, levels
    )


@_outcome_of.register
def _(model: MixtureNetworkRegressor, levels: FloatArray) -> Outcome:
    check_is_fitted(model, "weights_")
    if not has_distribution(model):
        _refuse_levels(model, levels)
    return LayerTargets(
        model.schema_,
        model.model_,
        model.embedding_,
        model.weights_,
        model.bias_,
        getattr(model, "deviations_", None),
        levels,
    )


@_outcome_of.register
def _(model: MixtureDensity, levels: FloatArray) -> Outcome:
    check_is_fitted(model, "model_")
    _refuse_levels(model, levels)
    mixture = model.model_
    # The components of a density are its classes.
    classes = np.arange(mixture.n_components)
    offsets = (*classes.tolist(), len(classes))
    return Classes(model.schema_, mixture, offsets, classes, Calibration())


def _refuse_levels(model: Any, levels: FloatArray) -> None:
    """Refuse levels for a model that has no quantiles."""
    if levels.size:
        raise ValueError(
            f"This {type(model).__name__} has no quantiles of targets: leave out "
            "quantiles=."
        )


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
