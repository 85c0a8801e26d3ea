"""Networks on the command line."""

import json

import numpy as np
import pytest
from cli_tools import make_table, read, write
from test_cli_regression import features, make_prices

import hybridmix
from hybridmix import MixtureNetworkClassifier, MixtureNetworkRegressor

SMALL = ["--components", 1, "--covariance", "diag"]


def fit_to_numbers(shell, *options):
    write(make_prices(), "train.csv")
    command = ["fit", "train.csv", "-t", "price", "-o", "model.hmx", "--no-check"]
    return shell.run(*command, "--method", "network", *options)


def test_numbers_are_predicted_by_a_network(shell):
    told = json.loads(fit_to_numbers(shell, *SMALL, "--json"))
    assert told["class"] == "MixtureNetworkRegressor"
    model = hybridmix.load("model.hmx")
    assert isinstance(model, MixtureNetworkRegressor)
    assert told["weights"] == model.weights_.size
    assert told["deviations"] == pytest.approx(model.deviations_)
    fit_to_numbers(shell, *SMALL)
    assert f"a linear layer of {model.weights_.size} weights" in shell.err
    frame = make_prices(50, seed=1)
    write(frame, "new.csv")
    shell.run("predict", "model.hmx", "new.csv", "-o", "out.csv", "--density")
    out = read("out.csv")
    np.testing.assert_allclose(out["predicted"], model.predict(features(frame)), 1e-6)
    ends = out[["predicted_low", "predicted_high"]]
    np.testing.assert_allclose(ends, model.predict_interval(features(frame)), 1e-6)
    told = json.loads(shell.run("evaluate", "model.hmx", "new.csv", "--json"))
    assert told["r2"] == pytest.approx(model.score(features(frame), frame["price"]))
    assert 0.7 < told["coverage"] <= 1.0
    told = json.loads(shell.run("inspect", "model.hmx", "--json"))
    assert told["predictions"]["features"] == ["posterior", "linear"]
    assert "standard deviation" in shell.run("inspect", "model.hmx")
    shell.run("sample", "model.hmx", "-n", 20, "-o", "drawn.csv")
    assert read("drawn.csv")["price"].notna().all()
    options = ["-o", "r.html", "--no-baselines", "--folds", 2]
    shell.run("report", "model.hmx", "train.csv", *options)
    with open("r.html", encoding="utf-8") as stream:
        page = stream.read()
    assert "an output layer of" in page
    assert "The output layer was fitted after it." in page
    assert "intervals of the same width in every row" in page
    assert "predicts from the expected features of a row" in page


def test_a_search_for_the_mixture_is_reported_as_one_of_densities(shell):
    fit_to_numbers(shell, "--components", "1,2")
    assert "candidates were compared" in shell.err
    options = ["-o", "r.html", "--no-baselines", "--folds", 2]
    shell.run("report", "model.hmx", "train.csv", *options)
    with open("r.html", encoding="utf-8") as stream:
        page = stream.read()
    assert "mean log density per row" in page


@pytest.mark.parametrize("options", [SMALL, ["--effort", "fast"], []])
def test_classes_are_predicted_by_a_network(shell, options):
    frame = make_table(80).drop(columns=["id", "day"])
    write(frame, "train.csv")
    command = [
        "fit",
        "train.csv",
        "-t",
        "kind",
        "-o",
        "model.hmx",
        "--json",
        "--no-check",
    ]
    told = json.loads(shell.run(*command, "--method", "network", *options))
    assert told["class"] == "MixtureNetworkClassifier"
    model = hybridmix.load("model.hmx")
    assert isinstance(model, MixtureNetworkClassifier)
    write(make_table(40, seed=1).drop(columns=["id", "day"]), "new.csv")
    shell.run("predict", "model.hmx", "new.csv", "-o", "out.csv", "--density")
    assert set(read("out.csv")["predicted"]) <= set(model.classes_)
    assert json.loads(shell.run("evaluate", "model.hmx", "new.csv", "--json"))["rows"] > 9
    assert "MixtureNetworkClassifier(" in shell.run("inspect", "model.hmx")
    options = ["-o", "r.html", "--no-baselines", "--folds", 2]
    shell.run("report", "model.hmx", "new.csv", *options)


def test_options_reach_the_network(shell):
    write(make_table().drop(columns=["id", "day"]), "train.csv")
    command = [
        "fit",
        "train.csv",
        "-t",
        "kind",
        "-o",
        "model.hmx",
        "--seed",
        3,
        "--no-check",
    ]
    given = ["--objective", "conditional", "--tradeoff", 2, "--calibrate", "--jobs", 1]
    shell.run(*command, "--method", "network", *SMALL, *given)
    model = hybridmix.load("model.hmx")
    wanted = ("conditional", 2.0, True, 1, 3, "diag")
    found = (
        model.objective,
        model.tradeoff,
        model.calibrate,
        model.n_jobs,
        model.random_state,
        model.covariance_type,
    )
    assert found == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-t", "size", "--tradeoff", 1], "--tradeoff is not an option of a network"),
        (["-t", "size", "--calibrate"], "--calibrate is not an option of a network"),
        (["-t", "size", "--objective", "margin"], "--objective is for classifiers"),
        (["-t", "kind", "--tune"], "--tune searches among mixtures"),
        (["-t", "kind", "--objective", "likelihood"], "objective='likelihood'"),
        ([], "--method network needs a target"),
    ],
)
def test_options_that_contradict_a_network_are_refused(shell, options, words):
    write(make_table().drop(columns=["id", "day"]), "train.csv")
    command = ["fit", "train.csv", "-o", "model.hmx", "--method", "network", *options]
    assert words in shell.fail(*command)


def test_unknown_methods_are_refused(shell):
    write(make_table(), "train.csv")
    line = shell.fail("fit", "train.csv", "-o", "m.hmx", "-t", "kind", "--method", "tree")
    assert "is not one of mixture, network" in line
