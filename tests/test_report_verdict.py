"""What the report says in words, and the figures behind it."""

import re

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier, plain_regressor
from scipy.stats import kstest, norm
from test_report import OF_CLASSES, OF_NUMBERS, WITHOUT_CLASSES, check

from hybridmix import HybridMixtureClassifier, MixtureDensity
from hybridmix.exceptions import ColumnWarning
from hybridmix.reporting import report
from hybridmix.reporting.advice import advice
from hybridmix.reporting.bins import Bins
from hybridmix.reporting.checks import check_columns, distribution_function
from hybridmix.reporting.comparisons import Calibration, best_rival, compared
from hybridmix.reporting.contributions import contributions
from hybridmix.reporting.findings import found_out
from hybridmix.reporting.limits import (
    has_wrong_labels,
    limits,
    listed,
    unlikely_labels,
)
from hybridmix.reporting.plane import Plane, log_ticks
from hybridmix.reporting.sections import verdict
from hybridmix.reporting.sections.verdict import verdict_section
from hybridmix.reporting.subject import Subject


def two_classes(n=240, noise=1.0, n_columns=3, seed=0):
    """Rows of two classes that differ in the first column."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = noise * rng.normal(size=(n, n_columns))
    X[:, 0] += 2.0 * y
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(n_columns)]), y


def findings_of(model, X, y, baselines=False):
    return found_out(Subject.of(model, X, y, 2, baselines, 0))


@pytest.fixture(scope="module")
def fitted():
    X, y = two_classes()
    return plain_classifier("likelihood", random_state=0).fit(X, y), X, y


# Words --------------------------------------------------------------------------------


def test_verdict_has_the_figures_of_the_trial(fitted):
    page = check(report(*fitted, cv=2).html)
    text = page.text["verdict"]
    found = findings_of(*fitted, baselines=True)
    right = found.trial.ours.outputs.argmax(axis=1) == found.trial.truth
    assert f"right in {100 * right.mean():.1f} %".replace(".0 %", " %") in text
    assert "would be right in 50 %" in text
    assert "best other model" in text
    assert "Let the library choose" in text
    assert "hybridmix fit train.csv --target NAME" in text


def test_no_line_breaks_before_a_sign_of_percentage(fitted):
    html = report(*fitted, cv=2, baselines=False).html
    assert "\N{NO-BREAK SPACE}%" in html
    assert not re.search(r"\d %", html)


def test_a_single_folded_column_is_one():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    model = MixtureDensity(1, covariance_type="diag").fit(X)
    html = report(model, X, cv=2, baselines=False).html
    assert "The other column<" in html


def test_gains_are_means_over_pairs_of_rows(fitted):
    found = findings_of(*fitted, baselines=True)
    trial, names = found.trial, [own.name for own in compared(found)]
    assert names == ["logistic regression", "boosted trees", "most frequent class"]
    right = [one.outputs.argmax(axis=1) == trial.truth for one in trial.contenders]
    for own, other in zip(compared(found), right[1:], strict=True):
        assert own.gain.value == pytest.approx(right[0].mean() - other.mean())
        assert own.gain.low < own.gain.value < own.gain.high
    assert best_rival(found).name != "most frequent class"


def test_calibration_of_right_and_of_too_sure_probabilities(fitted):
    found = findings_of(*fitted)
    assert Calibration.of(found.trial).is_fine
    trial = found.trial
    sure = np.where(trial.ours.outputs > 0.5, 0.999, 0.001)
    trial.ours.outputs[:] = sure
    doubtful = Calibration.of(trial)
    assert not doubtful.is_fine
    assert doubtful.confidence > doubtful.accuracy


def test_wrong_labels_are_noticed_and_listed():
    X, y = two_classes(noise=0.2)
    wrong = [7, 40, 111, 150, 200]
    y[wrong] = 1 - y[wrong]
    model = plain_classifier("likelihood", random_state=0).fit(X, y)
    found = findings_of(model, X, y)
    assert has_wrong_labels(found.trial)
    places = unlikely_labels(found.trial)
    assert sorted(found.trial.table_rows[places].tolist()) == wrong
    page = check(report(model, X, y, cv=2, baselines=False).html)
    assert "Some labels may be wrong" in page.text["verdict"]
    assert "Labels to check (5)" in page.text["errors"]


def test_limits_name_what_is_scarce():
    X, y = two_classes(60, n_columns=20)
    y = np.where(np.arange(60) < 4, 2, y)
    X.iloc[5] = X.iloc[6]
    model = plain_classifier("likelihood", random_state=0).fit(X, y)
    text = " ".join(limits(findings_of(model, X, y)))
    assert "1 of 3 classes have fewer than 20 labelled rows: 2." in text
    assert "60 labelled rows for 20 columns" in text
    assert "equal in all columns have different labels" in text


def test_columns_that_are_misread_are_named_with_a_way_out():
    X, y = two_classes()
    patients = [f"p{k % 2}{k // 8}" for k in range(len(X))]
    X = X.assign(patient=patients, x1=X["x1"].where(np.arange(len(X)) % 20 > 0, -999.0))
    model = plain_classifier("likelihood", column_shapes="plain")
    with pytest.warns(ColumnWarning, match="-999"):
        model.fit(X, y)
    found = findings_of(model, X, y)
    [groups, marks, *_] = limits(found)
    assert groups.startswith("All rows with the same patient have the same label")
    assert marks.startswith("Some numbers are far from all others: -999 in x1.")
    [missing, dropped, *_] = advice(found, [])
    assert missing.code.endswith("--na -999")
    assert dropped.code.endswith("--drop patient")


def test_the_main_error_comes_with_its_count():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = pd.DataFrame({"x": 9.0 * (y == 2) + rng.normal(size=300)})
    found = findings_of(plain_classifier("likelihood").fit(X, y), X, y)
    n_wrong = (found.trial.ours.outputs.argmax(axis=1) != found.trial.truth).sum()
    assert f"{n_wrong} of {n_wrong} errors (100 %) confuse 0 with 1." in limits(found)


def test_long_lists_are_cut():
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and 1 other"
    assert listed(list("abcde")) == "a, b, c and 2 others"


def test_models_that_score_the_same(fitted):
    _, X, y = fitted
    X = X.assign(x0=100.0 * y)
    model = plain_classifier("likelihood", random_state=0).fit(X, y)
    found = findings_of(model, X, y, baselines=True)
    text = verdict_section(found)
    assert "both score the same in every row" in text
    assert "may be chance" not in text


def test_without_advice_there_is_nothing_to_try_next(fitted, monkeypatch):
    found = findings_of(*fitted)
    assert "What to try next" in verdict_section(found)
    monkeypatch.setattr(verdict, "advice", lambda *_: [])
    assert "What to try next" not in verdict_section(found)


def test_advice_names_columns_that_do_not_match(fitted):
    _, X, y = fitted
    plain = plain_classifier("likelihood", column_shapes="plain", random_state=0)
    found = findings_of(plain.fit(X, y), X, y)
    assert any("column_shapes" in own.code for own in advice(found, ["x1"]))
    assert not any("column_shapes" in own.code for own in advice(found, []))


def test_verdict_on_numbers_and_densities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    X[:, 1] += X[:, 0]
    y = X[:, 0] + 0.3 * rng.normal(size=150)
    page = check(report(plain_regressor().fit(X, y), X, y, cv=2).html, OF_NUMBERS)
    assert "of the variance of the target" in page.text["verdict"]
    assert "intervals of 90 % hold" in page.text["verdict"]
    assert "integrated out" in page.text["dependence"]
    density = MixtureDensity(1, covariance_type="full", random_state=0).fit(X)
    page = check(report(density, X, cv=2).html, WITHOUT_CLASSES)
    assert "how the columns depend on each other" in page.text["verdict"]


# Fit of the columns -------------------------------------------------------------------


def test_distances_are_those_of_kolmogorov():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(3.0, 2.0, 400), rng.choice([-4.0, 4.0], 400)])
    X[:, 1] += 0.1 * rng.normal(size=400)
    model = MixtureDensity(1, covariance_type="diag", column_shapes="plain").fit(X)
    worst, best = check_columns(Subject.of(model, X, None, 2, False, 0), [0, 1])
    assert (worst.column, best.column) == (1, 0)
    assert worst.advice
    assert not worst.is_match
    assert best.is_match
    expected = kstest(X[:, 0], norm(X[:, 0].mean(), X[:, 0].std()).cdf).statistic
    assert best.distance == pytest.approx(expected, abs=2 / 400)


def test_distribution_functions_know_spikes_and_transforms():
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(size=2000))
    values[:500] = 0.0
    X = np.column_stack([values, rng.normal(size=2000)])
    model = MixtureDensity(1, random_state=0).fit(X)
    assert model.schema_.shapes[0].spikes == (0.0,)
    points = np.array([-1.0, 1e-9, 1.0, 1e9])
    found = distribution_function(model, 0, points)
    np.testing.assert_allclose(found, [0.0, 0.25, 0.625, 1.0], atol=0.03)


def test_categories_are_compared_by_frequency():
    words = np.repeat(["a", "b"], [90, 30])
    numbers = np.random.default_rng(0).normal(size=120)
    X = pd.DataFrame({"word": words, "number": numbers})
    model = MixtureDensity(1, random_state=0).fit(X)
    other = X.assign(word=words[::-1])
    other.loc[:59, "word"] = "b"
    for rows, matches in ((X, True), (other, False)):
        [own] = check_columns(Subject.of(model, rows, None, 2, False, 0), [0])
        assert own.is_match == matches


# One prediction -----------------------------------------------------------------------


def test_contributions_add_up_and_know_independent_columns(fitted):
    model, X, _ = fitted

    def log_odds(rows):
        logs = model.predict_log_proba(rows)
        return logs[:, 1] - logs[:, 0]

    row = X.iloc[[3]]
    found = contributions(
        row, np.array([0, 2]), 3, log_odds, lambda own, n: own.iloc[[0] * n], 0
    )
    hidden = row.assign(x1=np.nan)
    assert found.total == pytest.approx(log_odds(hidden)[0])
    assert found.start == pytest.approx(
        log_odds(row.assign(x0=np.nan, x1=np.nan, x2=np.nan))[0]
    )
    assert abs(found.parts[0]) > abs(found.parts[1])


def test_worked_predictions_are_in_the_report(fitted):
    rows = check(report(*fitted, cv=2, baselines=False).html).tables["worked"]
    for lines in rows:
        assert [lines[1][0], lines[-1][0]] == ["nothing known yet", "all together"]
        texts = [line[-1].replace("\N{MINUS SIGN}", "-") for line in lines[1:]]
        *parts, total = map(float, texts)
        assert sum(parts) == pytest.approx(total, abs=0.01)


# Bins and size ------------------------------------------------------------------------


def test_bins_of_whole_numbers_long_tails_and_others():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(Bins.of(np.array([1.0, 2, 4])).edges, np.arange(0.5, 5))
    many = Bins.of(rng.integers(0, 1000, 500).astype(float))
    assert np.all(np.diff(many.edges) == np.rint(np.diff(many.edges)[0]))
    tail = np.exp(3.0 * rng.normal(size=300))
    bins = Bins.of(tail)
    assert bins.is_log
    assert bins.count(tail).sum() == 300
    assert not Bins.of(rng.normal(size=300)).is_log
    assert Bins.of(np.full(5, 7.0)).count(np.full(5, 7.0)).sum() == 5


def test_logarithmic_axes():
    assert log_ticks(0.5, 2000.0) == [1.0, 10.0, 100.0, 1000.0]
    assert log_ticks(1.0, 100.0) == [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    plane = Plane((1.0, 100.0), (0.0, 1.0), log_x=True)
    one, ten, hundred = plane.x([1.0, 10.0, 100.0])
    assert ten - one == pytest.approx(hundred - ten)


def test_rows_are_mapped_whatever_they_hold():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"word": rng.choice(list("ab"), 40), "number": rng.normal(size=40)})
    X.loc[:5, "number"] = np.nan
    y = np.arange(40) % 8
    model = plain_classifier("likelihood", random_state=0).fit(X, y)
    page = check(report(model, X, y, cv=2, baselines=False).html)
    assert "all others" in page.text["map"]
    single = check(report(model, X[:2]).html, OF_CLASSES)
    assert "A map needs" in single.text["map"]


def test_nothing_more_is_searched_for_where_nothing_can_be_gained():
    X, y = two_classes(80, noise=0.01)
    found = findings_of(HybridMixtureClassifier(random_state=0).fit(X, y), X, y)
    assert not any("Search longer" in own.text for own in advice(found, []))


def test_skewed_columns_without_a_shape_are_given_one():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"x": rng.lognormal(sigma=2.0, size=300)})
    # As in wide tables, no shapes were looked for.
    model = MixtureDensity(1, covariance_type="diag", column_shapes="plain").fit(x)
    model.set_params(column_shapes="auto")
    [own] = check_columns(Subject.of(model, x, None, 2, False, 0), [0])
    assert "column_shapes={'x': 'positive'} may help" in own.advice
