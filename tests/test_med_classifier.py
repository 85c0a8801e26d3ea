"""Classification by maximum entropy discrimination: what users see."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hybridmix import MEDClassifier, MixtureImputer, load, save
from hybridmix.progress import listening

FUNCTIONS = ["linear", "rbf", "poly"]
DENSITIES = ["gaussian", "independent"]


def scaled(loader):
    X, y = loader(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer():
    return scaled(load_breast_cancer)


@pytest.fixture(scope="module")
def wine():
    return scaled(load_wine)


@pytest.fixture(scope="module")
def letters():
    """Categorical columns of which neighbours depend on each other, and two classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.integers(0, 3, (300, 5))
    for j in range(1, 5):
        follows = rng.random(300) < np.where(y == 1, 0.8, 0.2)
        X[:, j] = np.where(follows, X[:, j - 1], X[:, j])
    return np.array(list("abc"))[X], y


# Predictions ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", FUNCTIONS + DENSITIES)
def test_models_predict_unseen_rows(model, cancer, wine):
    for (X, y), least in ((cancer, 0.9), (wine, 0.93)):
        fitted = MEDClassifier(model, random_state=0).fit(X[::2], y[::2])
        assert fitted.score(X[1::2], y[1::2]) > least
        probabilities = fitted.predict_proba(X[1::2])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        np.testing.assert_allclose(
            np.exp(fitted.predict_log_proba(X[1::2])), probabilities
        )
        labels = fitted.classes_[probabilities.argmax(axis=1)]
        np.testing.assert_array_equal(labels, fitted.predict(X[1::2]))
        assert log_loss(y[1::2], probabilities) < 0.3
        assert fitted.converged_
        assert 0.0 <= fitted.dual_gap_ <= 1e-4 * max(1.0, abs(fitted.dual_value_)) * 1.01


def test_two_classes_have_one_score(cancer):
    X, y = cancer
    for model in ("linear", "independent"):
        fitted = MEDClassifier(model, calibrate=False).fit(X, y)
        scores = fitted.decision_function(X)
        assert scores.shape == (len(X),)
        np.testing.assert_array_equal(fitted.predict(X), (scores > 0).astype(int))
        expected = expit(scores)
        np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], expected, atol=1e-12)


def test_more_classes_have_a_score_each(wine):
    X, y = wine
    for options in ({}, {"multi_class": "one-vs-rest"}, {"model": "gaussian"}):
        fitted = MEDClassifier(calibrate=False, **options).fit(X, y)
        scores = fitted.decision_function(X)
        assert scores.shape == (len(X), 3)
        np.testing.assert_array_equal(fitted.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_the_support_vector_machine_is_a_limit(C, cancer):
    X, y = cancer
    for model in ("linear", "rbf"):
        ours = MEDClassifier(model, C=C, smoothness=0.0, tol=2e-5, calibrate=False)
        ours.fit(X, y)
        theirs = SVC(kernel=model, C=C, tol=1e-8, gamma="scale").fit(X, y)
        value = np.abs(theirs.dual_coef_).sum() - 0.5 * (
            theirs.dual_coef_
            @ (
                theirs.support_vectors_ @ theirs.support_vectors_.T
                if model == "linear"
                else rbf_kernel(theirs.support_vectors_, gamma=1 / (X.shape[1] * X.var()))
            )
            @ theirs.dual_coef_.T
        )
        assert ours.dual_value_ == pytest.approx(value.item(), rel=4e-5)
        same = ours.predict(X) == theirs.predict(X)
        assert same.mean() > 0.999
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=0.02
        )


@pytest.mark.parametrize("prior", ["exponential", "laplace", "gaussian"])
def test_rows_beyond_the_mean_margin_have_no_multiplier(prior, cancer):
    X, y = cancer
    fitted = MEDClassifier(margin_prior=prior, margin=2.0, tol=1e-8, calibrate=False)
    fitted.fit(X, y)
    margins = fitted.decision_function(X) * (2 * y - 1)
    assert np.all(fitted.multipliers_[margins > 2.0 + 1e-3] == 0.0)
    assert np.all(fitted.multipliers_[margins < 2.0 - 1e-3] > 0.0)
    expected = np.flatnonzero(fitted.multipliers_)
    np.testing.assert_array_equal(fitted.support_, expected)
    if prior != "gaussian":
        assert fitted.multipliers_.max() <= 1.0
    # The weights are sums of rows by their multipliers.
    coef = (fitted.multipliers_ * (2 * y - 1)) @ X
    np.testing.assert_allclose(fitted.coef_[0], coef, atol=1e-3)


