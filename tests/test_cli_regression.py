"""Regressors on the command line."""

import json

import numpy as np
import pytest
from cli_tools import QUICK, make_table, pd, read, write

import hybridmix
from hybridmix.cli.tallies import TargetTally
from hybridmix.metrics import regression_scores
from hybridmix.tasks.regress import forecasts_of

PLAIN = ["--components", 1, "--covariance", "full", "--tradeoff", 0]
SCORES = {
    "RMSE": "rmse",
    "MAE": "mae",
    "R²": "r2",
    "coverage": "coverage",
    "interval score": "interval_score",
    "log predictive density": "log_predictive_density",
}


def make_prices(n_rows=200, seed=0):
    """A table with a target that depends on its columns; some targets are missing."""
    rng = np.random.default_rng(seed)
    frame = make_table(n_rows, seed).drop(columns=["id", "day", "kind"])
    noise = rng.normal(size=n_rows)
    price = 20.0 + 3.0 * frame["size"].fillna(1.5) + noise
    price += 4.0 * (frame["colour"] == "red")
    return frame.assign(price=price.mask(rng.random(n_rows) < 0.15))


@pytest.fixture
def fitted(shell):
    write(make_prices(), "train.csv")
    shell.run("fit", "train.csv", "-t", "price", "-o", "model.hmx", *PLAIN)
    return "model.hmx"


def features(frame):
    return frame.drop(columns="price").astype({"count": float})


def test_fit_says_what_it_did(shell):
    frame = make_prices()
    write(frame, "train.csv")
    command = ["fit", "train.csv", "-t", "price", "-o", "model.hmx", *PLAIN]
    told = json.loads(shell.run(*command, "--json"))
    n_known = int(frame["price"].notna().sum())
    assert told["class"] == "MixtureRegressor"
    assert (told["task"], told["rows"], told["with_target"]) == ("regress", 200, n_known)
    assert told["mean"] == pytest.approx(frame["price"].mean())
    target = next(column for column in told["columns"] if column["type"] == "target")
    assert target["why"].endswith("different numbers: regression")
    shell.run(*command)
    assert f"{n_known} of 200 rows have a target: mean" in shell.err
    model = hybridmix.load("model.hmx")
    assert told["mixtures"] == len(model.predictive_.members)
    assert "Predictions come from" in shell.err
    # Rows without a target are learned from.
    assert model.fingerprint_.n_rows == 200


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predict_writes_means_and_intervals(shell, fitted, suffix):
    table, frame = (
        write(make_prices(50, seed=1), f"new.{suffix}"),
        make_prices(50, seed=1),
    )
    shell.run("predict", fitted, table, "-o", "out.csv", "--chunk-rows", 7)
    out, model = read("out.csv"), hybridmix.load(fitted)
    expected = model.predict(features(frame))
    np.testing.assert_allclose(out["predicted"], expected, rtol=1e-6)
    interval = model.predict_interval(features(frame), 0.9)
    np.testing.assert_allclose(out[["predicted_low", "predicted_high"]], interval, 1e-6)
    assert list(out)[-3:] == ["predicted", "predicted_low", "predicted_high"]
    options = ["--coverage", 0.5, "--keep", "none", "--density"]
    shell.run("predict", fitted, table, "-o", "out.csv", *options)
    narrow = read("out.csv")
    assert "typicality" in narrow
    assert "size" not in narrow
    widths = narrow["predicted_high"] - narrow["predicted_low"]
    assert np.all(widths < np.diff(interval)[:, 0])
    for coverage in ("0", "1"):
        line = shell.fail("predict", fitted, table, "--coverage", coverage)
        assert f"--coverage {coverage}: give a share between 0 and 1" in line


@pytest.mark.parametrize("chunk_rows", [9, 10_000])
def test_evaluate_scores_rows_with_a_target(shell, fitted, chunk_rows):
    frame = make_prices(80, seed=1)
    write(frame, "new.csv")
    command = ["evaluate", fitted, "new.csv", "--chunk-rows", chunk_rows]
    told = json.loads(shell.run(*command, "--json"))
    known = frame[frame["price"].notna()]
    model, targets = hybridmix.load(fitted), known["price"].to_numpy()
    expected = regression_scores(targets, forecasts_of(model, features(known), targets))
    assert (told["rows"], told["without_target"]) == (len(known), 80 - len(known))
    for name, key in SCORES.items():
        assert told[key] == pytest.approx(expected[name].value, rel=1e-6)
        assert told["intervals"][key] == pytest.approx(
            [expected[name].low, expected[name].high], rel=1e-5
        )
    assert told["provenance"]["origin"] == "unseen"
    shown = shell.run(*command)
    assert f"{len(known)} rows with a target, {80 - len(known)} without" in shown
    assert f"{told['rmse']:.4f}" in shown
    assert "interval score" in shown


def test_evaluate_warns_of_training_rows(shell, fitted):
    shell.run("evaluate", fitted, "train.csv")
    assert "looks too good" in shell.err


def test_marks_of_missing_targets(shell):
    frame = make_prices()
    write(frame.assign(price=frame["price"].fillna(-1.0)), "marked.csv")
    write(frame, "train.csv")
    options = ["-t", "price", *PLAIN, "-q"]
    shell.run("fit", "marked.csv", "-o", "marked.hmx", "--unlabelled", "-1", *options)
    shell.run("fit", "train.csv", "-o", "plain.hmx", *options)
    models = [hybridmix.load(f"{name}.hmx") for name in ("marked", "plain")]
    one, other = (model.predict(features(frame)) for model in models)
    np.testing.assert_allclose(one, other)
    told = json.loads(shell.run("evaluate", "marked.hmx", "marked.csv", "--json"))
    assert told["without_target"] == frame["price"].isna().sum()


