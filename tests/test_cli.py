"""The command line: what its commands do."""

import json
import os
import re

import numpy as np
import pytest
from cli_tools import FORMATS, QUICK, make_table, model_frame, pd, pq, read, write
from helpers import plain_classifier
from scipy.special import softmax
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    roc_auc_score,
)

import hybridmix
from hybridmix.cli.tallies import Tally
from hybridmix.metrics import calibration_report

# All commands, all formats ------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_all_commands_on_all_formats(shell, suffix):
    table = write(make_table(), f"table.{suffix}")
    shell.run("fit", table, "--target", "kind", "-o", "model.hmx", *QUICK)
    assert shell.out == ""
    assert "48 of 60 rows have a label; classes: no, yes" in shell.err

    shell.run("predict", "model.hmx", table, "-o", f"predicted.{suffix}", "--density")
    predicted = read(f"predicted.{suffix}")
    new = ["predicted", "probability_no", "probability_yes"]
    new += ["log_density", "typicality", "outlier"]
    assert list(predicted.columns) == [*make_table().columns, *new]
    model = hybridmix.load("model.hmx")
    frame = model_frame(make_table())
    assert predicted["predicted"].tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(
        predicted["probability_yes"], model.predict_proba(frame)[:, 1], rtol=1e-8
    )
    np.testing.assert_allclose(
        predicted["log_density"], model.score_samples(frame), rtol=1e-8
    )

    scores = json.loads(shell.run("evaluate", "model.hmx", table, "--json"))
    assert (scores["rows"], scores["unlabelled"]) == (48, 12)
    assert np.sum(scores["confusion"]) == 48
    assert scores["accuracy"] > 0.8

    shell.run("impute", table, "-o", f"filled.{suffix}", "--components", 1)
    filled = read(f"filled.{suffix}")
    assert not filled[["size", "count", "colour"]].isna().any().any()
    shell.run("impute", table, "-m", "model.hmx", "-o", f"by_model.{suffix}", "--draw")
    observed = make_table()["size"].notna()
    for path in (f"filled.{suffix}", f"by_model.{suffix}"):
        kept = read(path).loc[observed, "size"]
        assert kept.tolist() == make_table().loc[observed, "size"].tolist()

    shell.run("outliers", table, "-o", f"flagged.{suffix}", "--share", "0.1")
    assert read(f"flagged.{suffix}")["outlier"].sum() == 6

    shell.run("sample", "model.hmx", "-n", 7, "-o", f"drawn.{suffix}")
    drawn = read(f"drawn.{suffix}")
    assert list(drawn.columns) == ["size", "count", "colour", "kind"]
    assert len(drawn) == 7


@pytest.mark.parametrize("suffix", ["parquet", "tsv.gz"])
def test_formats_can_be_mixed(shell, fitted, suffix):
    write(make_table(), "table.csv")
    shell.run("predict", fitted, "table.csv", "-o", f"new.{suffix}", "-q")
    assert shell.err == ""
    shell.run("predict", fitted, "table.csv", "-o", "new.csv")
    new, same = read(f"new.{suffix}"), read("new.csv")
    np.testing.assert_array_equal(new["size"], same["size"])
    assert new["predicted"].tolist() == same["predicted"].tolist()
    write(read(f"new.{suffix}").drop(columns=new.columns[-3:]), "again.feather")
    shell.run("evaluate", fitted, "again.feather")


def test_typed_columns_keep_their_types(shell, fitted):
    frame = make_table()
    frame["day"] = pd.to_datetime(frame["day"])
    frame["flag"] = pd.array(np.arange(60) % 3 == 0, dtype="boolean")
    frame["code"] = pd.array(np.arange(60) % 4, dtype="Int8")
    frame.loc[[0, 5], ["flag", "code"]] = pd.NA
    write(frame, "table.parquet")
    shell.run("impute", "table.parquet", "-o", "filled.parquet", "--categorical", "code")
    schema, new = (pq.read_schema(f"{name}.parquet") for name in ("table", "filled"))
    assert new.field("count").type == "double"  # means fill its holes
    others = set(schema.names) - {"count"}
    assert all(new.field(name).type == schema.field(name).type for name in others)
    assert not read("filled.parquet").drop(columns="kind").isna().any().any()


