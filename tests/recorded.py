"""Forty problems whose results were recorded before the library was rebuilt.

Seventeen are values and gradients at fixed parameters, for every family and seven
objectives; twenty-three are fits of the public estimators. ``recorded.npz`` holds what
the code of version 0.1 returned; ``test_recorded.py`` compares.

``python tests/recorded.py --write`` records anew. Do that only where a defect in the old
results was mended, and say so in the message of the commit.
"""

import argparse
import json
import math
import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recorded_core import Cells, Parameters, looked_at, plain_em

import hybridmix as hm
from hybridmix.solvers import ExtendedBaumWelch, LimitedMemoryBFGS

FILE = Path(__file__).with_name("recorded.npz")
SHOWN_ROWS = 25

# Fixed parameters -----------------------------------------------------------------

D, Q, SIZES, CATEGORIES = 4, 2, (2, 1, 2), (3, 2)
OBJECTIVES = (
    "likelihood",
    "hybrid log",
    "hybrid hinge",
    "hybrid ramp",
    "hybrid scaled",
    "conditional",
    "margin",
)
FAMILIES = (
    "spherical",
    "diag",
    "tied",
    "full",
    "subspace",
    "refined subspace",
    "categorical",
    "full x categorical",
)
# Gradients of three objectives each are kept, in turn, so that the file stays small.
FIXED = {
    f"{family}, {table}": (family, table, [OBJECTIVES[(3 * i + j) % 7] for j in range(3)])
    for i, (family, table) in enumerate(
        [
            *((family, "complete") for family in FAMILIES),
            *((family, "messy") for family in (*FAMILIES, "diag x categorical")),
        ]
    )
}


def some_parameters():
    """Overlapping components of three classes, for every family."""
    rng = np.random.default_rng(11)
    n_components = sum(SIZES)
    factors = 0.3 * np.tril(rng.normal(size=(n_components, D, D)), -1) + np.eye(D)
    latent = 0.3 * np.tril(rng.normal(size=(n_components, Q, Q)), -1) + np.eye(Q)
    return Parameters(
        means=rng.normal(size=(n_components, D)),
        covariances=factors @ factors.transpose(0, 2, 1) * rng.uniform(0.5, 1.5),
        prior_variances=np.linspace(0.5, 1.5, D),
        prior_correlations=0.7 * np.eye(D) + 0.3,
        centre=0.1 * rng.normal(size=D),
        loading=rng.normal(size=(D, Q)),
        noise=rng.uniform(0.3, 0.9, size=D),
        latent_means=rng.normal(size=(n_components, Q)),
        latent_covariances=latent @ latent.transpose(0, 2, 1),
        probabilities=tuple(
            rng.dirichlet(np.full(k, 3.0), n_components) for k in CATEGORIES
        ),
        mixing=np.concatenate([rng.dirichlet(np.full(k, 5.0)) for k in SIZES]),
        class_prior=rng.dirichlet(np.full(len(SIZES), 5.0)),
        offsets=(0, *np.cumsum(SIZES).tolist()),
    )


def some_cells(table):
    """Rows of three classes: complete, or with holes, weights and without labels."""
    rng = np.random.default_rng(12)
    n_rows = 300
    labels = rng.integers(len(SIZES), size=n_rows)
    real = rng.normal(size=(D, n_rows)) + 0.8 * labels
    codes = np.stack([(labels + rng.integers(2, size=n_rows)) % k for k in CATEGORIES])
    if table == "complete":
        return Cells(real, codes.astype(np.int32), labels, None)
    real[rng.random(real.shape) < 0.25] = np.nan
    # Patterns that many rows share are evaluated in a way of their own.
    real[1, :120] = np.nan
    real[[0, 2, 3], :80] = rng.normal(size=(3, 80))
    codes[rng.random(codes.shape) < 0.25] = -1
    labels[rng.random(n_rows) < 0.3] = -1
    return Cells(real, codes.astype(np.int32), labels, rng.uniform(0.2, 2.0, n_rows))


def fixed_results(name):
    """Return values and gradients of one problem at fixed parameters."""
    family, table, with_gradients = FIXED[name]
    numbers, cells = some_parameters(), some_cells(table)
    counts = np.linspace(10.0, 60.0, sum(SIZES))
    found = {}
    for objective in OBJECTIVES:
        rng = np.random.default_rng(13)
        looks = looked_at(
            family, numbers, cells, objective, counts, partial(rng.normal, 0.0, 1.0)
        )
        for key, value in looks.items():
            if "gradient" not in key or objective in with_gradients:
                found[f"{objective}, {key}"] = value
    return found


# Fits -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """An estimator and its table; ascents are stopped near a maximum, not at it."""

    estimator: Any
    holes: float = 0.0
    unlabelled: float = 0.0
    weighted: bool = False
    columns: str = "real"
    labelled: bool = False
    ascends: bool = False
    n_rows: int = 240
    attributes: tuple[str, ...] = field(default=())