def test_solvers_agree():
    X, y = make_moons(150, noise=0.25, random_state=0)
    flat = [
        MEDClassifier("rbf", solver=solver, tol=1e-6, calibrate=False).fit(X, y)
        for solver in ("pairs", "ascent")
    ]
    normal = [
        MEDClassifier("rbf", bias=1.0, solver=solver, tol=1e-5, calibrate=False)
        .fit(X, y)
        .decision_function(X)
        for solver in ("ascent", "axes", "learned")
    ]
    linear = [
        MEDClassifier(solver=solver, tol=1e-7, calibrate=False).fit(X, y)
        for solver in ("newton", "ascent")
    ]
    for first, second in (flat, linear):
        np.testing.assert_allclose(
            first.decision_function(X), second.decision_function(X), atol=5e-3
        )
    for other in normal[1:]:
        np.testing.assert_allclose(other, normal[0], atol=2e-2)


def test_precomputed_and_callable_kernels_are_the_same(cancer):
    X, y = cancer
    gamma = 0.02
    named = MEDClassifier("rbf", gamma=gamma, calibrate=False).fit(X[::2], y[::2])
    given = MEDClassifier("precomputed", calibrate=False)
    given.fit(rbf_kernel(X[::2], gamma=gamma), y[::2])
    called = MEDClassifier(lambda a, b: rbf_kernel(a, b, gamma=gamma), calibrate=False)
    called.fit(X[::2], y[::2])
    expected = named.decision_function(X[1::2])
    rows = rbf_kernel(X[1::2], X[::2], gamma=gamma)
    np.testing.assert_allclose(given.decision_function(rows), expected, atol=1e-3)
    np.testing.assert_allclose(called.decision_function(X[1::2]), expected, atol=1e-3)


def test_a_small_cache_gives_the_same_model(cancer):
    X, y = cancer
    large, small = (
        MEDClassifier("rbf", cache_size=size, calibrate=False).fit(X, y)
        for size in (200.0, 0.05)
    )
    np.testing.assert_allclose(
        large.decision_function(X), small.decision_function(X), atol=1e-3
    )


def test_sparse_tables(cancer):
    X, y = cancer
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    for options in ({}, {"inclusion": 0.1, "bias": 1.0}, {"multi_class": "one-vs-rest"}):
        dense = MEDClassifier(tol=1e-8, calibrate=False, **options).fit(X, y)
        held = MEDClassifier(tol=1e-8, calibrate=False, **options)
        held.fit(sparse.csr_matrix(X), y)
        np.testing.assert_allclose(
            held.decision_function(sparse.csc_array(X)),
            dense.decision_function(X),
            atol=1e-3,
        )
    with pytest.raises(TypeError, match="X is sparse"):
        MEDClassifier("rbf").fit(sparse.csr_array(X), y)


# Switches -------------------------------------------------------------------------------


def test_switches_find_the_columns_that_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 400))
    y = X[:, :5].sum(axis=1) > 0
    fitted = MEDClassifier(inclusion=1e-3, margin=10.0, C=0.3, calibrate=False).fit(X, y)
    assert set(np.argsort(-fitted.inclusion_)[:5]) == set(range(5))
    assert fitted.inclusion_.shape == (400,)
    assert np.all((fitted.inclusion_ >= 0.0) & (fitted.inclusion_ <= 1.0))
    plain = MEDClassifier(inclusion=1.0, calibrate=False).fit(X, y)
    assert not hasattr(plain, "inclusion_")


