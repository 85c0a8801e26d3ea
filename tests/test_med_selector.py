"""Feature selection by switches."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from model_files import assert_same
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from hybridmix import MEDClassifier, MEDFeatureSelector, load, save
from hybridmix.training.switches import usual_bound


def wide_rows(seed=0, n=100, p=300, k=4, n_classes=2):
    """Rows whose first k columns decide about the label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if n_classes == 2:
        scores = X[:, :k] @ np.where(np.arange(k) % 2, -1.5, 1.5)
        return X, (scores + 0.5 * rng.normal(size=n) > 0).astype(int)
    scores = 1.5 * X[:, :k] @ rng.normal(size=(k, n_classes))
    return X, scores.argmax(axis=1)


@pytest.fixture(scope="module")
def fitted():
    return MEDFeatureSelector().fit(*wide_rows())


def test_relevant_columns_come_first(fitted):
    relevant = np.arange(300) < 4
    assert roc_auc_score(relevant, fitted.scores_) > 0.98
    np.testing.assert_array_equal(np.sort(fitted.ranking_), np.arange(1, 301))
    assert fitted.ranking_[np.argmax(fitted.scores_)] == 1
    assert fitted.get_support()[:4].sum() >= 3
    assert fitted.get_support().sum() < 20
    assert fitted.converged_
    assert fitted.task_ == "classify"


def test_inclusions_never_contradict_scores(fitted):
    order = np.argsort(fitted.scores_)
    assert np.all(np.diff(fitted.inclusion_[order]) >= 0.0)


def test_it_is_the_classifier_with_switches():
    X, y = wide_rows()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    selector = MEDFeatureSelector(C=0.3, margin=10.0, tol=1e-8).fit(X, y)
    classifier = MEDClassifier(
        inclusion=1e-3, C=0.3, margin=10.0, tol=1e-8, calibrate=False
    ).fit(X, y)
    np.testing.assert_allclose(selector.inclusion_, classifier.inclusion_, atol=1e-4)
    np.testing.assert_allclose(selector.coef_, classifier.coef_, atol=1e-3)
    np.testing.assert_allclose(selector.intercept_, classifier.intercept_, atol=1e-3)


def test_units_do_not_matter():
    X, y = wide_rows()
    factors = np.geomspace(1e-6, 1e6, X.shape[1])
    plain = MEDFeatureSelector(tol=1e-8).fit(X, y)
    scaled = MEDFeatureSelector(tol=1e-8).fit(3.0 * factors + factors * X, y)
    np.testing.assert_allclose(scaled.scores_, plain.scores_, atol=1e-4)
    np.testing.assert_allclose(scaled.coef_ * factors, plain.coef_, atol=1e-4)
    raw = MEDFeatureSelector(standardise=False).fit(factors**0.1 * X, y)
    assert not np.allclose(raw.scores_, plain.scores_, atol=0.1)


def test_the_number_of_columns_to_keep():
    X, y = wide_rows()
    assert MEDFeatureSelector(n_features_to_select=7).fit(X, y).get_support().sum() == 7
    assert MEDFeatureSelector(n_features_to_select=0.1).fit(X, y).transform(X).shape == (
        100,
        30,
    )
    some = MEDFeatureSelector(threshold=0.9).fit(X, y)
    np.testing.assert_array_equal(some.get_support(), some.inclusion_ > 0.9)
    none = MEDFeatureSelector(C=1e-6).fit(X, y)
    assert none.inclusion_.max() < 0.1
    np.testing.assert_array_equal(
        none.get_support(indices=True), [np.argmax(none.scores_)]
    )
    few = MEDFeatureSelector(n_features_to_select=1e-9).fit(X, y)
    np.testing.assert_array_equal(few.get_support(indices=True), [np.argmax(few.scores_)])


def test_the_number_may_change_after_training(fitted):
    changed = clone(fitted).set_params(n_features_to_select=3)
    changed.__dict__.update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
    assert changed.get_support().sum() == 3


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
def test_names_and_frames(container):
    X, y = wide_rows()
    names = [f"gene {j}" for j in range(X.shape[1])]
    frame = container(dict(zip(names, X.T, strict=True)))
    selector = MEDFeatureSelector(n_features_to_select=4).fit(frame, y)
    kept = selector.get_feature_names_out()
    assert set(kept) >= {"gene 0", "gene 1", "gene 3"}
    output = "pandas" if container is pd.DataFrame else "polars"
    out = selector.set_output(transform=output).transform(frame)
    assert isinstance(out, container)
    assert list(out.columns) == list(kept)
    np.testing.assert_array_equal(out[kept[0]], frame[kept[0]])


