"""Scores are defined once, agree with scikit-learn, and know their uncertainty."""

import math

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_pinball_loss,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from hybridmix._estimates import Estimate
from hybridmix.cli.tallies import Tally
from hybridmix.metrics import (
    LEAST_PROBABILITY,
    LEVELS,
    RankCounts,
    Ranks,
    RegressionSums,
    ScoreSums,
    as_forecasts,
    calibration_report,
    classification_scores,
    intervals_of,
    label_losses,
    means_of,
    regression_scores,
)


def predictions(n_rows=400, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(n_rows, n_classes))
    labels = (logits + rng.gumbel(scale=2.0, size=logits.shape)).argmax(axis=1)
    return labels, softmax(logits, axis=1)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_scores_are_those_of_scikit_learn(n_classes):
    labels, probabilities = predictions(n_classes=n_classes)
    scores = classification_scores(labels, probabilities)
    predicted = probabilities.argmax(axis=1)
    given = probabilities[:, 1] if n_classes == 2 else probabilities
    expected = {
        "accuracy": accuracy_score(labels, predicted),
        "balanced accuracy": balanced_accuracy_score(labels, predicted),
        "log loss": log_loss(labels, probabilities),
        "Brier score": np.square(probabilities - np.eye(n_classes)[labels]).sum(1).mean(),
        "ROC AUC": roc_auc_score(labels, given, multi_class="ovr"),
    }
    assert scores.keys() == expected.keys()
    for name, value in expected.items():
        assert scores[name].value == pytest.approx(value, rel=1e-12)
        assert scores[name].low < value < scores[name].high


def test_certain_errors_cost_the_same_everywhere():
    """The command line once printed 354.3 for rows of which the report said 18.1."""
    probabilities = np.array([[1.0, 0.0], [1.0, 0.0], [1e-300, 1.0], [0.5, 0.5]])
    labels = np.array([0, 1, 0, 1])
    tally = Tally(2)
    for rows in (slice(0, 1), slice(1, 4)):
        tally.add(labels[rows], probabilities[rows])
    found = [
        classification_scores(labels, probabilities)["log loss"].value,
        calibration_report(labels, probabilities, [0, 1]).log_loss,
        tally.values([0, 1])["log_loss"],
        log_loss(labels, probabilities),
    ]
    expected = (2.0 * -math.log(LEAST_PROBABILITY) + math.log(2.0)) / 4.0
    assert found == pytest.approx([expected] * 4)
    losses = label_losses(np.array([-np.inf, 0.0]))
    assert losses == pytest.approx([36.04, 0.0], abs=0.01)


