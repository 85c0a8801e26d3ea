"""Shapley values are those of their definition, and the axioms hold."""

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier, plain_regressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression

from hybridmix import (
    MixtureDensity,
    MixtureNetworkClassifier,
    MixtureOutlierDetector,
)
from hybridmix.inspection import shapley_values
from hybridmix.inspection.coalitions import AllSubsets, choose_coalitions

DENSITY = {"n_components": 2, "covariance_type": "full", "covariance_prior": 1.0}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X.iloc[:, [0, 6, 9, 12]], y


@pytest.fixture(scope="module")
def classifier(wine):
    return plain_classifier(random_state=0).fit(*wine)


@pytest.fixture(scope="module")
def wide():
    """Fourteen columns: too many subsets for all to be asked about."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 14)) + 0.7 * rng.normal(size=(3, 14))[y]
    return X, y, plain_classifier("likelihood", random_state=0).fit(X, y)


def by_definition(ask, row):
    """Shapley values (d, outputs) of one row of an array, set by set."""
    n_columns = row.shape[1]

    def value(subset):
        hidden = np.full_like(row, np.nan)
        hidden[:, list(subset)] = row[:, list(subset)]
        return np.ravel(ask(hidden))

    found = []
    for j in range(n_columns):
        others = [k for k in range(n_columns) if k != j]
        found.append(0.0)
        for size in range(n_columns):
            orders = factorial(size) * factorial(n_columns - size - 1)
            for subset in combinations(others, size):
                rise = value((*subset, j)) - value(subset)
                found[j] += orders / factorial(n_columns) * rise
    return np.array(found)


def assert_adds_up(found):
    np.testing.assert_allclose(
        found.values.sum(axis=1), found.predictions - found.base_values, atol=1e-10
    )


def test_values_of_a_classifier_are_those_of_the_definition(wine):
    X, y = wine[0].to_numpy(), wine[1]
    model = plain_classifier(random_state=0).fit(X, y)
    found = shapley_values(model, X[::60])
    assert found.output_names == ("0", "1", "2")
    np.testing.assert_array_equal(found.predictions, model.predict_proba(X[::60]))
    np.testing.assert_array_equal(found.standard_errors, 0.0)
    for row, values in zip(X[::60], found.values, strict=True):
        expected = by_definition(model.predict_proba, row[None])
        np.testing.assert_allclose(values, expected, atol=1e-12)
    assert_adds_up(found)


def test_log_odds(wine, classifier):
    found = shapley_values(classifier, wine[0][::60], output="log_odds")
    p = classifier.predict_proba(wine[0][::60])
    np.testing.assert_allclose(found.predictions, np.log(p / (1 - p)), rtol=1e-6)
    assert_adds_up(found)


@pytest.mark.parametrize(
    ("model", "output", "method"),
    [
        (MixtureDensity(**DENSITY, random_state=0), "auto", "score_samples"),
        (MixtureDensity(**DENSITY, random_state=0), "typicality", "typicality"),
        (MixtureOutlierDetector(**DENSITY, random_state=0), "auto", "typicality"),
        (plain_regressor(), "auto", "predict"),
        (
            MixtureNetworkClassifier(n_components=4, random_state=0),
            "auto",
            "predict_proba",
        ),
    ],
    ids=lambda one: getattr(one, "purpose", one),
)
def test_values_of_other_models(model, output, method, wine):
    X, y = wine[0].to_numpy(), wine[1].to_numpy()
    model.fit(X, y)
    found = shapley_values(model, X[:2], output=output)
    ask = getattr(model, method)
    np.testing.assert_array_equal(found.predictions, ask(X[:2]))
    expected = by_definition(ask, X[:1]).reshape(found.values[0].shape)
    np.testing.assert_allclose(found.values[0], expected, atol=1e-10)
    assert_adds_up(found)


def test_probabilities_of_subsets_are_conditional_expectations(wine):
    """By the likelihood, v(S) is the mean prediction over draws of what is hidden."""
    model = plain_classifier("likelihood", random_state=0).fit(*wine)
    part = wine[0].iloc[[70]].copy()
    part[["flavanoids", "proline"]] = np.nan
    draws = model.impute(part.loc[part.index.repeat(4000)], draw=True, random_state=0)
    mean = model.predict_proba(draws).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(part)[0], mean, atol=0.03)


def test_several_targets():
    X, y = load_diabetes(return_X_y=True)
    targets = np.column_stack([y, X[:, 5]])
    model = plain_regressor().fit(X[:, :4], targets)
    found = shapley_values(model, X[:3, :4])
    assert found.values.shape == (3, 4, 2)
    assert found.output_names == ("0", "1")
    assert_adds_up(found)


def test_missing_cells_have_no_value(wine, classifier):
    """They are no players: the others have the values of the smaller game."""
    X, y = wine
    holes = X[:3].copy()
    holes.loc[1, "alcohol"] = np.nan
    holes.loc[2] = np.nan
    found = shapley_values(classifier, holes)
    np.testing.assert_array_equal(found.values[1, 0], 0.0)
    np.testing.assert_array_equal(found.values[2], 0.0)
    alone = shapley_values(classifier, holes[1:2])
    np.testing.assert_allclose(found.values[1], alone.values[0], atol=1e-12)
    smaller = plain_classifier("likelihood", covariance_prior=0.0)
    whole = shapley_values(smaller.fit(X, y), holes[1:2])
    rest = shapley_values(smaller.fit(X.iloc[:, 1:], y), holes.iloc[1:2, 1:])
    np.testing.assert_allclose(whole.values[0, 1:], rest.values[0], atol=1e-6)


def test_all_kinds_of_tables():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = pd.DataFrame(
        {
            "number": rng.integers(0, 9, 120),
            "told": np.where(rng.random(120) < 0.8, y, 1 - y).astype(str),
        }
    )
    model = plain_classifier(covariance_type="diag").fit(X, y)
    rows = X[:4].copy()
    rows.loc[3, "told"] = "never seen"
    with pytest.warns(UserWarning, match="never seen"):
        found = shapley_values(model, rows)
    assert found.names == ("number", "told")
    np.testing.assert_array_equal(found.values[3, 1], 0.0)
    assert found.order[0] == 1
    assert str(found).splitlines()[1].startswith("told")
    polar = shapley_values(model, pl.from_pandas(X[:3]))
    np.testing.assert_allclose(polar.values, found.values[:3], atol=1e-12)


def test_sampled_values(wide):
    """They add up, are close to the exact ones, and the errors say how close."""
    X, _, model = wide
    exact = shapley_values(model, X[:3], n_subsets=2**14)
    np.testing.assert_array_equal(exact.standard_errors, 0.0)
    ratios = []
    for seed in range(10):
        found = shapley_values(model, X[:3], n_subsets=800, random_state=seed)
        assert_adds_up(found)
        errors = found.values - exact.values
        assert np.abs(errors).max() < 0.03
        ratios.append(errors / found.standard_errors)
    assert np.sqrt(np.mean(np.square(ratios))) == pytest.approx(1.0, abs=0.3)


def test_sampled_values_repeat_and_do_not_depend_on_other_rows(wide):
    X, _, model = wide
    found = shapley_values(model, X[:4], n_subsets=300, random_state=3)
    again = shapley_values(model, X[2:3], n_subsets=300, random_state=3)
    np.testing.assert_allclose(again.values[0], found.values[2], atol=1e-10)


@pytest.mark.parametrize("most", [2, 40, 200])
@pytest.mark.parametrize("n_columns", [2, 3, 6, 7, 9])
def test_games_with_pairs_are_solved_exactly(n_columns, most):
    """Least squares over complements have no error if no three columns interact."""
    rng = np.random.default_rng(n_columns)
    own, mutual = rng.normal(size=n_columns), rng.normal(size=(n_columns, n_columns))

    def values(shown):
        z = shown.astype(float)
        return (z @ own + np.einsum("mj,jk,mk->m", z, mutual, z))[:, None]

    everything = AllSubsets.of(n_columns)
    expected, _ = everything.attributions(values(everything.shown))
    coalitions = choose_coalitions(n_columns, most, 0)
    found, errors = coalitions.attributions(values(coalitions.shown))
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(errors, 0.0, atol=1e-6)
    assert len(coalitions.shown) <= max(most, 6 * n_columns + 2)


def test_refusals(wine, classifier):
    X, _ = wine
    with pytest.raises(TypeError, match="LogisticRegression cannot"):
        shapley_values(LogisticRegression(), X)
    with pytest.raises(ValueError, match="output='margin' is not valid"):
        shapley_values(classifier, X, output="margin")
    with pytest.raises(ValueError, match="n_subsets"):
        shapley_values(classifier, X, n_subsets=1)
    density = MixtureDensity(**DENSITY).fit(X)
    with pytest.raises(ValueError, match="a MixtureDensity has none"):
        shapley_values(density, X, output="log_odds")


def test_values_make_a_shap_explanation(wine, classifier):
    shap = pytest.importorskip("shap")
    found = shapley_values(classifier, wine[0][:5])
    explanation = shap.Explanation(
        found.values,
        found.base_values,
        wine[0][:5].to_numpy(),
        feature_names=list(found.names),
        output_names=list(found.output_names),
    )
    assert explanation[:, :, 1].shape == (5, 4)