def test_other_commands(shell, fitted):
    frame = make_prices(60, seed=2)
    write(frame, "new.csv")
    told = json.loads(shell.run("inspect", fitted, "--json"))
    assert told["class"] == "MixtureRegressor"
    assert told["target"] == "price"
    model = hybridmix.load(fitted)
    assert told["predictions"]["mixtures"] == len(model.predictive_.members)
    assert "Predictions come from" in shell.run("inspect", fitted)
    shell.run("sample", fitted, "-n", 20, "-o", "drawn.csv")
    drawn = read("drawn.csv")
    assert list(drawn) == [*features(frame), "price"]
    assert drawn["price"].between(0.0, 60.0).all()
    shell.run("impute", "new.csv", "-m", fitted, "-o", "filled.csv")
    filled = read("filled.csv")
    assert filled["size"].notna().all()
    # The target is predicted, not filled.
    assert filled["price"].isna().sum() == frame["price"].isna().sum()
    shell.run("outliers", "new.csv", "-m", fitted)
    shell.run("report", fitted, "new.csv", "-o", "r.html", "--no-baselines", "--folds", 2)
    with open("r.html", encoding="utf-8") as stream:
        page = stream.read()
    assert "Predictions and intervals" in page
    assert "rows with a target it has not seen" in page


def test_models_from_python(shell):
    frame = make_prices().dropna(subset="price")
    model = hybridmix.MixtureRegressor(1, covariance_type="diag", tradeoff=0.0)
    X = features(frame)[["size", "count"]]
    hybridmix.save(model.fit(X, frame[["price"]]), "one.hmx")
    targets = np.column_stack([frame["price"], frame["price"]])
    hybridmix.save(model.fit(X, targets), "two.hmx")
    write(frame, "t.csv")
    assert "add --target NAME" in shell.fail("evaluate", "one.hmx", "t.csv")
    told = json.loads(shell.run("evaluate", "one.hmx", "t.csv", "-t", "price", "--json"))
    assert told["rows"] == len(frame)
    shell.run("predict", "one.hmx", "t.csv")
    line = shell.fail("evaluate", "two.hmx", "t.csv", "-t", "price")
    assert "predicts 2 targets; name as many columns" in line
    assert "add --target NAME" in shell.fail("evaluate", "two.hmx", "t.csv")


def test_wrong_tasks_are_named(shell, fitted):
    frame = make_table().drop(columns=["id", "day"])
    write(frame, "t.csv")
    command = ["fit", "t.csv", "-o", "m.hmx"]
    line = shell.fail(*command, "-t", "colour", "--task", "regress")
    assert "--task regress: row 1 of --target colour has" in line
    assert "--task classify" in line
    assert "--task regress needs a target" in shell.fail(*command, "--task", "regress")
    assert "is not one of classify, regress" in shell.fail(
        *command, "-t", "kind", "--task", "cluster"
    )
    for option in (["--tune"], ["--objective", "hybrid"]):
        line = shell.fail(*command, "-t", "size", *option)
        assert f"{option[0]} is for classifiers" in line
        assert "--task classify" in line
    shell.run(*command, "-t", "kind", *QUICK)
    line = shell.fail("predict", "m.hmx", "t.csv", "--coverage", "0.8")
    assert "--coverage is for regressors" in line
    shell.run("fit", "t.csv", "-o", "d.hmx", "--components", 1)
    assert "nothing to evaluate" in shell.fail("evaluate", "d.hmx", "t.csv", "-t", "kind")
    words = make_prices().assign(price="dear")
    write(words, "words.csv")
    line = shell.fail("evaluate", fitted, "words.csv")
    assert "column 'price' is real, but row 1 has 'dear'" in line
    write(make_prices().assign(price=np.nan), "empty.csv")
    assert "no row with a target" in shell.fail("evaluate", fitted, "empty.csv")


def test_tallies_of_chunks_are_the_scores_of_all_rows():
    rng = np.random.default_rng(0)
    targets = 1e6 + rng.normal(size=500)
    spread = np.linspace(-1.6, 1.6, 11)
    means = targets + rng.normal(size=500)
    forecasts = np.column_stack([means, rng.normal(size=500), means[:, None] + spread])
    tally = TargetTally()
    for rows in np.array_split(np.arange(500), [1, 2, 200]):
        tally.add(targets[rows], forecasts[rows])
    tally.add(np.full(5, np.nan), forecasts[:5])
    values = tally.values()
    expected = regression_scores(targets, forecasts)
    assert (values["rows"], values["without_target"]) == (500, 5)
    for name, key in SCORES.items():
        assert values[key] == pytest.approx(expected[name].value, rel=1e-9)
    assert values["provenance"]["origin"] == "unknown"


def test_a_target_that_a_table_lacks_is_not_reported_on(shell, fitted):
    write(make_prices(40).drop(columns="price"), "new.csv")
    shell.run("report", fitted, "new.csv", "-o", "r.html", "-q")
    with open("r.html", encoding="utf-8") as stream:
        assert "No targets were given" in stream.read()


def test_predictions_may_be_joined_to_any_names(shell, fitted):
    frame = make_prices(20).assign(predicted_low=1.0)
    write(frame, "new.csv")
    line = shell.fail("predict", fitted, "new.csv", "-o", "out.csv")
    assert "already has a column 'predicted_low'" in line
    shell.run("predict", fitted, "new.csv", "-o", "out.csv", "--keep", "size")
    assert isinstance(read("out.csv"), pd.DataFrame)