def test_switches_of_kernels_leave_useless_ones_out():
    X, y = make_moons(200, noise=0.15, random_state=0)
    fitted = MEDClassifier(
        kernels=["linear", "rbf", lambda a, b: np.outer(a[:, 0] * 0, b[:, 0])],
        inclusion=0.1,
        gamma=1.0,
        calibrate=False,
    ).fit(X, y)
    assert fitted.inclusion_[1] > 0.8
    assert fitted.inclusion_[2] == pytest.approx(0.1)
    assert fitted.score(X, y) > 0.95


@pytest.mark.parametrize("model", ["independent", "poisson"])
def test_switches_of_densities(model):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.poisson(3.0, (200, 6)).astype(float)
    X[:, 0] = rng.poisson(np.where(y == 1, 12.0, 3.0))
    fitted = MEDClassifier(
        model, inclusion=0.05, prior="flat", margin=3.0, calibrate=False
    ).fit(X, y)
    assert fitted.inclusion_.argmax() == 0
    assert fitted.score(X, y) > 0.9


# Densities ------------------------------------------------------------------------------


def test_independent_columns_leave_holes_out(wine):
    X, y = wine
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X).add_prefix("x")
    frame["kind"] = np.where(X[:, 0] > 0, "large", "small")
    holes = rng.random(frame.shape) < 0.3
    frame = frame.mask(holes)
    fitted = MEDClassifier("independent", random_state=0).fit(frame[::2], y[::2])
    assert fitted.score(frame[1::2], y[1::2]) > 0.85
    # A row without any value has the biases alone.
    empty = frame[:1].astype(object).mask(np.ones((1, frame.shape[1]), dtype=bool))
    np.testing.assert_allclose(fitted.decision_function(empty)[0], fitted.intercept_)


def test_prediction_from_pandas_and_polars(wine):
    X, y = wine
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    frame["kind"] = np.where(X[:, 5] > 0, "large", "small")
    fitted = MEDClassifier("independent", calibrate=False).fit(frame, y)
    assert list(fitted.feature_names_in_) == ["a", "b", "c", "d", "kind"]
    other = fitted.decision_function(pl.from_pandas(frame))
    np.testing.assert_array_equal(other, fitted.decision_function(frame))
    numbers = MEDClassifier(calibrate=False).fit(frame[list("abcd")], y)
    scores = numbers.decision_function(pl.from_pandas(frame[list("abcd")]))
    np.testing.assert_allclose(scores, numbers.decision_function(frame[list("abcd")]))


def test_trees_learn_which_columns_depend_on_each_other(letters):
    X, y = letters
    tree = MEDClassifier("tree", random_state=0).fit(X[::2], y[::2])
    naive = MEDClassifier("independent", random_state=0).fit(X[::2], y[::2])
    assert tree.score(X[1::2], y[1::2]) > naive.score(X[1::2], y[1::2]) + 0.1
    edges = tree.edge_probabilities_
    assert edges.shape == (2, 5, 5)
    np.testing.assert_allclose(edges.sum(axis=(1, 2)), 2 * 4)
    assert np.all(edges[1][np.arange(4), np.arange(1, 5)] > 0.9)


def test_without_multipliers_densities_are_bayesian(letters):
    X, y = letters
    fitted = MEDClassifier("independent", C=1e-9, calibrate=False).fit(X, y)
    codes = (X[:, :, None] == np.array(list("abc"))).argmax(axis=2)
    bayes = CategoricalNB(alpha=1.0).fit(codes, y)
    same = fitted.predict(X) == bayes.predict(codes)
    assert same.mean() > 0.97


@pytest.mark.parametrize("model", ["poisson", "multinomial"])
def test_counts(model):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    rates = np.array([[1.0, 2.0, 6.0], [6.0, 1.0, 2.0], [2.0, 6.0, 1.0]])
    X = rng.poisson(rates[y])
    fitted = MEDClassifier(model, random_state=0).fit(X[::2], y[::2])
    assert fitted.score(X[1::2], y[1::2]) > 0.8
    with pytest.raises(ValueError, match="Negative values in data"):
        MEDClassifier(model).fit(X - 3, y)


# Rows without a label, weights ----------------------------------------------------------


