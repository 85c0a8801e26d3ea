"""Sequences on the command line."""

import json

import numpy as np
import pytest
from cli_tools import read, write
from sequence_tools import SMALL, make_gestures

import hybridmix
from hybridmix import HMMDensity, HybridHMMClassifier, Sequences

FIT = ["--sequence", "recording", "--time", "t"]
QUICK = ["--states", 3, "--topology", "left-right", "--covariance", "diag", "--no-check"]
LABELLED = ["--target", "gesture", "--tradeoff", 1]


@pytest.fixture
def fitted(shell):
    write(make_gestures(30, 0, 4), "train.csv")
    shell.run("fit", "train.csv", "-o", "model.hmx", *FIT, *QUICK, *LABELLED)
    return "model.hmx"


def sequences_of(frame):
    return Sequences.from_long(frame.drop(columns="gesture"), "recording", "t")


# Fit ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_fit_is_that_of_the_library(shell, suffix):
    frame = make_gestures(30, 0, 4)
    table = write(frame, f"train.{suffix}")
    shell.run("fit", table, "-o", "model.hmx", *FIT, *QUICK, *LABELLED)
    assert "26 of 30 sequences have a label; classes: circle, wave" in shell.err
    assert "HybridHMMClassifier fitted to 30 sequences" in shell.err
    X, y = Sequences.from_long(frame, "recording", "t", target="gesture")
    expected = HybridHMMClassifier(**SMALL, unlabelled=None).fit(X, y)
    model = hybridmix.load("model.hmx")
    np.testing.assert_allclose(model.transitions_, expected.transitions_)
    np.testing.assert_allclose(model.means_, expected.means_)


def test_json_of_a_fit(shell):
    write(make_gestures(), "train.csv")
    command = ["fit", "train.csv", "-o", "m.hmx", *FIT, *QUICK, *LABELLED, "--json"]
    told = json.loads(shell.run(*command))
    assert (told["sequences"], told["states"]) == (30, 3)
    assert told["frames"] == len(make_gestures())
    kinds = {column["name"]: column["type"] for column in told["columns"]}
    assert kinds["recording"] == "sequence"
    assert kinds["t"] == "time"


def test_a_density_without_a_target(shell):
    frame = make_gestures()
    write(frame, "train.csv")
    options = [*FIT, "--states", 2, "--topology", "ergodic", "--covariance", "diag"]
    shell.run("fit", "train.csv", "--drop", "gesture", "-o", "density.hmx", *options)
    assert "fitted a density" in shell.err
    model = hybridmix.load("density.hmx")
    assert isinstance(model, HMMDensity)
    shell.run("predict", "density.hmx", "train.csv", "-o", "out.csv")
    out = read("out.csv")
    assert list(out) == ["recording", "frames", "log_density"]
    expected = model.score_samples(sequences_of(frame))
    np.testing.assert_allclose(out["log_density"], expected, rtol=1e-8)
    assert "Hidden states: 2, ergodic" in shell.run("inspect", "density.hmx")
    assert "nothing to evaluate" in shell.fail("evaluate", "density.hmx", "train.csv")


def test_ends_and_frames_before(shell):
    write(make_gestures(), "train.csv")
    command = ["fit", "train.csv", "-o", "m.hmx", "--exits", "--autoregressive"]
    given = ["--states", 2, "--topology", "ergodic", "--covariance", "tied"]
    shell.run(*command, "--drop", "gesture", *FIT, *given)
    model = hybridmix.load("m.hmx")
    assert model.exits
    assert model.regressions_.shape[-2:] == (len(model.schema_.real),) * 2
    assert "--exits is for sequences" in shell.fail(*command, "--target", "gesture")


def test_a_search_is_one_of_sequences(shell):
    write(make_gestures(16), "train.csv")
    options = [*FIT, "--target", "gesture", "--states", 2, "--covariance", "diag"]
    shell.run("fit", "train.csv", "-o", "model.hmx", *options)
    assert "on held-out sequences" in shell.err
    told = json.loads(shell.run("inspect", "model.hmx", "--json"))
    assert told["states"] == hybridmix.load("model.hmx").n_states_
    assert sum(row["share"] for row in told["leaderboard"]) == pytest.approx(1.0)
    shell.run("inspect", "model.hmx")


