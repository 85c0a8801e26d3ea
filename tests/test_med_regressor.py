"""MEDRegressor: support vector regression as a limit, switches, missing targets."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from hybridmix import MEDRegressor, load, save


@pytest.fixture(scope="module")
def table():
    X, y = load_diabetes(return_X_y=True)
    return (X / X.std(axis=0))[:200], ((y - y.mean()) / y.std())[:200]


def one_relevant(n=120, p=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, 2.0 * X[:, 3] - X[:, 7] + 0.1 * rng.normal(size=n)


# The limit ------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "tol"), [("linear", 1e-6), ("rbf", 1e-4)])
@pytest.mark.parametrize(("C", "epsilon"), [(1.0, 0.1), (0.1, 0.3)])
def test_no_smoothness_is_support_vector_regression(table, model, tol, C, epsilon):
    X, y = table
    options = {"C": C, "epsilon": epsilon}
    ours = MEDRegressor(model, smoothness=0.0, tol=tol, **options).fit(X, y)
    theirs = SVR(kernel=model, tol=1e-8, **options).fit(X, y)
    assert np.abs(ours.predict(X) - theirs.predict(X)).max() < 3e-3
    value = 0.5 * np.sum(theirs.dual_coef_[0] ** 2)  # of the same size, for scale
    assert ours.dual_gap_ < 1e-3 * max(1.0, value)


def test_units_of_the_target_are_those_of_an_svr():
    X, y = load_diabetes(return_X_y=True)
    X = X[:150] / X.std(axis=0)
    options = {"C": 20.0, "epsilon": 10.0}
    ours = MEDRegressor(smoothness=0.0, tol=1e-7, **options).fit(X, y[:150])
    theirs = SVR(kernel="linear", tol=1e-8, **options).fit(X, y[:150])
    difference = np.abs(ours.predict(X) - theirs.predict(X)).max()
    assert difference < 3e-3 * y.std()


def test_smoothness_tends_to_the_limit(table):
    X, y = table
    limit = MEDRegressor("rbf", smoothness=0.0).fit(X, y).predict(X)
    distances = [
        np.abs(MEDRegressor("rbf", smoothness=tau).fit(X, y).predict(X) - limit).max()
        for tau in (0.1, 0.01, 0.001)
    ]
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.03


def test_automatic_smoothness_keeps_the_tube(table):
    X, y = table
    automatic = MEDRegressor(C=0.01, epsilon=0.2).fit(X, y)
    given = MEDRegressor(C=0.01, epsilon=0.2, smoothness=0.002).fit(X, y)
    np.testing.assert_array_equal(automatic.predict(X), given.predict(X))
    lacking = automatic.multipliers_.any(axis=1)
    error = np.abs(y - automatic.predict(X))
    assert error[lacking].min() > 0.24
    assert error[~lacking].max() < 0.26


# Attributes -----------------------------------------------------------------------------


def test_attributes(table):
    X, y = table
    model = MEDRegressor(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    assert model.multipliers_.shape == (len(y), 2)
    assert np.all((model.multipliers_ >= 0.0) & (model.multipliers_ <= model.C))
    # Targets above the function raise it, and those below lower it.
    error = y - model.predict(X)
    above, below = model.multipliers_.T
    assert np.all(error[above > 1e-3] > 0.0)
    assert np.all(error[below > 1e-3] < 0.0)
    np.testing.assert_allclose((above - below) @ X, model.coef_, atol=1e-3)
    used = np.flatnonzero(model.multipliers_.any(axis=1))
    np.testing.assert_array_equal(model.support_, used)
    assert model.converged_
    assert not model.interrupted_
    assert model.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("model", ["linear", "rbf", "independent"])
def test_weights_are_repeated_rows(table, model):
    X, y = table[0][:80], table[1][:80]
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"gamma": 0.1, "tol": 1e-5}
    weighted = MEDRegressor(model, **options).fit(X, y, sample_weight=weights)
    repeated = MEDRegressor(model, **options).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=2e-2)
    assert np.all(weighted.multipliers_[weights == 0] == 0.0)


@pytest.mark.parametrize("inclusion", [1.0, 0.1])
def test_sparse_tables_are_dense_tables(inclusion):
    X, y = one_relevant(60, 10)
    X[np.abs(X) < 0.5] = 0.0
    dense = MEDRegressor(inclusion=inclusion, tol=1e-7).fit(X, y)
    found = MEDRegressor(inclusion=inclusion, tol=1e-7).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        found.predict(sparse.csr_array(X)), dense.predict(X), atol=1e-3
    )


def test_a_precomputed_kernel_is_the_kernel(table):
    X, y = table[0].copy(), table[1].copy()
    y[::5] = np.nan
    kernel = rbf_kernel(X, gamma=0.1)
    given = MEDRegressor("precomputed").fit(kernel, y)
    named = MEDRegressor("rbf", gamma=0.1).fit(X, y)
    called = MEDRegressor(lambda A, B: rbf_kernel(A, B, gamma=0.1)).fit(X, y)
    np.testing.assert_allclose(given.predict(kernel), named.predict(X), atol=2e-3)
    np.testing.assert_allclose(called.predict(X), named.predict(X), atol=2e-3)
    assert not hasattr(given, "coef_")


# Switches -------------------------------------------------------------------------------


def test_switches_find_the_relevant_columns():
    X, y = one_relevant()
    model = MEDRegressor(inclusion=0.01).fit(X, y)
    assert set(np.argsort(-model.inclusion_)[:2]) == {3, 7}
    # Inclusions rank, but are not calibrated: a small weight has a small one.
    others = np.delete(model.inclusion_, [3, 7])
    assert model.inclusion_[[3, 7]].min() > 10.0 * others.max()
    plain = MEDRegressor().fit(X, y)
    true = np.zeros(30)
    true[3], true[7] = 2.0, -1.0
    error, plain_error = (np.abs(m.coef_ - true).sum() for m in (model, plain))
    assert error < plain_error


def test_switches_choose_kernels(table):
    X, _ = table
    y = np.sin(2.0 * X[:, 0])
    model = MEDRegressor(kernels=["linear", "rbf"], inclusion=0.1, C=10.0).fit(X, y)
    assert model.inclusion_.shape == (2,)
    assert model.inclusion_[1] > model.inclusion_[0]


# Several and missing targets ------------------------------------------------------------


@pytest.mark.parametrize("model", ["linear", "rbf", "independent"])
def test_several_targets_are_trained_apart(table, model):
    X, y = table[0][:80], table[1][:80]
    Y = np.stack([y, -2.0 * y + X[:, 0]], axis=1)
    both = MEDRegressor(model).fit(X, Y)
    apart = [MEDRegressor(model).fit(X, own).predict(X) for own in Y.T]
    np.testing.assert_allclose(both.predict(X), np.stack(apart, axis=1))
    assert both.multipliers_.shape == (80, 2, 2)
    column = MEDRegressor(model).fit(X, y[:, None])
    np.testing.assert_array_equal(column.predict(X), apart[0][:, None])
    if model == "linear":
        assert both.coef_.shape == (2, X.shape[1])
        assert column.coef_.shape == (1, X.shape[1])
        assert both.intercept_.shape == (2,)


def test_rows_without_a_target_are_left_out(table):
    X, y = table[0], table[1].copy()
    y[::3] = np.nan
    Y = np.stack([y, table[1]], axis=1)
    known = ~np.isnan(y)
    expected = MEDRegressor().fit(X[known], y[known])
    found = MEDRegressor().fit(X, Y)
    np.testing.assert_allclose(found.predict(X)[:, 0], expected.predict(X))
    assert np.all(found.multipliers_[~known, 0] == 0.0)
    assert found.score(X, Y) == pytest.approx(
        np.mean(
            [
                expected.score(X[known], y[known]),
                MEDRegressor().fit(X, table[1]).score(X, table[1]),
            ]
        )
    )


def noisy_sine():
    """Rows from 0 to 10 with a target, and from 10 to 14 without."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 10, 60), rng.uniform(10, 14, 40)])
    y = np.sin(x) + 0.1 * rng.normal(size=100)
    return (x[:, None] - 7.0) / 7.0, np.where(x < 10.0, y, np.nan)