@pytest.mark.parametrize("transduction", ["gaussian", "mean_field"])
@pytest.mark.parametrize("model", ["linear", "rbf"])
def test_unlabelled_rows(transduction, model):
    errors = {None: [], transduction: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = np.arange(200) % 2
        X = rng.normal(size=(200, 5)) + 3.0 * y[:, None] * (np.arange(5) == 0)
        partly = np.where(np.arange(200) < 6, y, -1)
        for kind, found in errors.items():
            fitted = MEDClassifier(
                model, transduction=kind, calibrate=False, gamma=0.1
            ).fit(X, partly)
            found.append(np.mean(fitted.predict(X) != y))
    gain = np.mean(errors[None]) - np.mean(errors[transduction])
    assert gain > (0.03 if transduction == "mean_field" else -0.005)


def test_unlabelled_rows_are_left_out_by_default(cancer):
    X, y = cancer
    partly = np.where(np.arange(len(y)) % 2, y, -1)
    part = MEDClassifier(calibrate=False).fit(X, partly)
    alone = MEDClassifier(calibrate=False).fit(X[1::2], y[1::2])
    np.testing.assert_allclose(part.coef_, alone.coef_)
    assert np.all(part.multipliers_[::2] == 0.0)
    assert len(part.multipliers_) == len(X)


def test_transduction_with_more_classes_is_one_versus_rest(wine):
    X, y = wine
    partly = np.where(np.arange(len(y)) % 4 == 0, y, -1)
    with pytest.raises(ValueError, match="needs multi_class='one-vs-rest'"):
        MEDClassifier(transduction="mean_field").fit(X, partly)
    fitted = MEDClassifier(
        transduction="mean_field", multi_class="one-vs-rest", calibrate=False
    ).fit(X, partly)
    assert fitted.score(X, y) > 0.9


@pytest.mark.parametrize(
    "options",
    [{}, {"model": "rbf"}, {"inclusion": 0.2}, {"model": "independent"}],
    ids=str,
)
@pytest.mark.parametrize("loader", [load_breast_cancer, load_wine])
def test_a_weight_of_two_is_two_rows(options, loader):
    X, y = scaled(loader)
    X, y = X[::3], y[::3]
    weights = np.arange(len(y)) % 3
    repeated = np.repeat(np.arange(len(y)), weights)
    one, two = (
        MEDClassifier(tol=1e-8, max_iter=5000, calibrate=False, **options)
        for _ in range(2)
    )
    one.fit(X, y, sample_weight=weights)
    two.fit(X[repeated], y[repeated])
    np.testing.assert_allclose(
        one.decision_function(X), two.decision_function(X), atol=2e-3, rtol=1e-3
    )


def test_class_weights_move_the_boundary(cancer):
    X, y = cancer
    share = [
        np.mean(MEDClassifier(C=0.01, class_weight=w).fit(X, y).predict(X) == 0)
        for w in (None, {0: 20.0, 1: 1.0})
    ]
    assert share[1] > share[0]


# What is published ----------------------------------------------------------------------


def test_attributes(wine, cancer):
    X, y = wine
    joint = MEDClassifier(calibrate=False).fit(X, y)
    assert joint.coef_.shape == (3, X.shape[1])
    assert joint.intercept_.sum() == pytest.approx(0.0, abs=1e-12)
    assert joint.multipliers_.shape == (len(X), 3)
    assert np.all(joint.multipliers_[np.arange(len(y)), y] == 0.0)
    assert not hasattr(joint, "bounds_")
    apart = MEDClassifier(multi_class="one-vs-rest", calibrate=False).fit(X, y)
    assert apart.coef_.shape == (3, X.shape[1])
    X, y = cancer
    bounds = MEDClassifier(calibrate=False).fit(X, y).bounds_
    assert 0.0 < bounds.sparsity < bounds.pac_bayes
    assert np.isfinite(bounds.vc)
    assert np.isnan(MEDClassifier("rbf", calibrate=False).fit(X, y).bounds_.vc)


def test_calibration_is_about_unseen_rows(cancer):
    X, y = cancer
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(y)) < 0.2, 1 - y, y)
    losses = [
        log_loss(
            noisy[1::2],
            MEDClassifier(C=10.0, margin=5.0, calibrate=flag, random_state=0)
            .fit(X[::2], noisy[::2])
            .predict_proba(X[1::2]),
        )
        for flag in (False, True)
    ]
    assert losses[1] < losses[0]