def test_weights_and_labels_are_those_of_sequences(shell):
    frame = make_gestures()
    number = frame["recording"].str[1:].astype(int)
    frame["w"] = 1.0 + number % 3
    # Rows without a label have that of their sequence.
    frame.loc[frame["t"] > 0, "gesture"] = None
    write(frame, "train.csv")
    options = [*FIT, *QUICK, *LABELLED, "--weight", "w"]
    told = json.loads(shell.run("fit", "train.csv", "-o", "m.hmx", *options, "--json"))
    assert told["labelled"] == 30
    X, y = Sequences.from_long(
        frame.drop(columns="w"), "recording", "t", target="gesture"
    )
    weights = [1.0 + int(name[1:]) % 3 for name in X.ids]
    expected = HybridHMMClassifier(**SMALL, unlabelled=None)
    expected.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(hybridmix.load("m.hmx").means_, expected.means_)
    frame.loc[frame["t"] == 0, "w"] = 9.0
    write(frame, "train.csv")
    message = shell.fail("fit", "train.csv", "-o", "m.hmx", *options)
    assert "--weight w: sequence 'r" in message
    assert "A sequence has one weight" in message


# Use ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_have_a_row_for_each_sequence(shell, fitted, suffix):
    frame = make_gestures(12, 1)
    table = write(frame, f"new.{suffix}")
    shell.run("predict", fitted, table, "-o", f"out.{suffix}", "--density")
    out, X = read(f"out.{suffix}"), sequences_of(frame)
    model = hybridmix.load(fitted)
    assert out["recording"].tolist() == X.ids.tolist()
    assert out["frames"].tolist() == X.lengths.tolist()
    assert out["predicted"].tolist() == model.predict(X).tolist()
    probabilities = out[["probability_circle", "probability_wave"]]
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-8)
    np.testing.assert_allclose(out["log_density"], model.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(out["typicality"], model.typicality(X), rtol=1e-8)


def test_states_of_each_frame(shell, fitted, monkeypatch):
    monkeypatch.setattr("hybridmix.cli.sequence_results.CHUNK_ROWS", 17)
    frame = make_gestures(12, 1)
    write(frame, "new.csv")
    options = ["--per-frame", "--keep", "recording,t", "--chunk-rows", 13]
    shell.run("predict", fitted, "new.csv", "-o", "out.csv", *options)
    out = read("out.csv")
    assert list(out) == ["recording", "t", "predicted", "state"]
    np.testing.assert_array_equal(out["t"], frame["t"])
    X = sequences_of(frame)
    model = hybridmix.load(fitted)
    for name, path in zip(X.ids, model.decode(X)[1], strict=True):
        own = out[out["recording"] == name].sort_values("t")
        np.testing.assert_array_equal(own["state"], path)


def test_evaluation_counts_sequences(shell, fitted):
    frame = make_gestures(20, 1, 3)
    write(frame, "new.csv")
    told = json.loads(shell.run("evaluate", fitted, "new.csv", "--json"))
    assert (told["sequences"], told["unlabelled"]) == (17, 3)
    assert told["provenance"]["origin"] == "unseen"
    X, y = Sequences.from_long(frame, "recording", "t", target="gesture")
    known = [k for k, label in enumerate(y) if label is not None]
    expected = hybridmix.load(fitted).score(X[known], y[known])
    assert told["accuracy"] == pytest.approx(expected)
    assert "17 sequences with a label, 3 without" in shell.run(
        "evaluate", fitted, "new.csv"
    )
    told = json.loads(shell.run("evaluate", fitted, "train.csv", "--json"))
    assert told["provenance"]["sentence"] == (
        "The model was trained on these 26 sequences."
    )
    assert "evaluate it on sequences it has not seen" in told["warning"]


def test_holes_are_filled_from_the_whole_sequence(shell, fitted):
    frame = make_gestures(12, 1)
    write(frame, "new.csv")
    shell.run("impute", "new.csv", "--model", fitted, "-o", "filled.csv")
    filled = read("filled.csv")
    assert not filled[["x", "y"]].isna().any().any()
    X = sequences_of(frame)
    expected = hybridmix.load(fitted).impute(X)
    own = Sequences.from_long(filled.drop(columns="gesture"), "recording", "t")
    np.testing.assert_allclose(own.frames["x"], expected.frames["x"], rtol=1e-8)
    message = shell.fail("impute", "new.csv", "-m", fitted, "-o", "f.csv", "--draw")
    assert "--draw is not for models of sequences" in message
    message = shell.fail("impute", "new.csv", "-o", "f.csv", "--sequence", "recording")
    assert "--sequence needs a model of sequences: MODEL TABLE" in message


def test_outliers_are_sequences(shell, fitted):
    frame = make_gestures(12, 1)
    frame.loc[frame["recording"] == "r7", "x"] += 9.0
    write(frame, "new.csv")
    command = ["outliers", "new.csv", "-m", fitted, "-o", "flagged.csv"]
    told = json.loads(shell.run(*command, "--json"))
    assert told["sequences"] == 12
    assert told["worst"][0]["cells"]["recording"] == "r7"
    flagged = read("flagged.csv")
    assert flagged.set_index("recording")["outlier"]["r7"]
    assert "1 of 12 sequences is an outlier" in shell.run(*command)


def test_drawn_sequences_can_be_read_again(shell, fitted):
    shell.run("sample", fitted, "-n", 40, "-o", "drawn.csv")
    assert "40 sequences drawn" in shell.err
    assert list(read("drawn.csv")) == ["recording", "t", "x", "y", "hand", "gesture"]
    told = json.loads(shell.run("evaluate", fitted, "drawn.csv", "--json"))
    assert told["sequences"] == 40
    assert told["accuracy"] > 0.8


def test_a_report_from_the_command_line(shell, fitted):
    write(make_gestures(20, 1), "new.csv")
    shell.run("report", fitted, "new.csv", "-o", "r.html", "--no-baselines")
    with open("r.html", encoding="utf-8") as stream:
        page = stream.read()
    assert "None of these 20 sequences equals a training sequence." in page
    assert "States over time" in page


def test_inspection(shell, fitted):
    told = json.loads(shell.run("inspect", fitted, "--json"))
    assert told["sequence"] == ["recording"]
    assert told["time"] == "t"
    assert (told["states"], told["topology"]) == (3, "left-right")
    model = hybridmix.load(fitted)
    np.testing.assert_allclose(told["classes"][1]["transitions"], model.transitions_[1])
    shown = shell.run("inspect", fitted)
    assert "sequence: recording" in shown
    assert "to the end" in shown


def test_models_from_python_need_the_names(shell):
    frame = make_gestures()
    write(frame, "train.csv")
    X, y = Sequences.from_long(frame, "recording", "t", target="gesture")
    model = HybridHMMClassifier(**SMALL).fit(X, y)
    hybridmix.save(model, "model.hmx")
    message = shell.fail("predict", "model.hmx", "train.csv")
    assert "add --sequence NAME" in message
    out = shell.run("predict", "model.hmx", "train.csv", *FIT)
    assert len(out.splitlines()) == 31
    told = json.loads(
        shell.run("evaluate", "model.hmx", "train.csv", *FIT, "-t", "gesture", "--json")
    )
    assert told["accuracy"] == pytest.approx(model.score(X, y))


def test_models_of_arrays_take_the_other_columns_in_order(shell):
    frame = make_gestures().drop(columns="hand")
    write(frame, "train.csv")
    X, y = Sequences.from_long(frame, "recording", "t", target="gesture")
    arrays = [part.to_numpy() for part in X]
    model = HybridHMMClassifier(**SMALL).fit(arrays, y)
    hybridmix.save(model, "model.hmx")
    options = [*FIT, "--target", "gesture", "--json"]
    told = json.loads(shell.run("evaluate", "model.hmx", "train.csv", *options))
    assert told["accuracy"] == pytest.approx(model.score(arrays, y))
    assert told["provenance"]["origin"] == "seen"


def test_columns_that_a_table_lacks(shell, fitted):
    frame = make_gestures(12, 1)
    write(frame.drop(columns="y"), "new.csv")
    assert "lacks 'y'" in shell.fail("predict", fitted, "new.csv")
    options = ["--allow-missing", "-o", "out.csv"]
    shell.run("predict", fitted, "new.csv", *options)
    model = hybridmix.load(fitted)
    expected = model.predict_proba(sequences_of(frame.assign(y=np.nan)))[:, 1]
    np.testing.assert_allclose(read("out.csv")["probability_wave"], expected, rtol=1e-8)


# Ids and times ------------------------------------------------------------------------


def test_several_columns_may_name_a_sequence(shell):
    frame = make_gestures()
    number = frame["recording"].str[1:].astype(int)
    frame = frame.assign(speaker=number // 10, take=number % 10).drop(columns="recording")
    write(frame, "train.csv")
    keys = ["--sequence", "speaker,take", "--time", "t"]
    shell.run("fit", "train.csv", "-o", "m.hmx", *keys, *QUICK, *LABELLED)
    shell.run("predict", "m.hmx", "train.csv", "-o", "out.parquet")
    out = read("out.parquet")
    assert list(out)[:3] == ["speaker", "take", "frames"]
    assert len(out) == 30
    assert out["take"].dtype.kind == "i"
    shell.run("sample", "m.hmx", "-n", 2, "-o", "drawn.csv")
    assert list(read("drawn.csv"))[:3] == ["speaker", "take", "t"]


def test_times_may_be_dates_or_fractions(shell, fitted):
    frame = make_gestures(12, 1)
    write(frame, "new.csv")
    expected = shell.run("predict", fitted, "new.csv")
    minutes = (frame["t"] // 10).map("2024-05-01T10:{:02d}".format)
    for times in (frame["t"] / 1000.0, minutes, 10**17 + frame["t"]):
        for suffix in ("csv", "parquet"):
            table = write(frame.assign(t=times), f"other.{suffix}")
            assert shell.run("predict", fitted, table) == expected


def test_rows_are_in_order_without_times(shell):
    frame = make_gestures().sort_values(["recording", "t"]).drop(columns="t")
    write(frame, "train.csv")
    options = ["--sequence", "recording", *QUICK, *LABELLED]
    shell.run("fit", "train.csv", "-o", "m.hmx", *options)
    X = Sequences.from_long(frame.drop(columns="gesture"), "recording")
    shell.run("predict", "m.hmx", "train.csv", "-o", "out.csv")
    expected = hybridmix.load("m.hmx").predict(X).tolist()
    assert read("out.csv")["predicted"].tolist() == expected


def test_ids_with_leading_zeros_stay_text(shell, fitted):
    frame = make_gestures(12, 1)
    frame["recording"] = frame["recording"].str[1:].str.zfill(3)
    write(frame, "new.csv")
    assert "\n007," in shell.run("predict", fitted, "new.csv")


def _without(column, row):
    frame = make_gestures()
    frame.loc[row, column] = None
    return frame


def _twice():
    frame = make_gestures()
    frame.loc[3, ["recording", "t"]] = frame.loc[8, ["recording", "t"]]
    return frame


def _with_time(text):
    frame = make_gestures().astype({"t": object})
    frame.loc[4, "t"] = text
    return frame


def _with_other_label():
    frame = make_gestures()
    frame.loc[frame["t"] == 0, "gesture"] = "circle"
    return frame


@pytest.mark.parametrize(
    ("frame", "parts"),
    [
        (_without("recording", 2), ["row 3", "'recording'", "remove the row"]),
        (_without("t", 5), ["row 6", "'t'", "when each row was"]),
        (_twice(), ["two frames at the time", "rows 4 and 9", "Drop one"]),
        (_with_time("noon"), ["--time t: row 5", "'noon'", "numbers, or dates"]),
        (_with_time("2024-05-01"), ["--time t: row 5", "one or the other"]),
        (_with_other_label(), ["several labels", "'gesture'", "one label"]),
    ],
)
def test_tables_that_are_not_sequences(shell, frame, parts):
    write(frame, "train.csv")
    message = shell.fail("fit", "train.csv", "-o", "m.hmx", *FIT, *QUICK, *LABELLED)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--time", "t"], "add --sequence NAME"),
        (["--states", 3], "--states is for sequences: add --sequence NAME"),
        (["--topology", "ergodic"], "--topology is for sequences"),
        (["--sequence", "record"], "Did you mean 'recording'?"),
        ([*FIT, "--target", "t"], "cannot be time and target at once"),
        ([*FIT, "--drop", "t"], "cannot be time and dropped at once"),
        ([*FIT, "-t", "gesture", "--tune"], "--tune is not for sequences"),
        ([*FIT, "-t", "gesture", "--task", "regress"], "--task regress is not for"),
        ([*FIT, "-t", "gesture", "--method", "network"], "--method network is not for"),
        ([*FIT, "-t", "gesture", "--components", "1,2"], "components per state"),
        ([*FIT, "--tradeoff", 3], "--tradeoff needs a target"),
    ],
)
def test_options_that_contradict_each_other(shell, options, part):
    write(make_gestures(), "train.csv")
    assert part in shell.fail("fit", "train.csv", "-o", "m.hmx", *options)


def test_numbers_are_not_predicted_from_sequences(shell):
    frame = make_gestures()
    frame["score"] = frame["recording"].str[1:].astype(int) / 7.0
    write(frame, "train.csv")
    message = shell.fail("fit", "train.csv", "-o", "m.hmx", *FIT, "-t", "score")
    assert "numbers are not predicted from sequences" in message


def test_options_of_a_prediction(shell, fitted):
    write(make_gestures(12, 1), "new.csv")
    predict = ["predict", fitted, "new.csv"]
    assert "Add --per-frame" in shell.fail(*predict, "--keep", "x")
    assert "is for regressors" in shell.fail(*predict, "--coverage", 0.5)
    assert "leave out --per-frame" in shell.fail(*predict, "--density", "--per-frame")
    write(make_gestures(12, 1).drop(columns="t"), "new.csv")
    assert "--time: new.csv has no column 't'" in shell.fail(*predict)


def test_options_of_sequences_for_a_model_of_rows(shell):
    write(make_gestures(), "train.csv")
    options = ["--drop", "recording,gesture", "--components", 1, "--covariance", "diag"]
    shell.run("fit", "train.csv", "-o", "rows.hmx", *options)
    predict = ["predict", "rows.hmx", "train.csv"]
    assert "is for models of sequences" in shell.fail(*predict, "--per-frame")
    assert "--sequence is for models of sequences; the model is a MixtureDensity" in (
        shell.fail(*predict, "--sequence", "recording")
    )