def test_json_of_a_fit_and_of_a_model(shell):
    write(make_table(), "table.csv")
    told = json.loads(
        shell.run("fit", "table.csv", "-t", "kind", "-o", "m.hmx", "--json", *QUICK)
    )
    assert shell.err == ""
    kinds = {column["name"]: column["type"] for column in told["columns"]}
    assert kinds == {
        "id": "dropped",
        "size": "real",
        "count": "real",
        "colour": "categorical",
        "day": "dropped",
        "kind": "target",
    }
    assert (told["rows"], told["labelled"], told["classes"]) == (60, 48, ["no", "yes"])
    values = json.loads(shell.run("inspect", "m.hmx", "--json"))
    assert values["class"] == "HybridMixtureClassifier"
    assert values["options"]["covariance_type"] == "diag"
    assert values["dropped"] == ["id", "day"]
    assert values["versions"]["hybridmix"] == hybridmix.__version__
    assert [group["label"] for group in values["classes"]] == ["no", "yes"]
    shown = shell.run("inspect", "m.hmx")
    assert "colour" in shown
    assert "blue, red" in shown


def test_without_a_target_it_is_a_density(shell):
    table = write(make_table().drop(columns="kind"), "table.csv")
    shell.run("fit", table, "-o", "density.hmx", "--components", "1,2")
    assert "No --target: fitted a density" in shell.err
    assert isinstance(hybridmix.load("density.hmx"), hybridmix.MixtureDensity)
    lines = shell.run("predict", "density.hmx", table, "--keep", "none").splitlines()
    assert lines[0].startswith("component,probability_0")
    assert "nothing to evaluate" in shell.fail("evaluate", "density.hmx", table)
    assert "--tune needs a target" in shell.fail(
        "fit", table, "-o", "density.hmx", "--tune"
    )


def test_effort_and_committees(shell):
    table = write(make_table(), "table.csv")
    shell.run("fit", table, "-t", "kind", "-o", "model.hmx")
    assert "candidates were compared on held-out rows" in shell.err
    model = hybridmix.load("model.hmx")
    assert f"a committee of {len(model.members_)}:" in shell.err
    values = json.loads(shell.run("inspect", "model.hmx", "--json"))
    assert len(values["members"]) == len(model.members_)
    assert sum(member["share"] for member in values["members"]) == pytest.approx(1.0)
    tried = {row["candidate"] for row in values["leaderboard"]}
    assert tried >= {member["candidate"] for member in values["members"]}
    assert "Classes are predicted by a committee" in shell.run("inspect", "model.hmx")
    shell.run("fit", table, "-t", "kind", "-o", "fast.hmx", "--effort", "fast")
    assert not hasattr(hybridmix.load("fast.hmx"), "committee_")
    arguments = ["-t", "kind", "-o", "no.hmx", "--effort", "fast", "--tune"]
    assert "--tune has neither --effort" in shell.fail("fit", table, *arguments)


def test_tune_calibrate_and_weights(shell):
    write(make_table().assign(w=1.0), "table.csv")
    options = ["--components", "1", "--covariance", "diag", "--tradeoff", "1"]
    arguments = ["-t", "kind", "--weight", "w", "-o", "model.hmx", "--calibrate"]
    shell.run("fit", "table.csv", *arguments, "--tune", *options)
    assert "The best of 1 settings in 5 folds: the only one; accuracy" in shell.err
    model = hybridmix.load("model.hmx")
    assert isinstance(model, hybridmix.HybridMixtureClassifier)
    assert (model.tradeoff, model.calibrate) == (1.0, True)
    assert "w" not in model.feature_names_in_
    shell.fail("fit", "table.csv", *arguments, "--tune", "--objective", "margin")
    options = ["--components", "1", "--covariance", "diag"]
    shell.run("fit", "table.csv", "-t", "kind", "-o", "best.hmx", "--tune", *options)
    assert re.search(r"settings in 5 folds: tradeoff \d+; accuracy 0", shell.err)
    assert shell.run("predict", "model.hmx", "table.csv", "-q").count("\n") == 61


def test_report_is_called(shell, fitted, monkeypatch):
    write(make_table(), "table.csv")
    calls = []

    class Page:
        def save(self, path):
            path.write_text("page")

    def report(model, X, y, **options):
        calls.append((X.shape, list(y[:3]), options["cv"]))
        return Page()

    monkeypatch.setattr(hybridmix, "report", report)
    shell.run("report", fitted, "table.csv", "-o", "report.html", "--folds", 3)
    assert calls == [((60, 3), ["no", "yes", None], 3)]
    assert os.path.exists("report.html")