def test_refits_forget(wine, cancer):
    model = MEDClassifier(inclusion=0.1, calibrate=False).fit(*cancer)
    model.set_params(inclusion=1.0).fit(*wine)
    assert not hasattr(model, "inclusion_")
    assert not hasattr(model, "bounds_")
    before = dict(vars(model))
    with pytest.raises(ValueError, match="C=-1"):
        model.set_params(C=-1).fit(*cancer)
    assert {k: v for k, v in vars(model).items() if k != "C"} == {
        k: v for k, v in before.items() if k != "C"
    }


# Tools of scikit-learn ------------------------------------------------------------------


def test_search_pipeline_and_clone(cancer):
    X, y = cancer
    search = GridSearchCV(
        make_pipeline(StandardScaler(), MEDClassifier(calibrate=False)),
        {"medclassifier__C": [0.01, 1.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.95
    holes = X.copy()
    holes[::7, 3] = np.nan
    imputed = make_pipeline(
        MixtureImputer(2, covariance_type="diag", random_state=0), MEDClassifier()
    )
    assert cross_val_score(imputed, holes, y, cv=3).min() > 0.9
    model = MEDClassifier("rbf", kernels=None, gamma=0.1)
    assert clone(model).get_params() == model.get_params()
    # A precomputed kernel is cut in both directions.
    kernel = rbf_kernel(X, gamma=0.02)
    scores = cross_val_score(MEDClassifier("precomputed"), kernel, y, cv=3)
    assert scores.min() > 0.9


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": "rbf"},
        {"model": "poly", "multi_class": "one-vs-rest"},
        {"multi_class": "one-vs-rest"},
        {"inclusion": 0.2},
        {"kernels": ["rbf", "linear"], "inclusion": 0.5},
        {"model": "gaussian"},
        {"model": "independent", "inclusion": 0.5},
        {"model": "precomputed"},
    ],
    ids=str,
)
@pytest.mark.parametrize("loader", [load_breast_cancer, load_iris])
def test_saved_models_predict_the_same(options, loader, tmp_path):
    X, y = scaled(loader)
    X, y = X[::3], y[::3]
    if options.get("model") == "precomputed":
        X = X @ X.T
    model = MEDClassifier(calibrate=False, **options).fit(X, y)
    save(model, tmp_path / "model.hmx")
    again = load(tmp_path / "model.hmx")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert set(vars(again)) == set(vars(model))


def test_trees_are_saved(letters, tmp_path):
    X, y = letters
    model = MEDClassifier("tree", calibrate=False).fit(X, y)
    save(model, tmp_path / "model.hmx")
    np.testing.assert_array_equal(
        load(tmp_path / "model.hmx").decision_function(X), model.decision_function(X)
    )


def test_a_function_is_not_saved(tmp_path):
    X, y = make_moons(50, random_state=0)
    for options in ({"model": rbf_kernel}, {"kernels": ["rbf", rbf_kernel]}):
        model = MEDClassifier(calibrate=False, **options).fit(X, y)
        with pytest.raises(ValueError, match="a model file never holds code"):
            save(model, tmp_path / "model.hmx")
    assert not list(tmp_path.iterdir())


# Refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "cubic"}, "model='cubic' is not one of linear, rbf"),
        ({"C": 0}, "C=0 is not valid"),
        ({"margin": 0}, "margin=0 is not valid"),
        ({"smoothness": -1}, "smoothness=-1 is not valid"),
        ({"margin_prior": "normal"}, "margin_prior='normal' is not one of"),
        ({"margin_prior": "gaussian", "smoothness": 0}, "smoothness=0 is not valid"),
        ({"bias": "none"}, "bias='none' is neither a number nor 'flat'"),
        ({"inclusion": 0}, "inclusion=0 is not valid"),
        ({"inclusion": 2}, "at most 1"),
        ({"model": "rbf", "inclusion": 0.5}, "would switch the only kernel off"),
        ({"kernels": "rbf"}, "must be a list of kernels"),
        ({"kernels": []}, "must be a list of kernels"),
        ({"kernels": ["sine"]}, "kernels='sine' is not one of"),
        ({"kernels": ["rbf"], "model": "precomputed"}, "cannot be combined"),
        ({"solver": "simplex"}, "solver='simplex' is not one of"),
        ({"solver": "pairs"}, "solver='pairs' does not suit this problem"),
        (
            {"solver": "axes", "model": "rbf"},
            "Use solver='auto', or one of pairs, ascent",
        ),
        ({"multi_class": "ovo"}, "multi_class='ovo' is not one of"),
        ({"transduction": "svm"}, "transduction='svm' is not one of"),
        ({"model": "gaussian", "transduction": "gaussian"}, "not for densities"),
        ({"model": "gaussian", "kernels": ["rbf"]}, "not for densities"),
        ({"model": "gaussian", "inclusion": 0.1}, "columns that are independent"),
        ({"model": "independent", "solver": "newton"}, "does not suit densities"),
        ({"prior": "jeffreys"}, "prior='jeffreys' is not one of"),
        ({"unlabelled": [1, 2]}, "must be a single mark"),
        ({"calibrate": "yes"}, "must be True or False"),
        ({"gamma": "auto"}, "gamma='auto' is neither a number nor 'scale'"),
    ],
    ids=str,
)
def test_options_are_refused(options, message, cancer):
    with pytest.raises(ValueError, match=re.escape(message)):
        MEDClassifier(**options).fit(*cancer)