def test_transduction_keeps_extrapolations_in_range():
    X, y = noisy_sine()
    unknown = np.isnan(y)
    options = {"C": 30.0, "degree": 8, "gamma": 1.0, "tol": 1e-3}
    plain = MEDRegressor("poly", **options).fit(X, y)
    found = MEDRegressor("poly", transduction="gaussian", **options).fit(X, y)
    assert np.abs(plain.predict(X[unknown])).max() > 5.0
    assert np.abs(found.predict(X[unknown])).max() < 1.5
    assert found.score(X, y) > 0.8


def test_transduction_by_two_solvers(table):
    X, y = table[0][:60], table[1][:60].copy()
    y[::2] = np.nan
    options = {"gamma": 0.1, "transduction": "gaussian", "tol": 1e-6}
    pairs = MEDRegressor("poly", **options).fit(X, y)
    ascent = MEDRegressor("poly", solver="ascent", **options).fit(X, y)
    assert pairs.dual_value_ == pytest.approx(ascent.dual_value_, rel=1e-4)
    np.testing.assert_allclose(pairs.predict(X), ascent.predict(X), atol=2e-2)


def test_transduction_has_the_units_of_the_target(table):
    X, y = table[0][:60], table[1][:60].copy()
    y[::2] = np.nan
    unit, options = 50.0, {"transduction": "gaussian", "tol": 1e-7}
    small = MEDRegressor(C=1.0, epsilon=0.1, bias=3.0, **options).fit(X, y)
    # Weights are standard normal a priori: rows in other units go with other targets.
    large = MEDRegressor(
        C=1.0 / unit, epsilon=0.1 * unit, bias=3.0 * unit, **options
    ).fit(X * unit, y * unit)
    np.testing.assert_allclose(
        large.predict(X * unit) / unit, small.predict(X), atol=1e-3
    )


