"""What models are for, and whether they have seen the rows they are judged by."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier, plain_regressor
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine

import hybridmix
from hybridmix import (
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from hybridmix.cli import main
from hybridmix.data.fingerprint import Origin
from hybridmix.metrics import LEVELS, classification_scores, regression_scores
from hybridmix.reporting import report
from hybridmix.reporting.findings import found_out
from hybridmix.reporting.subject import Subject
from hybridmix.tasks import Classify, Describe, Metric, Regress, task_of
from hybridmix.tasks.baselines import ConformalRegressor
from hybridmix.tasks.regress import forecasts_of


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    X, y = X.iloc[order, :6].reset_index(drop=True), y.iloc[order].reset_index(drop=True)
    return X.mask(rng.random(X.shape) < 0.1), y


@pytest.fixture(scope="module")
def model(wine):
    X, y = wine
    options = {"covariance_type": "tied", "random_state": 0}
    return plain_classifier("likelihood", **options).fit(X[:100], y[:100])


def findings(model, X, y=None, baselines=False):
    return found_out(Subject.of(model, X, y, 2, baselines, 0))


def text_of(written, anchor):
    section = written.html.split(f'<section id="{anchor}"')[1].split("</section>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", section))


def test_tasks_of_models():
    for model in (plain_classifier(), HybridMixtureClassifierCV()):
        assert isinstance(task_of(model), Classify)
    for model in (
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0),
        MixtureImputer(
            n_components=(1, 2, 4, 8), covariance_type="full", covariance_prior=1.0
        ),
        MixtureOutlierDetector(
            n_components=(1, 2, 4, 8), covariance_type="full", covariance_prior=1.0
        ),
    ):
        assert isinstance(task_of(model), Describe)
    assert isinstance(task_of(MixtureRegressor()), Regress)
    for task in (Classify(), Describe(), Regress()):
        names = [metric.name for metric in task.metrics]
        assert set(task.headline) <= set(names)


# Which rows a report is about ---------------------------------------------------------


def test_unseen_rows_are_scored_by_the_model_that_is_given(wine, model):
    """The report once retrained the model by folds of the table that it got."""
    X, y = wine[0][100:], wine[1][100:]
    found = findings(model, X, y)
    assert found.retrained is None
    expected = classification_scores(y.to_numpy(), model.predict_proba(X))
    for name, score in found.fitted.ours.scores[0].items():
        assert score == expected[name]
    written = report(model, X, y, cv=2, baselines=False)
    accuracy = expected["accuracy"]
    shown = f"{accuracy.value:.3f} ({accuracy.low:.3f} to {accuracy.high:.3f})"
    for anchor in ("summary", "quality"):
        text = text_of(written, anchor)
        assert "The model as fitted, on 78 labelled rows it has not seen" in text
        assert shown in text
        assert "None of these 78 rows equals a training row" in text
    assert "78 rows that the model as fitted has not seen" in text_of(written, "errors")
    assert f"accuracy {accuracy.value:.3f}" in text_of(written, "features")


def test_others_are_trained_within_unseen_rows_and_say_so(wine, model):
    X, y = wine[0][100:], wine[1][100:]
    written = report(model, X, y, cv=2)
    text = text_of(written, "quality")
    assert "The model as fitted, on 78 labelled rows it has not seen" in text
    assert "The model retrained on about 39 rows, by cross-validation" in text
    assert "compare them with each other" in text
    assert "boosted trees" in text
    assert "this model as fitted" in text_of(written, "missing")


def test_training_rows_get_folds_that_say_so(wine, model):
    X, y = wine[0][:100], wine[1][:100]
    found = findings(model, X.sample(frac=1.0, random_state=0), y)
    assert found.fitted is None
    assert found.retrained is not None
    written = report(model, X, y, cv=2, baselines=False)
    text = text_of(written, "quality")
    assert "The model was trained on these 100 rows." in text
    assert "The model retrained on about 50 rows, by cross-validation (2 folds" in text
    assert "as fitted" not in text


def test_a_mixture_is_scored_on_its_unseen_rows(wine, model):
    X, y = wine
    found = findings(model, X, y)
    np.testing.assert_array_equal(found.subject.unseen, np.arange(100, 178))
    new = findings(model, X[100:], y[100:])
    assert found.fitted.ours.scores == new.fitted.ours.scores
    text = text_of(report(model, X, y, cv=2, baselines=False), "quality")
    assert "100 of these 178 rows were in the training table" in text
    assert "on 78 labelled rows it has not seen" in text
    assert "100 rows of the table that were in training" in text


def test_too_few_unseen_rows_are_not_scored(wine, model):
    X, y = wine[0][:120], wine[1][:120]
    found = findings(model, X, y)
    assert found.subject.provenance.origin == Origin.MIXED
    assert found.fitted is None
    text = text_of(report(model, X, y, cv=2, baselines=False), "quality")
    assert "Only 20 rows that can be scored are known not to have been" in text
    assert "retrained on about 60 rows" in text


def test_models_without_a_fingerprint_show_both(wine, model):
    X, y = wine[0][100:], wine[1][100:]
    old = clone(model).fit(wine[0][:100], wine[1][:100])
    del old.fingerprint_
    found = findings(old, X, y)
    assert [trial.is_retrained for trial in found.trials] == [True, False]
    written = report(old, X, y, cv=2, baselines=False)
    assert "It is not known whether" in text_of(written, "quality")
    for text in (text_of(written, "quality"), text_of(written, "summary")):
        assert "on 78 labelled rows that it may have seen in training" in text
        assert "retrained on about 39 rows" in text


def test_large_tables_are_judged_by_a_sample():
    rng = np.random.default_rng(0)
    y = np.arange(8000) % 2
    X = rng.normal(size=(8000, 2)) + y[:, None]
    model = plain_classifier("likelihood", random_state=0).fit(X[:4000], y[:4000])
    found = findings(model, X[4000:], y[4000:])
    assert found.subject.provenance.origin == Origin.UNSEEN
    assert len(found.fitted.rows) == 4000
    found = findings(model, X, y)
    # Rows that the fingerprint knows nothing about are not called unseen.
    assert 800 < len(found.fitted.rows) < 1300
    assert np.all(found.subject.unseen >= 4000)
    text = text_of(report(model, X, y, cv=2, baselines=False), "quality")
    assert re.search(r"About (4[6-9]|5[0-4])% of these 8,000 rows", text)


def test_densities_are_scored_as_well(wine):
    X = wine[0]
    density = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X[:100])
    found = findings(density, X[100:], baselines=True)
    assert found.fitted.ours.mean("mean log density") == pytest.approx(
        density.score(X[100:])
    )
    names = [one.name for one in found.retrained.contenders]
    assert names == ["this model", "independent columns"]
    written = report(density, X[100:], cv=2)
    assert "The model as fitted, on 78 rows it has not seen" in text_of(
        written, "quality"
    )
    imputer = MixtureImputer(
        1, n_draws=2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X[:100])
    detector = MixtureOutlierDetector(
        1, contamination=0.1, covariance_type="full", covariance_prior=1.0
    ).fit(X[:100])
    for model in (imputer, detector):
        trial = findings(model, X[:100]).retrained
        assert np.isfinite(trial.ours.mean("mean log density"))
        assert all(isinstance(one, MixtureDensity) for one in trial.ours.models)


def test_few_rows_or_values_have_no_scores(wine):
    X = wine[0].copy()
    density = MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(X)
    assert "there are 5 rows" in findings(density, X[:5]).obstacle
    X.iloc[4:, 2] = np.nan
    found = findings(
        MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(X), X
    )
    assert f"column '{X.columns[2]}' has 4" in found.obstacle


# The command line ---------------------------------------------------------------------


@pytest.fixture
def files(wine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = wine[0].assign(kind=wine[1].map({0: "a", 1: "b", 2: "c"}))
    table[:100].to_csv("train.csv", index=False)
    table[100:].to_parquet("test.parquet", index=False)
    table.to_csv("all.csv", index=False)
    quick = ["--objective", "likelihood", "--covariance", "tied", "-q"]
    assert main(["fit", "train.csv", "-t", "kind", "-o", "m.hmx", *quick]) == 0


@pytest.mark.parametrize(
    ("table", "origin", "warning"),
    [
        ("train.csv", "seen", "The model was trained on these 100 rows. It looks too"),
        ("all.csv", "mixed", "100 of these 178 rows were in the training table."),
        ("test.parquet", "unseen", None),
    ],
)
def test_evaluate_warns_about_training_rows(files, capsys, table, origin, warning):
    for more in ([], ["--chunk-rows", "7"]):
        assert main(["evaluate", "m.hmx", table, *more]) == 0
        out, err = capsys.readouterr()
        assert ("warning" in err) == (warning is not None)
        assert warning is None or f"hybridmix: warning: {warning}" in err
        assert "95 % interval" in out
        assert main(["evaluate", "m.hmx", table, "--json", *more]) == 0
        values = json.loads(capsys.readouterr().out)
        assert values["provenance"]["origin"] == origin
        assert (values["warning"] is None) == (warning is None)
        low, high = values["intervals"]["accuracy"]
        assert low < values["accuracy"] <= high


def test_evaluate_and_report_agree(files, capsys):
    assert main(["evaluate", "m.hmx", "test.parquet", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    command = ["report", "m.hmx", "test.parquet", "-o", "r.html", "--no-baselines", "-q"]
    assert main(command) == 0
    with open("r.html", encoding="utf-8") as stream:
        page = hybridmix.reporting.Report("", stream.read())
    text = text_of(page, "quality")
    for name in ("accuracy", "balanced_accuracy", "log_loss"):
        low, high = values["intervals"][name]
        assert f"{values[name]:.3f} ({low:.3f} to {high:.3f})" in text


def test_unlabelled_rows_do_not_count(files, capsys):
    table = pd.read_csv("all.csv")
    table.loc[table.index < 100, "kind"] = None
    table.to_csv("part.csv", index=False)
    assert main(["evaluate", "m.hmx", "part.csv", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["rows"], values["unlabelled"]) == (78, 100)
    assert values["provenance"]["origin"] == "unseen"
    assert values["provenance"]["judged"] == 78


def test_a_model_can_be_shared_without_its_fingerprint(wine, model, tmp_path):
    bare = clone(model).fit(wine[0][:100], wine[1][:100])
    del bare.fingerprint_
    hybridmix.save(bare, tmp_path / "bare.hmx")
    loaded = hybridmix.load(tmp_path / "bare.hmx")
    subject = Subject.of(loaded, wine[0], wine[1], 2, False, 0)
    assert subject.provenance.origin == Origin.UNKNOWN
    assert "no fingerprint" in subject.provenance.sentence


# Regression ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    X = X.iloc[:, :5].mask(rng.random((len(X), 5)) < 0.1)
    return X, y.mask(rng.random(len(y)) < 0.1)


@pytest.fixture(scope="module")
def regressor(diabetes):
    X, y = diabetes
    return plain_regressor().fit(X[:250], y[:250])


def test_unseen_rows_are_scored_by_the_regressor_that_is_given(diabetes, regressor):
    X, y = diabetes[0][250:], diabetes[1][250:]
    found = findings(regressor, X, y)
    assert found.retrained is None
    known = y.notna()
    targets = y[known].to_numpy()
    expected = regression_scores(targets, forecasts_of(regressor, X[known], targets))
    assert found.fitted.ours.scores[0] == expected
    np.testing.assert_array_equal(found.fitted.truth, targets)
    written = report(regressor, X, y, cv=2, baselines=False)
    n_known = int(known.sum())
    for anchor in ("summary", "quality"):
        text = text_of(written, anchor)
        assert f"on {n_known} rows with a target it has not seen" in text
    rmse = expected["RMSE"]
    assert f"{rmse.value:.2f} ({rmse.low:.2f} to {rmse.high:.2f})" in text_of(
        written, "quality"
    )


def test_regressors_are_compared_with_others_by_folds(diabetes, regressor):
    X, y = diabetes[0][:250], diabetes[1][:250]
    found = findings(regressor, X, y, baselines=True)
    trial = found.retrained
    assert found.fitted is None
    assert len(trial.rows) == y.notna().sum()
    names = [one.name for one in trial.contenders]
    assert names == [
        "this model",
        "ridge regression",
        "boosted trees",
        "random forest",
        "the mean",
    ]
    scores = {one.name: one for one in trial.contenders}
    assert scores["this model"].mean("R²") > 0.2
    assert abs(scores["the mean"].mean("R²")) < 0.1
    for one in trial.contenders:
        # About 110 rows in each fold.
        assert 0.8 < one.mean("coverage") < 0.97
        has_density = not np.isnan(one.mean("log predictive density"))
        assert has_density == (one.name == "this model")
    text = text_of(report(regressor, X, y, cv=2), "quality")
    assert "Rows without a target are in every training set of this model." in text
    assert "their intervals are conformal" in text


def test_obstacles_to_scores_of_regressors(diabetes, regressor):
    X, y = diabetes
    for model, targets, words in (
        (regressor, None, "No targets were given"),
        (regressor, y.where(np.arange(len(y)) < 5), "10 rows with a target or more"),
        (regressor, y * 0.0 + 1.0, "All targets are the same"),
    ):
        found = findings(model, X, targets)
        assert found.trials == []
        assert words in found.obstacle


def test_targets_in_a_table_of_one_column(diabetes):
    X, y = diabetes
    one = plain_regressor().fit(X[:250], y[:250].to_frame())
    other = plain_regressor().fit(X[:250], y[:250])
    pairs = [findings(model, X[250:], y[250:]) for model in (one, other)]
    assert pairs[0].fitted.ours.scores == pairs[1].fitted.ours.scores
    report(one, X[250:], y[250:].to_frame(), cv=2, baselines=False)


def test_the_choice_is_repeated_in_folds(diabetes):
    X, y = diabetes
    model = MixtureRegressor(effort="fast").fit(X, y)
    cases = Subject.of(model, X, y, 2, False, 7)
    fresh = task_of(model).fresh_model(cases)
    assert not hasattr(fresh, "model_")
    assert fresh.get_params() == {**model.get_params(), "random_state": 7}


def test_conformal_intervals_hold_what_they_should():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.gamma(1.0, size=3000)
    from sklearn.linear_model import LinearRegression

    model = ConformalRegressor(LinearRegression()).fit(X[:1000], y[:1000])
    quantiles = model.predict_quantiles(X[1000:], LEVELS)
    shares = np.mean(y[1000:, None] <= quantiles, axis=0)
    np.testing.assert_allclose(shares, LEVELS, atol=0.03)
    few = ConformalRegressor(LinearRegression()).fit(X[:8], y[:8])
    low, high = few.predict_quantiles(X[:1], [0.05, 0.95])[0] - few.predict(X[:1])
    assert (low, high) == (few.errors_[0], few.errors_[-1])


def test_the_best_of_a_metric():
    values = [0.5, 0.88, 0.97]
    assert Metric("a", "").best(values) == 0.97
    assert Metric("a", "", is_loss=True).best(values) == 0.5
    assert Metric("a", "", ideal=0.9).best(values) == 0.88
    # One that is alone is not the best.
    assert np.isnan(Metric("a", "").best([0.5, np.nan]))