def test_tables_are_refused(cancer):
    X, y = cancer
    frame = pd.DataFrame(X).add_prefix("x")
    frame.iloc[3, 2] = np.nan
    for options in ({}, {"model": "rbf"}):
        with pytest.raises(ValueError, match=r"row 3 of column 'x2'.*MixtureImputer"):
            MEDClassifier(**options).fit(frame, y)
    for table in (frame, frame.to_numpy()):
        with pytest.raises(ValueError, match=r"contains NaN.*row 3 of.*independent"):
            MEDClassifier("gaussian").fit(table, y)
    with pytest.raises(ValueError, match="contains infinity"):
        MEDClassifier().fit(np.where(np.isnan(frame), np.inf, frame), y)
    with pytest.raises(ValueError, match="only one class, 1"):
        MEDClassifier().fit(X, np.ones(len(y), dtype=int))
    with pytest.raises(ValueError, match="The class 0 has no row of positive weight"):
        MEDClassifier().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="needs the square kernel matrix"):
        MEDClassifier("precomputed").fit(X, y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        MEDClassifier().fit(X, None)
    with pytest.raises(NotFittedError):
        MEDClassifier().predict(X)
    with pytest.raises(ValueError, match="needs a dense table"):
        MEDClassifier(transduction="gaussian").fit(sparse.csr_array(X), y)
    mixed = frame.assign(kind="a").fillna(0.0)
    with pytest.raises(ValueError, match="Column 'kind' holds 'a' in row 0, which"):
        MEDClassifier().fit(mixed, y)


def test_a_short_training_warns(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match=r"gap of .* between primal and dual"):
        model = MEDClassifier(max_iter=1, calibrate=False, tol=1e-8).fit(X, y)
    assert not model.converged_
    assert model.dual_gap_ > 0.0
    assert np.isfinite(model.decision_function(X)).all()


def test_progress_is_announced(cancer):
    steps = []
    with listening(steps.append):
        MEDClassifier("independent", calibrate=False).fit(*cancer)
    assert {step.task for step in steps} == {"multipliers"}
    assert "gap" in steps[-1].note


def test_text_in_a_table_is_named():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "sex": ["F", "M", "F", "M"]})
    with pytest.raises(ValueError, match=r"Column 'sex' holds 'F' in row 0.*OneHotEnc"):
        MEDClassifier().fit(frame, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="Column 1 holds 'F' in row 0"):
        MEDClassifier().fit(frame.to_numpy(), [0, 1, 0, 1])
