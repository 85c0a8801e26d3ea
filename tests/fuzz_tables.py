"""Random tables, labels, weights and options, from harmless to absurd."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import hybridmix as hm

LARGEST = np.finfo(float).max
# Denormal numbers, squares that overflow or vanish, the ends of the range.
EXTREME_SCALES = (
    5e-324,
    1e-310,
    1e-300,
    1e-160,
    1e-154,
    1e150,
    1e154,
    1e200,
    1e300,
    1.7e308,
)
COVARIANCE_TYPES = ("spherical", "diag", "tied", "full", "subspace")
# Shares of densities, imputers, detectors, classifiers and searches.
SHARES = (0.25, 0.15, 0.15, 0.4, 0.05)
WORDS = ("a", "b", "c d", "é", "", "NaN", "1", "-1")


@dataclass(frozen=True)
class Case:
    """An estimator with everything that it is fitted to, and rows to predict."""

    estimator: Any
    X: Any
    y: Any
    sample_weight: Any
    X_new: Any

    def described(self):
        """Say in a few lines what the case is made of."""
        types = "" if not hasattr(self.X, "dtypes") else f" {list(self.X.dtypes)}"
        dtype = f" {self.X.dtype}" if hasattr(self.X, "dtype") else types
        lines = [
            " ".join(repr(self.estimator).split()),
            f"X: {type(self.X).__module__}.{type(self.X).__name__} "
            f"{self.X.shape}{dtype[:300]}",
        ]
        if self.y is not None:
            lines.append(f"y: {type(self.y).__name__} {_shown(self.y)}")
        if self.sample_weight is not None:
            lines.append(f"sample_weight: {_shown(self.sample_weight)}")
        return "\n".join(lines)


def _shown(values):
    return np.array(values, dtype=object).tolist()[:8]


def make_case(seed, number):
    """Return the case of a number: the same one always."""
    rng = np.random.default_rng([seed, number])
    n_rows = int(rng.integers(1, 61))
    n_columns = int(rng.integers(1, 13))
    if rng.random() < 0.05:
        n_rows, n_columns = int(rng.integers(1, 15)), int(rng.integers(20, 150))
    columns = _columns(rng, n_rows, n_columns)
    build = _builder(rng, columns)
    X = build(columns)
    y, n_classes = _labels(rng, n_rows)
    weights = _weights(rng, n_rows)
    kind = rng.choice(
        ["density", "imputer", "detector", "classifier", "search"], p=SHARES
    )
    estimator = _estimator(rng, str(kind), n_columns, n_classes, X)
    if kind not in ("classifier", "search"):
        y = None
    if kind == "detector" and rng.random() < 0.2:
        y = np.where(rng.random(n_rows) < 0.3, -1, 1)
        estimator.set_params(threshold=_pick(rng, "f1", "fpr", "recall"), cv=2)
    return Case(estimator, X, y, weights, build(_other_rows(rng, columns)))


def _pick(rng, *values):
    return values[int(rng.integers(len(values)))]


# Columns --------------------------------------------------------------------------


def _columns(rng, n_rows, n_columns):
    """Return lists of values, None where missing, with the kind of each column."""
    style = _pick(rng, "real", "real", "mixed", "mixed", "categorical")
    extreme = rng.random() < 0.3
    share = _pick(rng, 0.0, 0.0, 0.1, 0.3, 0.7, 0.95)
    columns = []
    for _ in range(n_columns):
        kind = "real"
        if style == "categorical" or (style == "mixed" and rng.random() < 0.4):
            kind = _pick(rng, "word", "word", "bool", "int")
        elif rng.random() < 0.2:
            kind = "int"
        values = _values(rng, kind, n_rows, extreme)
        missing = 1.0 if rng.random() < 0.03 else share
        holes = rng.random(n_rows) < missing
        values = [None if hole else v for v, hole in zip(values, holes, strict=True)]
        columns.append((kind, values))
    if n_columns > 1 and rng.random() < 0.15:
        columns[-1] = columns[0]
    if rng.random() < 0.1:
        columns = [(kind, (values[:2] * n_rows)[:n_rows]) for kind, values in columns]
    return columns


def _values(rng, kind, n_rows, extreme):
    if kind == "word":
        words = WORDS[: int(rng.integers(1, len(WORDS) + 1))]
        return [_pick(rng, *words) for _ in range(n_rows)]
    if kind == "bool":
        return [bool(v) for v in rng.integers(0, 2, n_rows)]
    if kind == "int":
        return rng.integers(-3, _pick(rng, 4, 1000, 2**40), n_rows).tolist()
    values = rng.normal(size=n_rows)
    if rng.random() < 0.15:
        values[:] = values[0]
    if rng.random() < 0.15:
        values = np.round(values)
    if rng.random() < 0.1:
        values = values**9
    scale = 10.0 ** rng.uniform(-4, 4)
    if extreme and rng.random() < 0.6:
        scale = _pick(rng, *EXTREME_SCALES)
    shift = _pick(rng, 0.0, 0.0, 0.0, 1.0, 1e6)
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(scale * (values + shift), -LARGEST, LARGEST).tolist()


def _other_rows(rng, columns):
    """Return rows of the same kinds: known ones with more holes and new categories."""
    n_rows = len(columns[0][1])
    index = rng.integers(n_rows, size=min(n_rows, 10))
    share = _pick(rng, 0.0, 0.3, 1.0)
    others = []
    for kind, values in columns:
        new = [None if rng.random() < share else values[i] for i in index]
        if kind == "word" and rng.random() < 0.1:
            new[0] = "never seen"
        others.append((kind, new))
    return others


# Tables ---------------------------------------------------------------------------


def _builder(rng, columns):
    """Return a function that makes a table of columns, always of the same type."""
    kinds = {kind for kind, _ in columns}
    has_holes = any(value is None for _, values in columns for value in values)
    if kinds & {"word"} or rng.random() < 0.4:
        return _pick(rng, _object_array, _pandas, _nullable_pandas, _polars)
    if kinds == {"bool"} and not has_holes:
        return lambda columns: _float_array(columns, float if _holed(columns) else bool)
    if kinds == {"int"} and not has_holes:
        return lambda columns: _float_array(columns, float if _holed(columns) else int)
    dtype = _pick(rng, np.float64, np.float64, np.float32)
    order = _pick(rng, "C", "F")
    return lambda columns: np.asarray(_float_array(columns, dtype), order=order)


def _holed(columns):
    return any(value is None for _, values in columns for value in values)


def _float_array(columns, dtype):
    array = np.array(
        [[np.nan if v is None else v for v in values] for _, values in columns], float
    ).T
    if dtype is np.float32:
        bound = float(np.finfo(np.float32).max)
        array = np.clip(array, -bound, bound)
    return array.astype(dtype)


def _object_array(columns):
    array = np.empty((len(columns[0][1]), len(columns)), dtype=object)
    for i, (_, values) in enumerate(columns):
        array[:, i] = values
    return array


def _pandas(columns):
    frame = {}
    for i, (kind, values) in enumerate(columns):
        if kind == "word":
            frame[f"c{i}"] = pd.Categorical(values)
        elif kind == "bool":
            frame[f"c{i}"] = pd.Series(values, dtype=object)
        else:
            frame[f"c{i}"] = pd.Series([np.nan if v is None else v for v in values])
    return pd.DataFrame(frame)


def _nullable_pandas(columns):
    types = {"word": "string", "bool": "boolean", "int": "Int64", "real": "Float64"}
    return pd.DataFrame(
        {f"c{i}": pd.array(v, dtype=types[kind]) for i, (kind, v) in enumerate(columns)}
    )


def _polars(columns):
    types = {"word": pl.Categorical, "bool": pl.Boolean, "int": pl.Int64}
    return pl.DataFrame(
        {
            f"c{i}": pl.Series(values, dtype=types.get(kind, pl.Float64))
            for i, (kind, values) in enumerate(columns)
        }
    )


# Labels and weights ---------------------------------------------------------------


def _labels(rng, n_rows):
    """Return labels of some kind, and how many classes they were drawn from."""
    n_classes = _pick(rng, 1, 2, 2, 2, 3, 3, 5, max(1, n_rows))
    numbers = rng.integers(n_classes, size=n_rows)
    unknown = rng.random(n_rows) < _pick(rng, 0.0, 0.0, 0.3, 0.8)
    kind = _pick(rng, "int", "int", "text", "bool", "float", "gaps", "none", "rare")
    if kind == "text":
        y = np.array([f"class {i}" for i in numbers], dtype=_pick(rng, object, str))
    elif kind == "bool":
        y = numbers % 2 == 0
    elif kind == "float":
        y = numbers.astype(float) + _pick(rng, 0.0, 0.0, 0.0, 0.25)
    elif kind == "gaps":
        y = np.where(unknown, np.nan, numbers.astype(float))
    elif kind == "none":
        words = [
            None if gap else f"c{i}" for i, gap in zip(numbers, unknown, strict=True)
        ]
        y = np.array(words, dtype=object)
    elif kind == "rare":
        y = _pick(
            rng,
            [int(i) if i % 2 else str(i) for i in numbers],
            np.array([int(i) if i % 2 else str(i) for i in numbers], dtype=object),
            rng.normal(size=n_rows),
            pd.Series(pd.Categorical([f"k{i}" for i in numbers])),
            pd.Series(numbers % 2 == 0, dtype="boolean"),
            numbers[:, None],
            numbers[: max(0, n_rows - 1)],
            np.full(n_rows, -1),
        )
    else:
        y = np.where(unknown, -1, numbers)
    if isinstance(y, np.ndarray) and y.ndim == 1 and rng.random() < 0.2:
        y = _pick(rng, y.tolist(), pd.Series(y))
    return y, n_classes


def _weights(rng, n_rows):
    kind = _pick(rng, *["none"] * 6, "even", "counts", "zeros", "huge", "tiny", "both")
    counts = rng.integers(0, 4, n_rows).astype(float)
    return {
        "none": None,
        "even": rng.uniform(0.1, 3.0, n_rows),
        "counts": counts,
        "zeros": np.where(rng.random(n_rows) < 0.9, 0.0, 1.0),
        "huge": rng.uniform(0.5, 1.0, n_rows) * _pick(rng, 1e6, 1e154, 1e300, 1.7e308),
        "tiny": rng.uniform(0.5, 1.0, n_rows) * _pick(rng, 1e-9, 1e-154, 1e-320),
        "both": 10.0 ** rng.uniform(-300, 300, n_rows),
    }[kind]


# Estimators -----------------------------------------------------------------------


def _estimator(rng, kind, n_columns, n_classes, X):
    if rng.random() < 0.15 and kind != "search":
        return _by_default(rng, kind)
    options = _common_options(rng, n_columns)
    if kind == "density":
        model = hm.MixtureDensity(**options)
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and rng.random() < 0.1:
            # Too many for some numbers of components, and refused then.
            model.set_params(init=np.nan_to_num(X[:2].astype(float)))
        return model
    if kind == "imputer":
        return hm.MixtureImputer(n_draws=_pick(rng, None, None, 2), **options)
    if kind == "detector":
        share = _pick(rng, "auto", "auto", 0.1, 0.5, 0.0)
        return hm.MixtureOutlierDetector(contamination=share, **options)
    classifier = hm.HybridMixtureClassifier(
        **options | _classifier_options(rng, n_classes)
    )
    if kind == "classifier":
        return classifier
    return hm.HybridMixtureClassifierCV(
        classifier.set_params(calibrate=False, validation_fraction=None),
        n_components=[1, 2],
        covariance_type=[_pick(rng, *COVARIANCE_TYPES)],
        tradeoff=[0, 3],
        missing_rate=_pick(rng, 0.0, 0.3),
        per_class=bool(rng.random() < 0.3),
        cv=2,
        random_state=0,
    )


def _by_default(rng, kind):
    """Return an estimator that chooses everything by itself."""
    kinds = {
        "density": hm.MixtureDensity,
        "imputer": hm.MixtureImputer,
        "detector": hm.MixtureOutlierDetector,
        "classifier": hm.HybridMixtureClassifier,
    }
    effort = _pick(rng, "fast", "balanced", "balanced", "thorough", 0.1)
    return kinds[kind](effort=effort, n_jobs=1, random_state=0)


def _common_options(rng, n_columns):
    options = {
        "covariance_type": _pick(rng, *COVARIANCE_TYPES, "auto"),
        "n_components": _pick(rng, 1, 1, 2, 3, [1, 2], 20, "auto"),
        "effort": _pick(rng, "fast", "balanced"),
        "n_factors": _pick(rng, "auto", 1, min(2, n_columns), 0.8),
        "noise": _pick(rng, "common", "columns"),
        "covariance_prior": _pick(rng, "auto", "auto", 1.0, 0.0),
        "init": _pick(rng, "kmeans", "kmeans", "k-means++"),
        "max_iter": _pick(rng, 1, 5, 20),
        "n_jobs": 1,
        "random_state": 0,
    }
    if rng.random() < 0.15:
        odd = {
            "n_factors": _pick(rng, 0, 99, 1.5, "many"),
            "covariance_prior": _pick(rng, 1e300, 1e-300, -1.0, np.nan),
            "variance_floor": _pick(rng, 1e-12, 1.0, 0.0),
            "smoothing": _pick(rng, 1e-10, 1e300, 0.0),
            "categorical_features": _pick(rng, [0], ["c0"], [True] * n_columns, [99]),
            "tol": _pick(rng, 0.0, 1e300, np.inf),
            "n_components": _pick(rng, 0, 10_000, "three", {}),
            "max_iter": 0,
        }
        name = _pick(rng, *odd)
        options[name] = odd[name]
    return options


def _classifier_options(rng, n_classes):
    options = {
        "objective": _pick(
            rng, "hybrid", "hybrid", "likelihood", "conditional", "margin"
        ),
        "loss": _pick(rng, "auto", "auto", "log", "hinge", "ramp", "scaled"),
        "solver": _pick(rng, "lbfgs", "lbfgs", "baum-welch"),
        "n_steps": _pick(rng, 1, 5, 10),
        "tradeoff": _pick(rng, 10.0, 1.0, 0.0, "auto"),
        "class_weight": _pick(rng, None, None, None, "balanced"),
        "calibrate": _pick(rng, False, False, False, "auto", "auto", True),
        "validation_fraction": _pick(rng, None, None, None, 0.3),
        "refine_subspace": bool(rng.random() < 0.2),
        "class_prior": _pick(rng, "empirical", "empirical", "uniform"),
        "unlabelled_weight": _pick(rng, "auto", "auto", 1.0, 0.0),
    }
    if rng.random() < 0.15:
        odd = {
            "tradeoff": _pick(rng, 1e300, 1e-300, -1.0, np.nan),
            "margin": _pick(rng, 1e300, 1e-6, 0.0, "wide"),
            "class_prior": _pick(rng, np.full(n_classes, 1 / n_classes), [1.0], "odd"),
            "unlabelled_weight": _pick(rng, 1e300, 1e-300, -1.0, "none"),
            "n_components": {0: 1, 1: 2},
            "unlabelled": _pick(rng, None, 0, "class 0"),
            "loss": "huge",
            "generalisation_loss": 0.1,
        }
        name = _pick(rng, *odd)
        options[name] = odd[name]
    return options