def test_sums_of_parts_are_the_sums_of_all():
    labels, probabilities = predictions()
    whole = ScoreSums.of(labels, probabilities)
    parts = ScoreSums.of(labels[:7], probabilities[:7])
    parts = parts + ScoreSums.of(labels[7:], probabilities[7:])
    for one, other in zip(vars(whole).values(), vars(parts).values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    counts = RankCounts(3)
    for rows in np.array_split(np.arange(len(labels)), 5):
        counts.add(labels[rows], probabilities[rows])
    for k in range(3):
        exact = Ranks.of(labels == k, probabilities[:, k]).area()
        assert counts.of(k).area() == pytest.approx(exact, abs=1e-4)


def test_many_classes_take_little_memory():
    assert RankCounts(5000)._counts.nbytes < 64e6
    assert RankCounts(2)._counts.shape[2] == 2**14


@pytest.mark.parametrize("name", ["accuracy", "balanced accuracy", "log loss", "ROC AUC"])
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    labels, probabilities = predictions(100_000)
    truth = classification_scores(labels, probabilities)[name].value
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        rows = rng.choice(len(labels), 150)
        score = classification_scores(labels[rows], probabilities[rows])[name]
        held += score.low <= truth <= score.high
    # The error of the mean area is an upper bound.
    assert 0.91 <= held / 300 <= (1.0 if name == "ROC AUC" else 0.985)


def test_perfect_scores_are_uncertain():
    labels = np.arange(20) % 2
    scores = classification_scores(labels, np.eye(2)[labels])
    for name in ("accuracy", "balanced accuracy", "ROC AUC"):
        assert scores[name].value == 1.0
        assert 0.6 < scores[name].low < 0.9
        assert scores[name].high == 1.0


def test_scores_of_one_class_or_one_row():
    scores = classification_scores(np.zeros(5, int), np.full((5, 2), 0.5))
    assert math.isnan(scores["ROC AUC"].value)
    single = classification_scores(np.zeros(1, int), np.array([[0.8, 0.2]]))
    assert single["log loss"].high == math.inf
    assert 0.0 <= single["accuracy"].low < single["accuracy"].high == 1.0


def test_means_of_large_values_keep_their_uncertainty():
    values = 1e9 + np.random.default_rng(0).normal(size=1000)
    found = Estimate.of_values(values)
    assert found.high - found.low == pytest.approx(2 * 1.96 / 1000**0.5, rel=0.1)


# Regression ---------------------------------------------------------------------------


def forecasts(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    means = 50.0 + 10.0 * rng.normal(size=n_rows)
    targets = means + 3.0 * rng.normal(size=n_rows)
    quantiles = means[:, None] + 3.0 * norm.ppf(LEVELS)
    densities = norm.logpdf(targets, means, 3.0)
    return targets, as_forecasts(means, densities, quantiles)


def test_scores_of_regression_are_those_of_scikit_learn():
    targets, given = forecasts()
    scores, means = regression_scores(targets, given), means_of(given)
    low, high = intervals_of(given)
    # The interval score is the sum of the pinball losses of its ends, but for a factor.
    pinball = mean_pinball_loss(targets, low, alpha=0.05)
    pinball += mean_pinball_loss(targets, high, alpha=0.95)
    expected = {
        "RMSE": root_mean_squared_error(targets, means),
        "MAE": mean_absolute_error(targets, means),
        "R²": r2_score(targets, means),
        "coverage": np.mean((low <= targets) & (targets <= high)),
        "interval score": pinball / 0.05,
        "log predictive density": norm.logpdf(targets, means, 3.0).mean(),
    }
    assert scores.keys() == expected.keys()
    for name, value in expected.items():
        assert scores[name].value == pytest.approx(value, rel=1e-9)
        assert scores[name].low < value < scores[name].high


@pytest.mark.parametrize("name", ["RMSE", "MAE", "R²", "interval score"])
def test_intervals_of_regression_hold_what_they_should(name):
    """Of tables of 200 rows, 95 % have an interval that holds the score of very many."""
    truth = regression_scores(*forecasts(200_000, seed=1))[name].value
    found = [regression_scores(*forecasts(200, seed))[name] for seed in range(2, 402)]
    held = np.mean([score.low <= truth <= score.high for score in found])
    assert 0.91 < held < 0.98


def test_sums_of_regression_can_be_added():
    targets, given = forecasts()
    whole = RegressionSums.of(targets, given)
    parts = [
        RegressionSums.of(targets[rows], given[rows], whole.origin)
        for rows in (slice(0, 1), slice(1, 150), slice(150, None))
    ]
    total = parts[0] + parts[1] + parts[2]
    assert total.n_rows == whole.n_rows == 400
    np.testing.assert_array_equal(total.below, whole.below)
    for name, score in total.estimates().items():
        other = whole.estimates()[name]
        values = [score.value, score.low, score.high]
        assert values == pytest.approx([other.value, other.low, other.high], rel=1e-9)
    with pytest.raises(ValueError, match="different origins"):
        parts[0] + RegressionSums.of(targets, given, (0.0, 1.0))


def test_scores_of_regression_do_not_depend_on_units():
    targets, given = forecasts()
    usual = regression_scores(targets, given)
    shift, scale = 1e9, 1e-3
    moved = shift + scale * given
    moved[:, 1] = given[:, 1] - np.log(scale)
    found = regression_scores(shift + scale * targets, moved)
    for name, factor in (("RMSE", scale), ("MAE", scale), ("interval score", scale)):
        assert found[name].value == pytest.approx(factor * usual[name].value, rel=1e-3)
    for name in ("R²", "coverage"):
        assert found[name].value == pytest.approx(usual[name].value, abs=1e-3)


def test_forecasts_without_densities_and_constant_targets():
    targets, given = forecasts(20)
    given[:, 1] = np.nan
    scores = regression_scores(targets, given)
    assert math.isnan(scores["log predictive density"].value)
    assert not any(
        math.isnan(score.value)
        for name, score in scores.items()
        if name != "log predictive density"
    )
    same = regression_scores(np.full(20, 50.0), given)
    assert math.isnan(same["R²"].value)
    assert same["RMSE"].value > 0.0


def test_calibration_of_quantiles():
    sums = RegressionSums.of(*forecasts(20_000))
    np.testing.assert_allclose(sums.shares_below, LEVELS, atol=0.015)
    assert sums.calibration_error < 0.01
    targets, given = forecasts(2000)
    assert RegressionSums.of(targets + 5.0, given).calibration_error > 0.2