# Tables and models that do not fit ----------------------------------------------------


def test_columns_in_any_order_with_extra_ones(shell, fitted):
    frame = make_table()
    write(frame[frame.columns[::-1]].assign(more=1, most=2), "table.csv")
    shell.run("predict", fitted, "table.csv", "-o", "new.csv")
    assert "does not know: 'more', 'most'" in shell.err
    write(frame, "plain.csv")
    shell.run("predict", fitted, "plain.csv", "-o", "plain_new.csv")
    assert "does not know" not in shell.err
    both = (read(f)["predicted"].tolist() for f in ("new.csv", "plain_new.csv"))
    assert next(both) == next(both)


def test_missing_columns(shell, fitted):
    frame = write(make_table().drop(columns=["size", "colour"]), "table.csv")
    line = shell.fail("predict", fitted, frame)
    assert "lacks 'size', 'colour'" in line
    assert "--allow-missing" in line
    shell.run("predict", fitted, frame, "--allow-missing", "-o", "new.csv")
    marginal = model_frame(make_table()).assign(size=np.nan, colour=None)
    expected = hybridmix.load(fitted).predict_proba(marginal)[:, 1]
    np.testing.assert_allclose(read("new.csv")["probability_yes"], expected, rtol=1e-8)
    write(pd.DataFrame({"other": [1.0]}), "other.csv")
    assert "none of the columns" in shell.fail(
        "predict", fitted, "other.csv", "--allow-missing"
    )


def test_retyped_columns(shell, fitted):
    frame = make_table().astype({"size": object})
    frame.loc[41, "size"] = "big"
    write(frame, "table.csv")
    line = shell.fail("predict", fitted, "table.csv", "--chunk-rows", 10, "-o", "new.csv")
    assert "column 'size' is real, but row 42 has 'big'" in line
    assert "--na big" in line
    assert not os.path.exists("new.csv")
    shell.run("predict", fitted, "table.csv", "--na", "big", "-o", "new.csv")
    shell.fail("fit", "table.csv", "--real", "size", "-o", "m.hmx")


def test_unseen_categories_warn_once(shell, fitted):
    frame = make_table()
    frame.loc[::2, "colour"] = [f"new{k}" for k in range(30)]
    write(frame, "table.csv")
    shell.run("predict", fitted, "table.csv", "--chunk-rows", 5, "-o", "new.csv")
    assert shell.err.count("hybridmix: warning: Categories that training") == 1


def test_models_from_python(shell):
    frame = make_table().assign(flag=np.arange(60) % 3 == 0, code=np.arange(60) % 4)
    X = model_frame(frame).assign(flag=frame["flag"], code=frame["code"])
    y = frame["kind"].to_numpy(object)
    model = plain_classifier(
        "likelihood", covariance_type="diag", categorical_features=["code"]
    ).fit(X, y)
    hybridmix.save(model, "m.hmx", metadata={"table": "of last year"})
    for path in ("table.csv", "table.parquet"):
        write(frame, path)
        shell.run("predict", "m.hmx", path, "-o", "new.csv")
        assert "warning" not in shell.err
        probabilities = read("new.csv")["probability_yes"]
        np.testing.assert_allclose(probabilities, model.predict_proba(X)[:, 1], rtol=1e-8)
        assert "--target" in shell.fail("evaluate", "m.hmx", path)
        shell.run("evaluate", "m.hmx", path, "--target", "kind")
    shell.run("sample", "m.hmx", "-n", "5")
    assert shell.out.splitlines()[0] == "size,count,colour,flag,code,label"


def test_models_of_arrays_match_by_position(shell):
    frame = make_table()[["size", "count", "kind"]]
    X = frame[["size", "count"]].astype(float).to_numpy()
    model = plain_classifier("likelihood").fit(X, frame["kind"])
    hybridmix.save(model, "m.hmx")
    write(frame, "table.csv")
    write(frame.drop(columns="kind"), "features.csv")
    assert "2 columns without names" in shell.fail("predict", "m.hmx", "table.csv")
    shell.run("predict", "m.hmx", "features.csv", "-o", "new.csv")
    assert read("new.csv")["predicted"].tolist() == model.predict(X).tolist()
    shell.run("evaluate", "m.hmx", "table.csv", "--target", "kind")
    shell.run("inspect", "m.hmx")
    shell.run("impute", "features.csv", "--model", "m.hmx")