def test_inverse_transform(fitted):
    X, _ = wide_rows()
    kept = fitted.get_support()
    back = fitted.inverse_transform(fitted.transform(X))
    np.testing.assert_array_equal(back[:, kept], X[:, kept])
    assert not back[:, ~kept].any()


def test_sparse_rows_give_the_same():
    X, y = wide_rows()
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    dense = MEDFeatureSelector(tol=1e-8).fit(X, y)
    thin = MEDFeatureSelector(tol=1e-8).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.scores_, dense.scores_, atol=1e-3)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-3)
    np.testing.assert_allclose(thin.intercept_, dense.intercept_, atol=1e-2)
    assert sparse.issparse(thin.transform(sparse.csr_array(X)))


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_a_weight_of_two_is_two_rows(task):
    X, y = wide_rows(n=40, p=30)
    weights = np.arange(40) % 3
    y = y if task == "classify" else X[:, 0] + 0.1 * X[:, 1]
    selector = MEDFeatureSelector(task=task, tol=1e-9)
    weighted = clone(selector).fit(X, y, sample_weight=weights)
    repeated = clone(selector).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.scores_, repeated.scores_, atol=1e-4)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_constant_columns_keep_their_prior():
    X, y = wide_rows(p=20)
    X[:, 5], X[:, 6] = 1e9 / 3, 0.0
    selector = MEDFeatureSelector().fit(X, y)
    np.testing.assert_allclose(selector.inclusion_[5:7], 1e-3)
    np.testing.assert_array_equal(selector.scores_[5:7], 0.0)
    thin = MEDFeatureSelector().fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.inclusion_[5:7], 1e-3, atol=1e-4)


# Targets --------------------------------------------------------------------------------


def test_real_targets():
    X, _ = wide_rows()
    y = 100.0 + 5.0 * X[:, 2] - 5.0 * X[:, 8] + np.random.default_rng(1).normal(size=100)
    selector = MEDFeatureSelector(n_features_to_select=2).fit(X, y)
    assert selector.task_ == "regress"
    assert not hasattr(selector, "classes_")
    np.testing.assert_array_equal(selector.get_support(indices=True), [2, 8])
    predicted = X @ selector.coef_[0] + selector.intercept_[0]
    assert np.corrcoef(predicted, y)[0, 1] > 0.95
    assert predicted.mean() == pytest.approx(y.mean(), abs=1.0)


def test_targets_in_other_units_give_the_same():
    X, y = load_diabetes(return_X_y=True)
    one = MEDFeatureSelector(tol=1e-8).fit(X, y)
    other = MEDFeatureSelector(tol=1e-8).fit(X, 1e-3 * y - 7.0)
    np.testing.assert_allclose(other.scores_, one.scores_, atol=1e-4)
    np.testing.assert_allclose(other.coef_, 1e-3 * one.coef_, rtol=1e-3, atol=1e-5)


def test_whole_numbers_with_many_values_are_real_targets():
    X, y = load_diabetes(return_X_y=True)
    assert np.all(y == np.round(y))
    assert MEDFeatureSelector().fit(X, y).task_ == "regress"
    assert MEDFeatureSelector().fit(X, np.digitize(y, [150.0])).task_ == "classify"
    few = MEDFeatureSelector(task="regress").fit(X, np.digitize(y, [100.0, 200.0]))
    assert few.task_ == "regress"


def test_a_constant_target_includes_nothing():
    X, _ = wide_rows()
    selector = MEDFeatureSelector(task="regress").fit(X, np.full(len(X), 3.0))
    assert not selector.scores_.any()
    assert selector.intercept_[0] == pytest.approx(3.0)