def _classifier(objective, covariance_type, **options):
    # The defaults of version 0.1, with which the results were recorded.
    fixed = {
        "n_components": 1,
        "tradeoff": 10.0,
        "calibrate": False,
        "column_shapes": "plain",
        "unlabelled_weight": 0.5,
        "random_state": 0,
        "n_jobs": 1,
    }
    return hm.HybridMixtureClassifier(
        objective, covariance_type=covariance_type, **{**fixed, **options}
    )


def _learner(objective, covariance_type, max_iter=400, **options):
    # Far closer to the maximum than a user would go, so that the way there, which
    # rounding changes, does not show. Objectives without a maximum get few iterations.
    solver = LimitedMemoryBFGS(max_iter=max_iter, tol=1e-13, curvature=11.0)
    return _classifier(objective, covariance_type, **{"solver": solver, **options})


def _damped(max_iter):
    return ExtendedBaumWelch(max_iter=max_iter, tol=0.0)


def _density(covariance_type, n_components, **options):
    return hm.MixtureDensity(
        n_components,
        covariance_type=covariance_type,
        **{"covariance_prior": 1.0, "random_state": 0, "n_jobs": 1, **options},
    )


FITS = {
    "density, spherical": Fit(_density("spherical", 3)),
    "density, diag, holes": Fit(_density("diag", 3), holes=0.2),
    "density, tied, weights": Fit(_density("tied", 4), weighted=True),
    "density, full, holes, weights": Fit(
        _density("full", 3, covariance_prior="auto"), holes=0.2, weighted=True
    ),
    "density, subspace, holes": Fit(
        _density("subspace", 2, n_factors=2, noise="columns"), holes=0.2
    ),
    "density, categorical": Fit(_density("full", 2), columns="categorical"),
    "density, mixed, holes": Fit(_density("full", 2), holes=0.15, columns="mixed"),
    "imputer, mixed, weights": Fit(
        hm.MixtureImputer(
            2,
            n_draws=2,
            covariance_type="full",
            covariance_prior=1.0,
            random_state=0,
            n_jobs=1,
        ),
        holes=0.2,
        weighted=True,
        columns="mixed",
    ),
    "detector, diag, holes": Fit(
        hm.MixtureOutlierDetector(
            2,
            contamination=0.1,
            covariance_type="diag",
            covariance_prior=1.0,
            random_state=0,
            n_jobs=1,
        ),
        holes=0.2,
        attributes=("offset_",),
    ),
    "classifier, full, unlabelled, weights": Fit(
        _classifier("likelihood", "full", n_components=2),
        labelled=True,
        unlabelled=0.4,
        weighted=True,
    ),
    "classifier, tied, equal classes": Fit(
        _classifier("likelihood", "tied", n_components=2, class_prior="uniform"),
        labelled=True,
        holes=0.1,
    ),
    "classifier, subspace, mixed, unlabelled": Fit(
        _classifier("likelihood", "subspace", n_factors=2),
        labelled=True,
        unlabelled=0.3,
        columns="mixed",
    ),
    "classifier, unlabelled weight by folds": Fit(
        _classifier("likelihood", "diag", unlabelled_weight="auto"),
        labelled=True,
        unlabelled=0.5,
        attributes=("unlabelled_weight_",),
    ),
    "hybrid log, full, holes": Fit(
        _learner("hybrid", "full"), labelled=True, holes=0.2, ascends=True
    ),
    "hybrid hinge, diag, weights": Fit(
        _learner("hybrid", "diag", loss="hinge", n_components=2),
        labelled=True,
        weighted=True,
        ascends=True,
    ),
    "hybrid ramp, tied, unlabelled, calibrated": Fit(
        _learner("hybrid", "tied", loss="ramp", calibrate=True),
        labelled=True,
        unlabelled=0.3,
        ascends=True,
        attributes=("temperature_", "uniform_share_"),
    ),
    "hybrid scaled, spherical": Fit(
        _learner("hybrid", "spherical", loss="scaled", n_components=2),
        labelled=True,
        ascends=True,
    ),
    "conditional, full": Fit(
        _learner("conditional", "full"), labelled=True, ascends=True
    ),
    "margin, diag, mixed": Fit(
        _learner("margin", "diag", max_iter=15),
        labelled=True,
        columns="mixed",
        ascends=True,
    ),
    "hybrid, refined subspace": Fit(
        _learner("hybrid", "subspace", n_factors=2, refine_subspace=True),
        labelled=True,
        n_rows=120,
        ascends=True,
    ),
    "Baum-Welch, hybrid log, full": Fit(
        _classifier("hybrid", "full", n_components=2, solver=_damped(30)),
        labelled=True,
        holes=0.1,
        ascends=True,
    ),
    "Baum-Welch, conditional, diag": Fit(
        _classifier("conditional", "diag", solver=_damped(30)),
        labelled=True,
        holes=0.2,
        weighted=True,
        ascends=True,
    ),
    "Baum-Welch, margin, categorical": Fit(
        _classifier("margin", "full", n_components=2, solver=_damped(30)),
        labelled=True,
        columns="categorical",
        ascends=True,
    ),
}