def test_drawn_labels_do_not_replace_a_column(shell):
    frame = make_table()[["size"]].fillna(0.0).rename(columns={"size": "label"})
    model = plain_classifier(objective="likelihood", random_state=0)
    hybridmix.save(model.fit(frame, np.arange(60) % 2), "m.hmx")
    assert shell.run("sample", "m.hmx", "-n", 1).startswith("label,label_\n")


def test_imputers_and_detectors_from_python(shell):
    frame = model_frame(make_table())
    write(make_table(), "table.csv")
    detector = hybridmix.MixtureOutlierDetector(1, contamination=0.2).fit(frame)
    hybridmix.save(detector, "detector.hmx")
    told = json.loads(
        shell.run("outliers", "table.csv", "-m", "detector.hmx", "--json", "--worst", 2)
    )
    assert told["outliers"] == np.sum(detector.predict(frame) == -1)
    scores = detector.score_samples(frame)
    assert [row["row"] for row in told["worst"]] == (np.argsort(scores)[:2] + 1).tolist()
    assert "does not predict" in shell.fail("predict", "detector.hmx", "table.csv")
    shell.run("impute", "table.csv", "-m", "detector.hmx")


# Evaluation ---------------------------------------------------------------------------


def test_evaluation_of_few_classes(shell, fitted):
    frame = make_table()
    write(frame[frame["kind"] == "yes"], "t.csv")
    scores = json.loads(shell.run("evaluate", fitted, "t.csv", "--json"))
    assert scores["auc"] is None
    write(frame[frame["kind"].isna()], "t.csv")
    assert "no row with a label" in shell.fail("evaluate", fitted, "t.csv")


@pytest.mark.parametrize("n_classes", [2, 4])
def test_tallies_of_chunks_are_the_scores_of_all_rows(n_classes):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=4.0, size=(3000, n_classes))
    probabilities = softmax(logits, axis=1)
    truth = (logits + rng.gumbel(scale=4.0, size=logits.shape)).argmax(axis=1)
    tally = Tally(n_classes)
    for rows in np.array_split(np.arange(3000), [1, 2, 700, 1500]):
        tally.add(truth[rows], probabilities[rows])
    tally.add(np.full(5, -1), probabilities[:5])
    values = tally.values(list(range(n_classes)))
    report = calibration_report(truth, probabilities, range(n_classes))
    scores = probabilities[:, 1] if n_classes == 2 else probabilities
    expected = {
        "rows": 3000,
        "unlabelled": 5,
        "accuracy": accuracy_score(truth, probabilities.argmax(axis=1)),
        "balanced_accuracy": balanced_accuracy_score(truth, logits.argmax(axis=1)),
        "log_loss": log_loss(truth, probabilities),
        "brier_score": np.square(probabilities - np.eye(n_classes)[truth]).sum(1).mean(),
        "calibration_error": report.calibration_error,
    }
    for name, value in expected.items():
        assert values[name] == pytest.approx(value, rel=1e-9)
    area = roc_auc_score(truth, scores, multi_class="ovr")
    assert values["auc"] == pytest.approx(area, abs=1e-4)
    np.testing.assert_array_equal(
        values["confusion"], confusion_matrix(truth, logits.argmax(axis=1))
    )


def shown_evaluation(shell, labels):
    frame = pd.DataFrame({"x": np.arange(len(labels)) % 7, "kind": labels})
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    scores = json.loads(shell.run("evaluate", "m.hmx", "t.csv", "--json"))
    return np.array(scores["confusion"]), shell.run("evaluate", "m.hmx", "t.csv")


def test_confusion_fits_on_a_screen(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a_long_name_of_class_{number}" for number in range(6)]
    confusion, shown = shown_evaluation(shell, names * 20)
    for number, (name, counts) in enumerate(zip(names, confusion, strict=True), start=1):
        line = next(line for line in shown.splitlines() if name in line)
        assert line.split() == [name, f"({number})", *map(str, counts)]


def test_mistakes_among_many_classes(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"class_{number}" for number in range(10, 40)]
    confusion, shown = shown_evaluation(shell, names * 20)
    for number, name in enumerate(names):
        row = next(line for line in shown.splitlines() if line.startswith(f"  {name} "))
        assert row.split()[1:3] == ["20", str(confusion[number, number])]