def test_classes_share_switches():
    X, y = wide_rows(n=400, n_classes=3)
    labels = np.array(["low", "middle", "high"])[y]
    selector = MEDFeatureSelector(n_features_to_select=4).fit(X, labels)
    assert selector.coef_.shape == (3, 300)
    assert selector.inclusion_.shape == (300,)
    np.testing.assert_array_equal(selector.classes_, ["high", "low", "middle"])
    np.testing.assert_array_equal(selector.get_support(indices=True), range(4))
    lengths = np.linalg.norm(selector.coef_ * X.std(axis=0), axis=0)
    np.testing.assert_allclose(selector.scores_, lengths, atol=1e-9)


def test_in_a_pipeline():
    X, y = wide_rows(n=200)
    both = make_pipeline(MEDFeatureSelector(), LogisticRegression())
    alone = LogisticRegression().fit(X[:100], y[:100]).score(X[100:], y[100:])
    assert both.fit(X[:100], y[:100]).score(X[100:], y[100:]) > alone + 0.1


def test_without_switches_everything_is_included():
    X, y = load_iris(return_X_y=True)
    selector = MEDFeatureSelector(inclusion=1.0).fit(X, y)
    np.testing.assert_array_equal(selector.inclusion_, 1.0)
    assert selector.get_support().all()


def test_the_usual_bound():
    assert usual_bound(1e-3, 200.0) == pytest.approx(0.263, abs=1e-3)
    assert usual_bound(1.0, 100.0) == 0.1


# Files and errors -----------------------------------------------------------------------


def test_save_and_load(tmp_path, fitted):
    save(fitted, tmp_path / "selector.hmx")
    again = load(tmp_path / "selector.hmx")
    assert_same(again, fitted)
    X, _ = wide_rows()
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coef_", np.zeros((1, 300))),
        ("intercept_", np.zeros(1)),
        ("ranking_", np.zeros(300, dtype=int)),
        ("inclusion_", np.full(300, np.nan)),
        ("scores_", np.zeros(3)),
        ("task_", "auto"),
        ("classes_", np.arange(3)),
    ],
)
def test_parts_that_do_not_fit_are_refused(fitted, name, value):
    broken = clone(fitted)
    broken.__dict__ = {**vars(fitted), name: value}
    with pytest.raises(ValueError, match="do not fit together"):
        broken.check_consistent()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features_to_select": 301}, "more than the 300 columns"),
        ({"n_features_to_select": 0}, "n_features_to_select=0"),
        ({"n_features_to_select": 1.5}, r"n_features_to_select=1\.5"),
        ({"n_features_to_select": 2, "threshold": 0.1}, "give one of them"),
        ({"threshold": 2.0}, "threshold"),
        ({"task": "rank"}, "task='rank'"),
        ({"inclusion": 0.0}, "inclusion"),
        ({"C": "large"}, "C='large'"),
        ({"margin": 0.0}, "margin"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"standardise": "yes"}, "standardise"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        MEDFeatureSelector(**options).fit(*wide_rows())


def test_targets_that_make_no_sense():
    X, y = wide_rows()
    with pytest.raises(ValueError, match="only one class, 1"):
        MEDFeatureSelector().fit(X, np.ones(len(X), dtype=int))
    with pytest.raises(ValueError, match="class 1 has no row of positive weight"):
        MEDFeatureSelector().fit(X, y, sample_weight=1.0 - y)
    with pytest.raises(ValueError, match="several targets per row"):
        MEDFeatureSelector().fit(X, X[:, :2])
    with pytest.raises(ValueError, match="contains NaN"):
        MEDFeatureSelector(task="regress").fit(X, np.where(y == 1, np.nan, 0.5))
    with pytest.raises(ValueError, match="row 0 has no label"):
        MEDFeatureSelector().fit(X, np.array([None, *y[1:]], dtype=object))
    with pytest.raises(ValueError, match="requires y"):
        MEDFeatureSelector().fit(X, None)


def test_holes_name_the_way_out():
    X, y = wide_rows()
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"row 3 of column 5\. .*MixtureImputer"):
        MEDFeatureSelector().fit(X, y)


def test_too_few_iterations_are_told():
    X, y = wide_rows()
    with pytest.warns(UserWarning, match="Raise max_iter=1"):
        MEDFeatureSelector(max_iter=1).fit(X, y)


def test_a_refused_fit_leaves_the_old_one(fitted):
    before = dict(vars(fitted))
    with pytest.raises(ValueError, match="only one class"):
        fitted.fit(wide_rows()[0], np.zeros(100, dtype=int))
    assert_same(vars(fitted), before)
