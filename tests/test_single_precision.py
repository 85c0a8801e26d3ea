"""Rows in single precision, sums over them in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from hybridmix import HybridMixtureClassifier, MixtureDensity, MixtureRegressor
from hybridmix._parallel import Workers
from hybridmix.data import Dataset, Rows
from hybridmix.objectives import Likelihood
from hybridmix.problem import Problem
from hybridmix.training.covariances import COVARIANCE_TYPES

X, Y = load_iris(return_X_y=True)


def table(missing: float) -> np.ndarray:
    hole = np.random.default_rng(0).random(X.shape) < missing
    return np.where(hole, np.nan, X)


def fitted_density(dtype: str, missing: float = 0.0, **options) -> MixtureDensity:
    model = MixtureDensity(2, dtype=dtype, random_state=0, **options)
    return model.fit(table(missing))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_densities_are_nearly_those_of_double_precision(covariance_type, missing):
    double, single = (
        fitted_density(dtype, missing, covariance_type=covariance_type)
        for dtype in ("float64", "float32")
    )
    expected = double.score_samples(table(missing))
    np.testing.assert_allclose(single.score_samples(table(missing)), expected, atol=1e-3)
    assert single.means_.dtype == np.float64


@pytest.mark.parametrize("covariance_type", ["diag", "full", "tied"])
def test_products_are_in_single_precision_and_sums_in_double(covariance_type):
    model = fitted_density("float64", covariance_type=covariance_type)
    assessments = []
    for dtype in (np.float64, np.float32):
        real = model.schema_.standardised(X.T).astype(dtype)
        rows = Rows(real, None, np.empty((0, len(X)), np.int32))
        dataset = Dataset.arrange(rows, np.zeros(len(X), np.intp))
        problem = Problem(dataset, Likelihood(), model.model_, Workers(1))
        evaluation = model.model_.evaluate(model.model_.prepare(dataset.rows))
        assert evaluation.relative.dtype == dtype
        assert evaluation.log_joint.dtype == np.float64
        assessments.append(problem.assess(model.model_))
    double, single = assessments
    assert single.value == pytest.approx(double.value, rel=1e-5)
    for name, expected in vars(double.statistics.components).items():
        found = getattr(single.statistics.components, name)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.fixture
def seen(monkeypatch) -> set[str]:
    """Types of the rows that solvers have seen."""
    types: set[str] = set()
    init = Problem.__init__

    def noted(self, dataset, *args, **kwargs):
        types.add(dataset.rows.real.dtype.name)
        init(self, dataset, *args, **kwargs)

    monkeypatch.setattr(Problem, "__init__", noted)
    return types


def test_classifiers_and_regressors_take_it(seen):
    for dtype in ("float64", "float32"):
        seen.clear()
        model = HybridMixtureClassifier(
            n_components=1, covariance_type="diag", tradeoff=10.0, dtype=dtype
        ).fit(X, Y)
        assert model.score(X, Y) > 0.95
        model = MixtureRegressor(effort="fast", dtype=dtype, random_state=0)
        assert model.fit(X[:, :3], X[:, 3]).score(X[:, :3], X[:, 3]) > 0.9
        assert seen == {dtype}


def test_values_far_away_stay_finite():
    far = X.copy()
    far[0, 0] = 1e60
    model = MixtureDensity(1, covariance_type="diag", dtype="float32").fit(far)
    assert np.isfinite(model.means_).all()
    assert np.isfinite(model.covariances_).all()


def test_other_types_are_refused():
    with pytest.raises(ValueError, match=r"dtype='float16'.*float64, float32"):
        MixtureDensity(dtype="float16").fit(X)


def test_tables_in_single_precision_are_computed_with_in_double():
    # The last two columns have a shape: a spike, and bounds.
    generator = np.random.default_rng(0)
    zeros = np.where(generator.random(len(X)) < 0.4, 0.1, X[:, 2])
    values = np.column_stack([table(0.1), zeros, np.exp(X[:, 3])]).astype(np.float32)
    models = [
        MixtureDensity(column_shapes={5: (0.0, 20.0)}, random_state=0).fit(given)
        for given in (values, values.astype(np.float64))
    ]
    single, double = models
    assert set(double.schema_.shapes) == {4, 5}
    np.testing.assert_array_equal(single.fingerprint_.hashes, double.fingerprint_.hashes)
    np.testing.assert_array_equal(
        single.score_samples(values), double.score_samples(values)
    )
