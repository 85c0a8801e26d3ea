"""Regressors of several targets: each on its own, in reports and on the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from cli_tools import read, write
from helpers import plain_regressor
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from test_report import Page, check

import hybridmix
from hybridmix import MixtureNetworkRegressor, MixtureRegressor
from hybridmix.metrics import regression_scores
from hybridmix.reporting import report
from hybridmix.reporting.findings import found_out
from hybridmix.reporting.subject import Subject
from hybridmix.tasks.regress import forecasts_of

N_TRAINED = 250
OF_TARGETS = {"target-0", "target-1", "target-2"}
SHARED = {"verdict", "summary", "columns", "map", "data"}
SHARED |= {"components", "density", "training", "reproduce"}


def make_tables():
    """Return rows with holes, and three targets: plain, sparse, with a spike."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    n_rows = len(X)
    skewed = np.exp(20.0 * X["bmi"] + 0.1 * rng.normal(size=n_rows))
    targets = pd.DataFrame(
        {
            "disease": y,
            "<rare>": X["bp"] + 0.05 * rng.normal(size=n_rows),
            "amount": skewed.where(rng.random(n_rows) < 0.7, 0.0),
        }
    )
    targets.loc[rng.random(n_rows) < 0.6, "<rare>"] = np.nan
    return X.iloc[:, :5].mask(rng.random((n_rows, 5)) < 0.1), targets


X, Y = make_tables()
REGRESSORS = {
    "mixtures": plain_regressor(
        n_components=2, covariance_prior=1.0, target_shapes="auto"
    ),
    "search": MixtureRegressor([1, 2], covariance_type="diag", random_state=0),
    "network": MixtureNetworkRegressor(2, covariance_type="diag", random_state=0),
}


@pytest.fixture(scope="module", params=REGRESSORS)
def model(request):
    return clone(REGRESSORS[request.param]).fit(X[:N_TRAINED], Y[:N_TRAINED])


def test_one_target_is_the_marginal_of_all(model, tmp_path):
    rows, targets = X[N_TRAINED:], Y[N_TRAINED:].to_numpy()
    mean, deviation = model.predict(rows, return_std=True)
    quantiles = model.predict_quantiles(rows)
    for k in range(3):
        one = model.for_target(k)
        assert one.n_outputs_ == one.target_ndim_ == 1
        own = one.predict(rows, return_std=True)
        np.testing.assert_allclose(own, (mean[:, k], deviation[:, k]), rtol=1e-8)
        found = one.predict_quantiles(rows)
        np.testing.assert_allclose(found, quantiles[:, k], rtol=1e-5, atol=1e-6)
        alone = np.full(targets.shape, np.nan)
        alone[:, k] = targets[:, k]
        np.testing.assert_allclose(
            one.log_predictive_density(rows, targets[:, k]),
            model.log_predictive_density(rows, alone),
            rtol=1e-8,
        )
        hybridmix.save(one, tmp_path / "one.hmx")
        loaded = hybridmix.load(tmp_path / "one.hmx")
        np.testing.assert_array_equal(loaded.predict(rows), one.predict(rows))
    # The whole is as it was.
    assert model.predict(rows).shape == (len(rows), 3)


def test_targets_that_are_not_there_are_refused(model):
    for target in (3, -1, 0.5):
        with pytest.raises(ValueError, match="target="):
            model.for_target(target)


def test_members_of_a_search_predict_the_same_target():
    model = clone(REGRESSORS["search"]).fit(X, Y)
    one = model.for_target(1)
    assert len(one.members_) == len(model.members_)
    np.testing.assert_allclose(
        one.members_[0].predict(X), model.members_[0].predict(X)[:, 1]
    )


# Reports ------------------------------------------------------------------------------


def test_scores_are_those_of_each_target(model):
    rows, targets = X[N_TRAINED:], Y[N_TRAINED:]
    found = found_out(Subject.of(model, rows, targets, 2, False, 0))
    assert len(found.parts) == 3
    for k, part in enumerate(found.parts):
        known = targets.iloc[:, k].notna()
        truth = targets.iloc[:, k][known].to_numpy()
        forecasts = forecasts_of(model.for_target(k), rows[known], truth)
        expected = regression_scores(truth, forecasts)
        for name, score in part.fitted.ours.scores[0].items():
            assert score.value == pytest.approx(expected[name].value, rel=1e-6)


def test_each_target_has_a_section(model):
    page = check(report(model, X, Y, cv=2, baselines=False).html, SHARED | OF_TARGETS)
    for k, name in enumerate(Y):
        text = page.text[f"target-{k}"]
        assert f"Target: {name}" in text
        for title in (
            "How good the model is",
            "Predictions and intervals",
            "When features go missing",
            "Which features matter",
        ):
            assert title in text
        n_known = int(Y[name].notna().sum())
        assert f"{n_known} of {len(Y)} rows have a target" in text
        assert f"R² of {name}" in page.text["summary"]
    assert "Each target has a section of its own" in page.text["data"]


