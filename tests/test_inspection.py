"""What is known when columns or cells are hidden."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier, plain_regressor
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, root_mean_squared_error

from hybridmix import (
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureOutlierDetector,
)
from hybridmix.inspection import (
    TargetImportance,
    feature_importance,
    missing_feature_curve,
)
from hybridmix.progress import announce, listening


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X.iloc[:, :5], y


@pytest.fixture(scope="module")
def classifier(wine):
    return plain_classifier(random_state=0).fit(*wine)


def test_hidden_columns_are_those_of_a_model_without_them(wine):
    """By the likelihood, marginalising a column equals never having had it."""
    X, y = wine
    options = {"objective": "likelihood", "covariance_prior": 0.0}
    model = plain_classifier(**options).fit(X, y)
    importance = feature_importance(model, X, y)
    for j, name in enumerate(X):
        for part, found in (
            (X.drop(columns=name), importance.hidden_log_loss),
            (X[[name]], importance.alone_log_loss),
        ):
            smaller = plain_classifier(**options).fit(part, y)
            expected = log_loss(y, smaller.predict_proba(part))
            assert found[j] == pytest.approx(expected, rel=1e-6)


def test_importance_of_all_kinds_of_tables(wine, classifier):
    X, y = wine
    importance = feature_importance(classifier, X, y)
    assert importance.names == tuple(X.columns)
    assert importance.accuracy == classifier.score(X, y)
    increase = importance.loss_increase[importance.order]
    assert np.all(np.diff(increase) <= 0)
    polar = feature_importance(classifier, pl.from_pandas(X), y)
    np.testing.assert_allclose(polar.hidden_log_loss, importance.hidden_log_loss)
    plain = plain_classifier(random_state=0).fit(X.to_numpy(), y)
    array = feature_importance(plain, X.to_numpy().tolist(), y)
    assert array.names == tuple("01234")
    np.testing.assert_allclose(array.alone_accuracy, importance.alone_accuracy)
    assert X.columns[importance.order[0]] in str(importance).splitlines()[2]


def test_importance_leaves_unlabelled_rows_out(wine, classifier):
    X, y = wine
    few = y.where(np.arange(len(y)) % 2 == 0, -1)
    halved = feature_importance(classifier, X[::2], y[::2])
    marked = feature_importance(classifier, X, few)
    np.testing.assert_array_equal(marked.hidden_log_loss, halved.hidden_log_loss)
    with pytest.raises(ValueError, match="no label"):
        feature_importance(classifier, X, np.full(len(y), -1))


def test_importance_of_categories_and_of_searches():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = pd.DataFrame({"noise": rng.normal(size=120), "told": np.where(y, "yes", "no")})
    search = HybridMixtureClassifierCV(covariance_type="diag", n_components=1, cv=2)
    importance = feature_importance(search.fit(X, y), X, y)
    assert importance.order[0] == 1
    assert importance.hidden_accuracy[1] < 0.7 < importance.alone_accuracy[1]


def test_importance_needs_a_mixture(wine):
    other = HistGradientBoostingClassifier(max_iter=2).fit(*wine)
    with pytest.raises(TypeError, match="HistGradientBoostingClassifier cannot"):
        feature_importance(other, *wine)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:, :4], y


def test_columns_hidden_from_a_regressor(diabetes):
    """By the likelihood, marginalising a column equals never having had it."""
    X, y = diabetes
    model = plain_regressor().fit(X, y)
    importance = feature_importance(model, X, y)
    assert isinstance(importance, TargetImportance)
    assert importance.names == tuple(X.columns)
    for j, name in enumerate(X):
        for part, errors, densities in (
            (X.drop(columns=name), importance.hidden_rmse, importance.hidden_log_density),
            (X[[name]], importance.alone_rmse, importance.alone_log_density),
        ):
            smaller = plain_regressor().fit(part, y)
            rmse = root_mean_squared_error(y, smaller.predict(part))
            assert errors[j] == pytest.approx(rmse, rel=1e-6)
            density = smaller.log_predictive_density(part, y).mean()
            assert densities[j] == pytest.approx(density, rel=1e-6)
    assert X.columns[importance.order[0]] == "bmi"
    assert np.all(np.diff(importance.loss_increase[importance.order]) <= 0)
    lines = str(importance).splitlines()
    assert lines[0].startswith("all columns: RMSE")
    assert lines[2].startswith("bmi")


def test_importance_leaves_rows_without_a_target_out(diabetes):
    X, y = diabetes
    model = plain_regressor().fit(X, y)
    halved = feature_importance(model, X[::2], y[::2])
    holes = feature_importance(model, X, y.where(np.arange(len(y)) % 2 == 0))
    np.testing.assert_allclose(holes.hidden_rmse, halved.hidden_rmse)
    with pytest.raises(ValueError, match="no target"):
        feature_importance(model, X, np.full(len(y), np.nan))
    several = plain_regressor().fit(X, np.column_stack([y, y**2]))
    with pytest.raises(ValueError, match="2 targets"):
        feature_importance(several, X, np.column_stack([y, y**2]))


def test_curve_of_a_regressor(diabetes):
    X, y = diabetes
    model = plain_regressor().fit(X, y)
    curve = missing_feature_curve(model, X, y, rates=[0, 0.5, 1], random_state=0)
    assert curve.metric == "r2"
    assert np.all(curve.scores[0] == model.score(X, y))
    assert np.all(np.diff(curve.mean) < 0)
    assert curve.mean[-1] == pytest.approx(0.0, abs=1e-9)


def test_curve_falls_and_repeats(wine, classifier):
    X, y = wine
    curve = missing_feature_curve(classifier, X, y, rates=[0, 0.5, 1], random_state=0)
    assert np.all(curve.scores[0] == classifier.score(X, y))
    assert np.all(curve.scores[-1] == np.mean(y == 1))  # the most frequent class
    assert np.all(np.diff(curve.mean) < 0)
    assert curve.deviation.shape == (3,)
    for table in (pl.from_pandas(X), X):
        again = missing_feature_curve(
            classifier, table, y, rates=[0, 0.5, 1], random_state=0
        )
        np.testing.assert_array_equal(again.scores, curve.scores)


def test_curve_of_other_classifiers_and_scores():
    X, y = load_iris(return_X_y=True)
    booster = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    curve = missing_feature_curve(
        booster, X, y, rates=[0.2], n_repeats=1, scoring="neg_log_loss"
    )
    assert curve.metric == "neg_log_loss"
    assert curve.scores[0, 0] < 0
    with pytest.raises(ValueError, match="rates"):
        missing_feature_curve(booster, X, y, rates=[1.5])


# Typicality --------------------------------------------------------------------------


def test_typicality_is_a_probability(wine, classifier):
    """A row of the model itself is below log q with probability of about q."""
    for model in (
        classifier,
        MixtureDensity(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        ).fit(wine[0]),
    ):
        rows = model.sample(4000, random_state=0)[0]
        shares = np.exp(model.typicality(rows))
        for level in (0.01, 0.1, 0.5):
            assert np.mean(shares < level) == pytest.approx(level, rel=0.3)


def test_typicality_is_the_score_of_the_detector(wine):
    detector = MixtureOutlierDetector(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(wine[0])
    np.testing.assert_array_equal(
        detector.typicality(wine[0]), detector.score_samples(wine[0])
    )


@pytest.mark.parametrize("share", [0.0, 0.0002, 0.01, 0.5])
def test_the_most_common_row_is_typical(share):
    """However rare the other category is, or however equal the two are."""
    n_rare = round(10_000 * share)
    words = np.array(["rare"] * n_rare + ["common"] * (10_000 - n_rare), dtype=object)
    X = np.column_stack([words, words[::-1]])
    typicality = (
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0)
        .fit(X)
        .typicality(X[len(X) // 2 :: 1000])
    )
    np.testing.assert_allclose(typicality, 0.0, atol=1e-6)
    if 0 < share < 0.01:
        assert MixtureDensity(
            n_components=1, covariance_type="full", covariance_prior=1.0
        ).fit(X).typicality(X[:1]) < np.log(0.01)


# Progress ----------------------------------------------------------------------------


def test_listeners_hear_of_fits(wine):
    steps = []
    with listening(steps.append):
        plain_classifier(n_steps=5).fit(*wine)
        with listening(None):
            MixtureDensity(
                n_components=1, covariance_type="full", covariance_prior=1.0
            ).fit(wine[0])
    MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
        wine[0]
    )
    assert [step.task for step in steps][-1] == "L-BFGS"
    assert {step.task for step in steps} == {"EM", "L-BFGS"}
    assert max(step.done for step in steps if step.task == "L-BFGS") <= 5
    assert "mean value" in steps[-1].note


def test_listeners_hear_of_searches_and_not_of_their_fits(wine):
    steps = []
    search = HybridMixtureClassifierCV(
        covariance_type="diag", n_components=1, tradeoff=[0, 1], cv=2
    )
    with listening(steps.append):
        search.fit(*wine)
    found = [(step.done, step.total) for step in steps if step.task == "search"]
    assert found == [(1, 2), (2, 2)]
    # The best setting is trained on all rows at the end.
    assert [step.task for step in steps[:2]] == ["search", "search"]


def test_nobody_listens():
    announce("nothing", 0, 1)
