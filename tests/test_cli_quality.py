"""The command line: how good a model is on rows that it has not seen."""

import json

import numpy as np
import pytest
from cli_tools import QUICK, make_table, pd, write
from helpers import plain_classifier
from sequence_tools import make_gestures

from hybridmix._estimates import Estimate
from hybridmix.cli.quality import Quality
from hybridmix.reporting.subject import Subject
from hybridmix.tasks import task_of
from hybridmix.tasks.trials import cross_validated

CHECKED = QUICK[:-1]  # the last one is --no-check


def quality_of(shell, *arguments):
    command = ["fit", "t.csv", "-o", "m.hmx", "--json", *arguments]
    return json.loads(shell.run(*command))["quality"]


def test_classes_are_compared_with_the_most_frequent_one(shell):
    write(make_table(), "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *CHECKED)
    found = quality_of(shell, "-t", "kind", *CHECKED)
    assert (found["scored"], found["models"]) == (48, 5)
    assert found["metric"] == "accuracy"
    assert found["most_frequent_class"] == 0.5
    low, high = found["interval"]
    assert 0.7 < low < found["value"] < high <= 1.0
    assert not found["options_chosen_on_scored"]
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *CHECKED)
    lines = shell.err.splitlines()[-3:]
    expected = f"{found['value']:.2f} ({low:.2f} to {high:.2f})"
    assert lines[0].startswith(f"Accuracy about {expected} ")
    assert lines[0].endswith(" on new rows; most frequent class 0.50")
    assert "48 of 48 labelled rows, scored by 5 models" in lines[1]
    assert lines[2] == "Next: hybridmix report m.hmx t.csv -o report.html"


@pytest.mark.parametrize(
    ("share", "n_scored", "words", "sign"),
    [
        (1.0, 12, "1.00 (0.76 to 1.00)", "in brackets is"),
        (0.8, 400, "0.80 ± 0.04", "± is"),
    ],
)
def test_intervals_that_end_at_one_are_written_with_both_ends(
    share, n_scored, words, sign
):
    found = Quality(
        "accuracy",
        Estimate.of_share(share, n_scored),
        comparison="",
        figures={},
        rival="the most frequent class",
        floor=0.3,
        unit="row",
        units="rows",
        n_scored=n_scored,
        n_trained=n_scored,
        n_available=n_scored,
        n_models=1,
        keeps_choice=False,
    ).lines
    assert found[0].startswith(f"Accuracy about {words} on new rows")
    assert f"{sign} the 95 % interval" in found[-1]


def test_labels_that_mean_nothing_are_not_predicted(shell):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 8)).round(3), columns=list("abcdefgh"))
    frame["kind"] = np.where(np.arange(80) % 2, "yes", "no")
    write(frame, "t.csv")
    options = ["--objective", "likelihood", "--covariance", "full", "--components", "2"]
    found = quality_of(shell, "-t", "kind", *options)
    assert found["value"] < 0.65  # above 0.9 on the training rows
    frame["kind"] = np.where(np.arange(80) % 8, "yes", "no")
    write(frame, "rare.csv")
    shell.run("fit", "rare.csv", "-t", "kind", "-o", "rare.hmx", *options)
    assert "most frequent class 0.88; balanced accuracy 0." in shell.err
    assert "may be no better than the most frequent class\n" in shell.err
    scores = json.loads(shell.run("evaluate", "m.hmx", "t.csv", "--json"))
    assert scores["accuracy"] > 0.85


def test_numbers_are_compared_with_their_mean(shell):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    frame = pd.DataFrame({"x": x, "price": 5.0 * x + rng.normal(size=100)}).round(3)
    write(frame, "t.csv")
    quick = ["--components", 1, "--covariance", "full", "--tradeoff", 0]
    found = quality_of(shell, "-t", "price", *quick)
    assert found["metric"] == "R²"
    assert found["value"] == pytest.approx(
        1.0 - (found["rmse"] / found["rmse_of_mean"]) ** 2, abs=0.01
    )
    assert 0.9 < found["rmse"] < 1.2


def test_densities_are_compared_with_independent_columns(shell):
    write(make_table(), "t.csv")
    found = quality_of(shell, "--components", "1", "--covariance", "full")
    assert found["metric"] == "mean log density"
    assert (found["scored"], found["options_chosen_on_scored"]) == (60, False)
    assert np.isfinite(found["independent_columns"])
    assert quality_of(shell)["options_chosen_on_scored"]


@pytest.mark.parametrize(
    ("options", "metric"),
    [
        (["-t", "gesture", "--tradeoff", 0], "accuracy"),
        (["--drop", "gesture"], "log density per frame"),
    ],
)
def test_sequences_are_held_out_as_a_whole(shell, options, metric):
    write(make_gestures(30, 0), "t.csv")
    keys = ["--sequence", "recording", "--time", "t"]
    structure = ["--states", 2, "--topology", "left-right", "--covariance", "diag"]
    found = quality_of(shell, *keys, *structure, *options)
    assert (found["metric"], found["scored"]) == (metric, 30)


def test_a_limit_of_time_holds_for_the_estimate_as_well(shell):
    write(make_table(), "t.csv")
    command = ["-t", "kind", "--seconds", "2", "--covariance", "diag"]
    assert quality_of(shell, *command)["models"] == 1
    message = shell.fail("fit", "t.csv", "-o", "m.hmx", *command, "--effort", "fast")
    assert "--seconds is an --effort of its own" in message


def test_models_without_an_estimate(shell):
    frame = make_table()
    write(frame, "t.csv")
    assert shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", "-q", *CHECKED) == ""
    assert shell.err.count("is left out") == 2
    write(frame.assign(kind="yes"), "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *CHECKED)
    assert "Its quality on new rows is not known. The model knows a single" in shell.err


def test_weights_count_in_the_models_of_folds():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = rng.normal(4.0 * y, 1.0)[:, None]
    wrong = rng.random(100) < 0.45
    labels = np.where(wrong, 1 - y, y)
    weights = np.where(wrong, 1e-9, 1.0)
    model = plain_classifier("likelihood").fit(X, labels, sample_weight=weights)
    cases = Subject.of(model, X, y, 5, False, 0)
    task = task_of(model)
    trial = cross_validated(
        task, cases, with_baselines=False, most_folds=2, weights=weights
    )
    assert trial.n_folds == 2
    assert len(trial.rows) == 40
    assert trial.ours.mean("accuracy") > 0.9