def table_of(fit, jitter=0.0):
    """Return the table, labels and weights of a fit.

    ``jitter`` moves every real value by this share of itself: by how much results then
    change says how many of their digits mean something.
    """
    rng = np.random.default_rng(21)
    n, d = fit.n_rows, 4
    labels = np.arange(n) % 3
    # Two groups in each class, apart enough for k-means to find the same ones always,
    # and classes close enough for no objective to run off to infinity.
    group = np.arange(n) // 3 % 2
    turn = np.eye(d) + 0.3 * rng.normal(size=(d, d))
    X = rng.normal(size=(n, d)) @ turn
    X += 1.2 * labels[:, None] * [1.0, -0.5, 0.0, 0.5] + 5.0 * group[:, None] * [
        0,
        1,
        1,
        0,
    ]
    X *= [1.0, 10.0, 0.1, 3.0]
    codes = (labels[:, None] + group[:, None] + rng.integers(0, 3, (n, 2))) % [4, 3]
    holes = rng.random((n, d + 2)) < fit.holes
    is_unlabelled = rng.random(n) < fit.unlabelled
    weights = rng.uniform(0.5, 2.0, n) if fit.weighted else None
    X *= 1.0 + jitter * rng.normal(size=X.shape)
    y = np.where(is_unlabelled, -1, labels) if fit.labelled else None
    X = np.where(holes[:, :d], np.nan, X)
    if fit.columns == "real":
        return X, y, weights
    words = np.array(["a", "b", "c", "d"], dtype=object)[codes]
    words = np.where(holes[:, d:], None, words)
    frame = {f"k{i}": pd.Categorical(words[:, i]) for i in range(2)}
    if fit.columns == "mixed":
        frame = {f"x{i}": X[:, i] for i in range(d)} | frame
    return pd.DataFrame(frame), y, weights


def fitted(name, jitter=0.0):
    """Fit one of the estimators; return it and its table."""
    fit = FITS[name]
    X, y, weights = table_of(fit, jitter)
    # Some are told to go on until nothing changes, or for a number of iterations.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit.estimator.fit(X, y, sample_weight=weights), X


def fit_results(name, jitter=0.0):
    """Fit one of the estimators; return what it published and what it predicts."""
    fit = FITS[name]
    with plain_em():
        model, X = fitted(name, jitter)
    shown = X[:SHOWN_ROWS]
    found = {name: np.atleast_1d(getattr(model, name)) for name in fit.attributes}
    if fit.ascends:
        found["value"] = model.trace_[-1:]
        found["probabilities"] = model.predict_proba(shown)
        return found
    found |= {name: getattr(model, name) for name in ("mixing_", "trace_")}
    found["log_densities"] = model.score_samples(shown)
    if hasattr(model, "means_"):
        found["means_"] = model.means_
        found["covariances_"] = _covariances(model)
    if hasattr(model, "category_probabilities_"):
        found["category_probabilities_"] = np.hstack(model.category_probabilities_)
    if isinstance(model, hm.MixtureImputer):
        real = [name for name in X.columns if name.startswith("x")]
        tables = [model.transform(X), *model.draw(X, random_state=0)]
        found["imputed"] = np.stack([t[real].to_numpy()[:SHOWN_ROWS] for t in tables])
    if isinstance(model, hm.HybridMixtureClassifier):
        found["probabilities"] = model.predict_proba(shown)
    return found


def _covariances(model):
    """Return covariances of the columns: loadings are known up to a rotation only."""
    if model.covariance_type != "subspace":
        return model.covariances_
    loading = model.loading_
    return loading @ model.covariances_ @ loading.T + np.diag(model.noise_variances_)


# The file -------------------------------------------------------------------------


def recorded():
    """Return what was recorded, as a dictionary of problems."""
    problems = {}
    with np.load(FILE) as file:
        numbers = file["numbers"]
        shapes = json.loads(str(file["shapes"]))
    end = 0
    for problem, results in shapes.items():
        problems[problem] = {}
        for name, shape in results.items():
            start, end = end, end + math.prod(shape)
            problems[problem][name] = numbers[start:end].reshape(shape)
    return problems


def record(problems):
    """Write results as one long array: members of archives have a size of their own."""
    arrays = [np.asarray(a) for results in problems.values() for a in results.values()]
    shapes = {
        problem: {name: np.shape(array) for name, array in results.items()}
        for problem, results in problems.items()
    }
    np.savez_compressed(
        FILE,
        numbers=np.concatenate([array.astype(float).ravel() for array in arrays]),
        shapes=json.dumps(shapes),
    )


def main():
    """Record all problems."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="replace recorded.npz")
    write = parser.parse_args().write
    problems = {name: fixed_results(name) for name in FIXED}
    problems |= {name: fit_results(name) for name in FITS}
    print(f"{len(problems)} problems, computed by {hm.__file__}")
    if write:
        record(problems)
        print(f"{FILE.name}: {FILE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