# Densities ------------------------------------------------------------------------------


def test_log_ratios_take_holes_and_categories(table):
    X, y = table
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    frame["kind"] = np.where(y > 0.0, "high", "low")
    frame.loc[::4, "c"] = np.nan
    frame.loc[1::4, "kind"] = None
    model = MEDRegressor("independent").fit(frame, y)
    assert model.score(frame, y) > 0.5
    switched = MEDRegressor("independent", inclusion=0.01).fit(frame, y)
    assert switched.inclusion_.argmax() == 4


# Around it ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": "rbf"},
        {"model": "independent"},
        {"inclusion": 0.1},
        {"kernels": ["linear", "rbf"], "inclusion": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("several", [False, True])
def test_files(table, tmp_path, options, several):
    X, y = table[0][:60], table[1][:60]
    Y = np.stack([y, y**2], axis=1) if several else y
    model = MEDRegressor(**options).fit(X, Y)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    np.testing.assert_array_equal(found.predict(X), model.predict(X))


def test_functions_are_not_saved(table, tmp_path):
    X, y = table
    model = MEDRegressor(lambda A, B: A @ B.T).fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="a model file never holds code"):
        save(model, tmp_path / "model")


def test_clones_pipelines_and_searches(table):
    X, y = table
    model = clone(MEDRegressor("rbf", C=3.0))
    assert model.get_params()["C"] == 3.0
    pipeline = make_pipeline(StandardScaler(), model)
    rival = make_pipeline(StandardScaler(), SVR(C=3.0))
    ours, theirs = (cross_val_score(m, X, y, cv=3).mean() for m in (pipeline, rival))
    assert ours > theirs - 0.02
    search = GridSearchCV(MEDRegressor(), {"epsilon": [0.1, 5.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"epsilon": 0.1}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_data_frames(table, make):
    X, y = table
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = make(dict(zip(names, X.T, strict=True)))
    model = MEDRegressor().fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), MEDRegressor().fit(X, y).predict(X))
    assert list(model.feature_names_in_) == names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "cubic"}, "model='cubic' is not valid|model='cubic'"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"C": 0.0}, "C=0.0"),
        ({"smoothness": -1.0}, "smoothness=-1.0"),
        ({"transduction": "mean_field"}, "transduction='mean_field'"),
        ({"transduction": "gaussian", "solver": "pairs"}, "does not suit transduction"),
        ({"model": "rbf", "inclusion": 0.1}, "switch the only kernel off"),
        ({"model": "independent", "transduction": "gaussian"}, "not for densities"),
        ({"model": "independent", "kernels": ["rbf"]}, "not for densities"),
        ({"model": "independent", "solver": "newton"}, "does not suit densities"),
        ({"solver": "pairs"}, "it is for a single kernel"),
        ({"model": "precomputed"}, "square kernel matrix"),
    ],
    ids=str,
)
def test_options_that_make_no_sense(table, options, message):
    X, y = table
    with pytest.raises(ValueError, match=message):
        MEDRegressor(**options).fit(X[:30], y[:30])


def test_targets_and_tables_that_make_no_sense(table):
    X, y = table[0][:20].copy(), table[1][:20]
    with pytest.raises(ValueError, match="y has no observed value"):
        MEDRegressor().fit(X, np.full(20, np.nan))
    with pytest.raises(ValueError, match="'high', which is not a number"):
        MEDRegressor().fit(X, ["high"] * 20)
    with pytest.raises(ValueError, match="requires y"):
        MEDRegressor().fit(X, None)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 3 of column 2.*MixtureRegressor"):
        MEDRegressor().fit(X, y)


def test_unfinished_training_says_so(table):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter=1"):
        MEDRegressor(max_iter=1, smoothness=0.0, tol=1e-8).fit(*table)