def test_folds_compare_each_target_with_others():
    model = clone(REGRESSORS["network"]).fit(X, Y)
    found = found_out(Subject.of(model, X, Y, 2, True, 0))
    assert found.fitted is None
    whole = found.retrained
    # Every fold has its share of the rare target.
    counts = np.bincount(whole.folds[~np.isnan(whole.truth[:, 1])])
    assert np.ptp(counts) <= 1
    for k, part in enumerate(found.parts):
        trial = part.retrained
        names = [one.name for one in trial.contenders]
        assert names[0] == "this model"
        assert "ridge regression" in names
        known = ~np.isnan(whole.truth[:, k])
        np.testing.assert_array_equal(trial.truth, whole.truth[known, k])
        for one in trial.contenders:
            assert one.outputs.shape == (known.sum(), 13)
            X_held, truth = trial.held(one, 0, 10_000)
            errors = truth - np.ravel(one.models[0].predict(X_held))
            expected = np.sqrt(np.mean(errors**2))
            assert one.scores[0]["RMSE"].value == pytest.approx(expected)


def test_targets_of_few_rows_do_not_stop_the_others():
    rare = Y["<rare>"]
    few = Y.assign(**{"<rare>": rare.where(rare.notna().cumsum() <= 8)})
    model = clone(REGRESSORS["network"]).fit(X, few)
    page = Page(report(model, X, few, cv=2, baselines=False).html)
    for text in page.text["target-0"], page.text["target-1"]:
        assert "Only 8 rows have the target <rare>" in text or "are 8" in text
    model.fit(X[:N_TRAINED], few[:N_TRAINED])
    page = Page(report(model, X[N_TRAINED:], few[N_TRAINED:], baselines=False).html)
    assert "10 rows with a target or more; there are 0" in page.text["target-1"]
    assert "that the model as fitted has not seen" in page.text["target-2"]


def test_reports_without_targets_or_with_too_few(model):
    page = Page(report(model, X).html)
    for anchor in OF_TARGETS:
        assert "No targets were given" in page.text[anchor]
    with pytest.raises(ValueError, match="but the model predicts 3"):
        report(model, X, Y["disease"])


def test_targets_of_an_array_are_numbered():
    model = clone(REGRESSORS["network"]).fit(X, Y.to_numpy())
    page = Page(report(model, X, Y.to_numpy(), cv=2, baselines=False).html)
    assert "Target: target 2" in page.text["target-2"]


# The command line ---------------------------------------------------------------------


def test_commands_know_several_targets(shell, model):
    hybridmix.save(model, "model.hmx")
    write(pd.concat([X, Y], axis=1)[N_TRAINED:], "new.csv")
    shell.run("predict", "model.hmx", "new.csv", "-o", "out.csv", "--keep", "none")
    out = read("out.csv")
    np.testing.assert_allclose(
        out[[f"predicted_{name}" for name in Y]], model.predict(X[N_TRAINED:]), rtol=1e-6
    )
    assert list(out)[:3] == [f"predicted_disease{end}" for end in ("", "_low", "_high")]
    told = json.loads(shell.run("evaluate", "model.hmx", "new.csv", "--json"))
    assert list(told["targets"]) == list(Y)
    for k, name in enumerate(Y):
        errors = (model.predict(X[N_TRAINED:]) - Y[N_TRAINED:].to_numpy())[:, k]
        rmse = np.sqrt(np.nanmean(errors**2))
        assert told["targets"][name]["rmse"] == pytest.approx(rmse, rel=1e-6)
    shown = shell.run("evaluate", "model.hmx", "new.csv")
    assert shown.count("interval score") == 3
    assert "Target <rare>:" in shown
    shell.run("sample", "model.hmx", "-n", 7, "-o", "drawn.csv")
    assert list(read("drawn.csv")) == [*X, *Y]
    assert "predictions" in json.loads(shell.run("inspect", "model.hmx", "--json"))


def test_targets_under_other_names(shell):
    model = clone(REGRESSORS["network"]).fit(X[:N_TRAINED], Y[:N_TRAINED].to_numpy())
    hybridmix.save(model, "model.hmx")
    write(pd.concat([X, Y], axis=1)[N_TRAINED:], "new.csv")
    assert "add --target NAME" in shell.fail("evaluate", "model.hmx", "new.csv")
    named = ["--target", ",".join(Y)]
    told = json.loads(shell.run("evaluate", "model.hmx", "new.csv", *named, "--json"))
    assert list(told["targets"]) == list(Y)
    options = ["-o", "r.html", "--no-baselines", "--folds", 2]
    shell.run("report", "model.hmx", "new.csv", *named, *options)
    with open("r.html", encoding="utf-8") as stream:
        page = Page(stream.read())
    assert set(page.text) >= OF_TARGETS
    assert "as fitted has not seen" in page.text["target-1"]
    line = shell.fail("report", "model.hmx", "new.csv", "-t", "disease", *options)
    assert "predicts 3 targets; name as many columns" in line
    shell.run("predict", "model.hmx", "new.csv", "-o", "out.csv")
    assert "predicted_y2_low" in read("out.csv")
