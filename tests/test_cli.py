"""The command line: what it writes, what it says, and how it fails."""

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    roc_auc_score,
)

import hybridmix
from hybridmix.cli import main
from hybridmix.cli.results import Tally
from hybridmix.io import read_metadata
from hybridmix.metrics import calibration_report
from hybridmix.progress import listening

pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")
for package in ("typer", "rich"):
    pytest.importorskip(package)

FORMATS = ["csv", "tsv", "csv.gz", "parquet", "feather"]
QUICK = ["--objective", "likelihood", "--covariance", "diag"]


class Shell:
    """Runs command lines in this process, and keeps what they print."""

    def __init__(self, capsys):
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments):
        code = main([str(argument) for argument in arguments])
        self.out, self.err = self._capsys.readouterr()
        return code

    def run(self, *arguments):
        """Run a command line that must succeed; return what it prints."""
        assert self(*arguments) == 0, self.err
        return self.out

    def fail(self, *arguments, code=2):
        """Run a command line that must fail in one line; return the line."""
        assert self(*arguments) == code, self.err
        errors = [line for line in self.err.splitlines() if "error:" in line]
        assert len(errors) == 1
        assert errors[0].startswith("hybridmix: error: ")
        assert "Traceback" not in self.err
        return errors[0]


@pytest.fixture
def shell(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


def make_table(n_rows=60, seed=0):
    """A table with all kinds of columns, holes, and rows without a label."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_rows) % 2
    frame = pd.DataFrame(
        {
            "id": np.arange(n_rows) + 1,
            "size": rng.normal(3.0 * group, 1.0).round(3),
            "count": pd.array(rng.poisson(5 + 5 * group), dtype="Int64"),
            "colour": np.where(rng.random(n_rows) < 0.2 + 0.6 * group, "red", "blue"),
            "day": pd.date_range("2024-01-01", periods=n_rows).strftime("%Y-%m-%d"),
            "kind": np.array(["no", "yes"])[group],
        }
    )
    frame["colour"] = frame["colour"].astype(object)
    frame["kind"] = frame["kind"].astype(object)
    frame.loc[frame.index % 7 == 3, "size"] = np.nan
    frame.loc[frame.index % 9 == 4, "count"] = pd.NA
    frame.loc[frame.index % 11 == 5, "colour"] = None
    frame.loc[frame.index % 5 == 2, "kind"] = None
    return frame


def write(frame, path):
    path = str(path)
    if path.endswith(".parquet"):
        frame.to_parquet(path, index=False)
    elif path.endswith(".feather"):
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path else ",")
    return path


def read(path):
    path = str(path)
    if path.endswith(".parquet"):
        return pd.read_parquet(path)
    if path.endswith(".feather"):
        return pd.read_feather(path)
    return pd.read_csv(path, sep="\t" if ".tsv" in path else ",", dtype={"site": str})


def rows_of(path, separator=","):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream, delimiter=separator))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model file, fitted to a CSV file by the command line."""
    folder = tmp_path_factory.mktemp("fitted")
    table = write(make_table(), folder / "train.csv")
    model = folder / "model.hmx"
    command = ["fit", table, "--target", "kind", "-o", str(model), "-q", *QUICK]
    assert main(command) == 0
    return model


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


def model_frame(frame):
    """The columns of the model as the command line passes them."""
    return pd.DataFrame(
        {
            "size": frame["size"].astype(float),
            "count": frame["count"].astype("Float64").to_numpy(float, na_value=np.nan),
            "colour": frame["colour"],
        }
    )


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
    assert "no classes" in shell.fail("evaluate", "density.hmx", table)
    assert "--tune is for classifiers" in shell.fail(
        "fit", table, "-o", "density.hmx", "--tune"
    )


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


# Types of columns ---------------------------------------------------------------------


def kinds_of(shell, frame_or_text, *arguments):
    if isinstance(frame_or_text, str):
        with open("columns.csv", "w", encoding="utf-8") as stream:
            stream.write(frame_or_text)
    else:
        write(frame_or_text, "columns.csv")
    command = ["fit", "columns.csv", "-o", "m.hmx", "--json", "--components", "1"]
    told = json.loads(shell.run(*command, *arguments))
    return {column["name"]: (column["type"], column["why"]) for column in told["columns"]}


def test_kinds_are_inferred(shell):
    n = 60
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "few": rng.integers(3, size=n),
            "postcode": [f"0{k}" for k in rng.integers(10, 14, size=n)],
            "text": [f"note {k}" for k in range(n)],
            "word": rng.choice(["a", "b"], n),
            "flag": rng.random(n) < 0.5,
            "date": [f"{day}.3.2024" for day in rng.integers(1, 28, n)],
            "counter": np.arange(n) + 17,
            "user_id": rng.permutation(n) * 7,
            "empty": [None] * n,
            "same": 5,
        }
    )
    kinds = kinds_of(shell, frame)
    assert {name: kind for name, (kind, _) in kinds.items()} == {
        "number": "real",
        "few": "real",
        "postcode": "categorical",
        "text": "dropped",
        "word": "categorical",
        "flag": "categorical",
        "date": "dropped",
        "counter": "dropped",
        "user_id": "dropped",
        "empty": "dropped",
        "same": "real",
    }
    assert kinds["few"][1] == "3 whole numbers (codes?)"
    assert "keep it with --categorical text" in kinds["text"][1]
    told = ["--categorical", "few,text", "--real", "counter", "--drop", "word"]
    kinds = kinds_of(shell, frame, *told)
    changed = {name: kinds[name][0] for name in ("few", "text", "counter", "word")}
    assert changed == {
        "few": "categorical",
        "text": "categorical",
        "counter": "real",
        "word": "dropped",
    }


def test_numbers_with_a_stray_word(shell):
    frame = make_table().astype({"size": object})
    frame.loc[[3, 9], "size"] = "n.k."
    kind, reason = kinds_of(shell, frame)["size"]
    assert (kind, reason) == (
        "dropped",
        "numbers, but also 'n.k.'; if it means missing: --na n.k.",
    )
    assert kinds_of(shell, frame, "--na", "n.k.")["size"][0] == "real"


def test_inference_does_not_depend_on_chunks(shell, monkeypatch):
    whole = kinds_of(shell, make_table())
    monkeypatch.setattr("hybridmix.cli.fitting.CHUNK_ROWS", 7)
    assert kinds_of(shell, make_table()) == whole


def test_marks_of_missing_values(shell):
    text = "a, b ,c\n1, ?,x\n2,NA,y\n, 3,null\n4,-99,x\n5,4,none\n"
    kinds = kinds_of(shell, text, "--na", "-99,none")
    assert [kind for kind, _ in kinds.values()] == ["real", "real", "categorical"]
    assert read_metadata("m.hmx")["command_line"]["missing"] == ["-99", "none"]
    shell.run("impute", "columns.csv", "-m", "m.hmx", "-o", "filled.csv")
    rows = rows_of("filled.csv")
    assert all(
        cell.strip() not in ("", "?", "NA", "-99", "none") for r in rows for cell in r
    )


def test_semicolons_and_decimal_commas(shell):
    frame = make_table()
    frame.to_csv("table.csv", index=False, sep=";", decimal=",")
    shell.run("fit", "table.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    plain = write(frame, "plain.csv")
    shell.run("predict", "m.hmx", "table.csv", "-o", "semicolons.csv")
    shell.run("predict", "m.hmx", plain, "-o", "commas.csv")
    pd.testing.assert_frame_equal(
        pd.read_csv("semicolons.csv", sep=";", decimal=","), pd.read_csv("commas.csv")
    )
    shell.run("impute", "table.csv", "-m", "m.hmx", "-o", "filled.csv")
    filled = pd.read_csv("filled.csv", sep=";", decimal=",")
    assert filled["size"].dtype == float
    assert filled["size"].notna().all()


def test_whole_numbers_as_labels(shell):
    frame = make_table()
    frame["kind"] = frame["kind"].map({"no": 0.0, "yes": 1.0})  # written as 0.0 and 1.0
    write(frame, "table.csv")
    shell.run("fit", "table.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert hybridmix.load("m.hmx").classes_.tolist() == [0, 1]
    write(frame.assign(kind=frame["kind"].astype("Int64")), "table.parquet")
    shell.run("evaluate", "m.hmx", "table.parquet")
    shell.run("predict", "m.hmx", "table.parquet", "-o", "new.parquet")
    assert read("new.parquet")["predicted"].dtype == np.int64


def test_mark_of_unlabelled_rows(shell):
    frame = make_table()
    frame["kind"] = frame["kind"].map({"no": 0, "yes": 1}).fillna(-1).astype(int)
    write(frame, "table.csv")
    options = ["-t", "kind", "-o", "m.hmx", "--unlabelled", "-1", *QUICK]
    shell.run("fit", "table.csv", *options)
    assert hybridmix.load("m.hmx").classes_.tolist() == [0, 1]
    scores = json.loads(shell.run("evaluate", "m.hmx", "table.csv", "--json"))
    assert scores["unlabelled"] == 12


@pytest.mark.parametrize(("suffix", "mark"), [("csv", "-1"), ("parquet", "-1.0")])
def test_marks_of_unlabelled_rows_are_known_by_their_worth(shell, suffix, mark):
    frame = make_table().drop(columns="kind")
    frame["kind"] = np.array([0.0, 1.0, -1.0])[np.arange(60) % 3]
    table = write(frame, f"t.{suffix}")
    command = ["fit", table, "-t", "kind", "-o", "m.hmx", "--json", *QUICK]
    told = json.loads(shell.run(*command, "--unlabelled", mark))
    assert (told["labelled"], told["classes"]) == (40, [0, 1])
    scores = json.loads(shell.run("evaluate", "m.hmx", table, "--json"))
    assert (scores["rows"], scores["unlabelled"]) == (40, 20)


def test_a_single_class_is_warned_about(shell):
    frame = make_table()
    write(frame[frame["kind"] == "yes"], "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert "hybridmix: warning: All labels are the same" in shell.err


def test_names_and_marks_with_commas(shell):
    frame = make_table().rename(columns={"size": "size, cm"}).astype({"size, cm": object})
    frame.loc[4, "size, cm"] = "1,5"
    write(frame, "t.csv")
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK]
    shell.run(*command, "--json", "--drop", '"size, cm",count')
    assert read_metadata("m.hmx")["command_line"]["dropped"][1:3] == ["size, cm", "count"]
    line = shell.fail(*command, "--real", '"size, cm"')
    assert line.endswith("""--na '"1,5"'.""")
    shell.run(*command, "--real", '"size, cm"', "--na", '"1,5"')
    shell.run("predict", "m.hmx", "t.csv", "-o", "new.csv", "--keep", '"size, cm",id')
    assert rows_of("new.csv")[0][:3] == ["size, cm", "id", "predicted"]


def test_values_of_training_are_recognised():
    from hybridmix.cli.models import matcher

    assert matcher([False, True])(["TRUE", "0", None, "x"]) == [True, False, None, "x"]
    assert matcher([1, 2])(["1.0", "2", "3", None]) == [1, 2, "3", None]
    assert matcher(["1", "x"])(["1", "1.0"]) == ["1", "1.0"]


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
    model = hybridmix.HybridMixtureClassifier(
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
    model = hybridmix.HybridMixtureClassifier("likelihood").fit(X, frame["kind"])
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
    model = hybridmix.HybridMixtureClassifier(objective="likelihood", random_state=0)
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
    assert "does not classify" in shell.fail("predict", "detector.hmx", "table.csv")
    shell.run("impute", "table.csv", "-m", "detector.hmx")


# Files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", "line 3: 3 cells, but the header has 2"),
        ("t.csv", b"a,b\n1,2\n\n1\n", "line 4: 1 cells"),
        ("t.csv", b"a,a\n1,2\n", "several columns of the name 'a'"),
        ("t.csv", b"a,b\n1,caf\xe9\n", "t.csv: byte 0xe9 is not UTF-8"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "iconv -f UTF-16"),
        ("t.csv", b'a,b\n1,"2\n3,4\n', "unexpected end of data"),
        ("t.csv.gz", b"a,b\n1,2\n", "no whole gzip file"),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12],
            "no whole gzip file",
        ),
        ("t.parquet", b"PAR", "no parquet file"),
        ("t.feather", b"a,b\n1,2\n", "no feather file"),
        ("t.xlsx", b"", "must be one of .csv, .csv.gz, .tsv"),
    ],
)
def test_broken_files(shell, name, content, words):
    with open(name, "wb") as stream:
        stream.write(content)
    assert words in shell.fail("fit", name, "-o", "m.hmx")
    assert words in shell.fail("impute", name, "-o", "new.csv")
    assert not os.path.exists("m.hmx")
    assert not os.path.exists("new.csv")


def test_infinite_numbers(shell, fitted):
    frame = make_table()
    frame.loc[4, "size"] = np.inf
    for path in ("t.csv", "t.parquet"):
        write(frame, path)
        line = shell.fail("predict", fitted, path, "--chunk-rows", 3)
        assert "column 'size' is real, but row 5 has 'inf'" in line


def test_decimals_and_short_floats(shell):
    pa = pytest.importorskip("pyarrow")
    from decimal import Decimal

    prices = [None if row % 7 == 0 else Decimal(row) / 4 for row in range(30)]
    sizes = [0.1 * row for row in range(30)]
    table = pa.table(
        {"price": pa.array(prices, pa.decimal128(6, 2)), "size": pa.array(sizes, "float")}
    )
    pq.write_table(table, "t.parquet")
    for path in ("new.csv", "new.parquet"):
        shell.run("impute", "t.parquet", "-o", path, "--components", 1)
        filled = read(path)
        assert filled["price"].notna().all()
        assert filled["price"][29] == 7.25
    assert rows_of("new.csv")[4][1] == "0.3"
    assert pq.read_schema("new.parquet").field("size").type == pa.float32()


def test_suffixes_in_capitals_and_decimal_commas_in_tabs(shell, fitted):
    make_table().to_csv("T.TSV", index=False, sep="\t", decimal=",")
    shell.run("predict", fitted, "T.TSV", "-o", "NEW.TSV")
    shell.run("predict", fitted, "T.TSV", "-o", "new.csv")
    tabbed, other = rows_of("NEW.TSV", "\t"), rows_of("new.csv", ";")
    assert tabbed == other
    assert "," in tabbed[1][-1]


def test_long_cells(shell, fitted):
    frame = make_table()
    frame["note"] = "very " * 40_000
    write(frame, "t.csv")
    shell.run("predict", fitted, "t.csv", "-o", "new.csv")
    assert rows_of("new.csv")[1][6] == frame["note"][0]
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert "very very" in shell.err
    assert len(shell.err) < 5000


def test_files_without_a_header(shell):
    Path("t.csv").write_text("5.1,3.5\n4.9,3.0\n4.7,3.2\n")
    shell.run("fit", "t.csv", "-o", "m.hmx", "--components", 1)
    assert "has it no header?" in shell.err


def test_byte_order_marks_and_blank_lines(shell):
    text = "  \r\n\r\na,b\r\n1,x\r\n\r\n2,y\r\n3,x\r\n"
    with open("t.csv", "w", encoding="utf-8-sig", newline="") as stream:
        stream.write(text)
    told = json.loads(
        shell.run("fit", "t.csv", "-o", "m.hmx", "--components", 1, "--json")
    )
    assert told["rows"] == 3
    assert [column["name"] for column in told["columns"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "t.csv", "-o", "m.hmx", "-t", "Kinds"], "Did you mean 'kind'?"),
        (
            ["fit", "t.csv", "-o", "m.hmx", "--drop", "zzz"],
            "The columns are 'id', 'size'",
        ),
        (["fit", "t.csv", "-o", "m.hmx", "-t", "size"], "are no classes"),
        (["fit", "t.csv", "-o", "m.hmx", "--real", "size", "--drop", "size"], "at once"),
        (["fit", "t.csv", "-o", "m.hmx", "--components", "two"], "--components two"),
        (["fit", "t.csv", "-o", "m.hmx", "--covariance", "round"], "round"),
        (["fit", "t.csv", "-o", "t.csv"], "would replace what is read"),
        (["fit", "t.csv", "-o", "no/such/m.hmx"], "there is no folder"),
        (["fit", "t.csv"], "--output"),
        (["fit", "t.csv", "-o", "-"], "only tables go to stdout"),
        (["report", "MODEL", "t.csv", "-o", "-"], "only tables go to stdout"),
        (["predict", "MODEL", "-"], "not from stdin"),
        (["fit", "none.csv", "-o", "m.hmx"], "there is no such file"),
        (["fit", "t.csv", "-o", "m.hmx", "--components", "99"], "99"),
        (["impute", "t.csv", "-o", "t.csv"], "would replace what is read"),
        (["impute", "t.csv", "-o", "new.xls"], "must be one of"),
        (["impute", "t.csv", "-m", "MODEL", "--drop", "size"], "--drop is for a fit"),
        (["outliers", "t.csv", "--share", "0.1", "--threshold", "0.1"], "exclude"),
        (["outliers", "t.csv", "--share", "2"], ". Try 'hybridmix outliers --help'."),
        (["outliers", "t.csv", "--json", "-o", "-"], "both write to stdout"),
        (["predict", "none.hmx", "t.csv"], "none.hmx: No such file"),
        (["predict", "t.csv", "t.csv"], "cannot be loaded as a model"),
        (["predict", "MODEL", "t.csv", "--keep", "idd"], "Did you mean 'id'?"),
        (["evaluate", "MODEL", "t.csv", "-t", "colour"], "row 1 has the label"),
        (["frobnicate"], "No such command"),
        (["fit", "t.csv", "--frob"], "--frob"),
    ],
)
def test_wrong_arguments(shell, fitted, arguments, words):
    write(make_table(), "t.csv")
    before = Path("t.csv").read_bytes()
    arguments = [fitted if argument == "MODEL" else argument for argument in arguments]
    assert words in shell.fail(*arguments)
    assert Path("t.csv").read_bytes() == before
    assert os.listdir(".") == ["t.csv"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_folders_are_no_tables(shell, suffix):
    os.mkdir(f"t.{suffix}")
    assert "is a folder" in shell.fail("fit", f"t.{suffix}", "-o", "m.hmx")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_devices_and_pipes_are_not_replaced(shell):
    write(make_table(), "t.csv")
    os.mkfifo("pipe")
    assert "is a device or a pipe" in shell.fail("fit", "t.csv", "-o", "pipe", *QUICK)
    assert not os.path.isfile("pipe")


def test_folders_that_cannot_be_written_to(shell, monkeypatch):
    write(make_table(), "t.csv")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    line = shell.fail("fit", "t.csv", "-o", "m.hmx", *QUICK)
    assert "m.hmx: no permission to write to" in line


def test_columns_that_would_be_written_twice(shell, fitted):
    write(make_table(), "table.csv")
    shell.run("predict", fitted, "table.csv", "-o", "once.csv")
    assert "already has a column" in shell.fail("predict", fitted, "once.csv")
    shell.run("predict", fitted, "once.csv", "--keep", "id,kind", "-o", "twice.csv")
    assert list(read("twice.csv").columns)[:3] == ["id", "kind", "predicted"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_error_half_way_leaves_files_as_they_were(shell, fitted, suffix):
    frame = make_table().astype({"size": object})
    frame.loc[50, "size"] = "?!"
    write(frame, "table.csv")
    output = f"out.{suffix}"
    with open(output, "wb") as stream:
        stream.write(b"old")
    for command in (["predict", fitted], ["impute", "-m", fitted]):
        shell.fail(*command, "table.csv", "-o", output, "--chunk-rows", 10)
        assert Path(output).read_bytes() == b"old"
        assert sorted(os.listdir(".")) == sorted([output, "table.csv"])


# Streams ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_chunks_do_not_change_results(shell, fitted, suffix):
    table = write(make_table(), f"table.{suffix}")
    commands = {
        "new": ["predict", fitted, table, "--density"],
        "filled": ["impute", table, "-m", fitted],
        "flagged": ["outliers", table, "-m", fitted],
    }
    for name, command in commands.items():
        shell.run(*command, "-o", f"{name}.csv")
        shell.run(*command, "-o", f"{name}_chunks.csv", "--chunk-rows", 7)
        whole, chunks = (Path(f"{name}{end}.csv").read_text() for end in ("", "_chunks"))
        assert whole == chunks
    few, many = (
        json.loads(shell.run("evaluate", fitted, table, "--json", "--chunk-rows", n))
        for n in (7, 99)
    )
    assert few["log_loss"] == pytest.approx(many["log_loss"], rel=1e-9)
    assert few["confusion"] == many["confusion"]


def test_memory_does_not_grow_with_the_table(shell, fitted):
    import tracemalloc

    peaks = []
    for n_rows in (1_000, 6_000):
        write(make_table(n_rows), "table.csv")
        tracemalloc.start()
        command = ["predict", fitted, "table.csv", "-o", "new.csv"]
        shell.run(*command, "--chunk-rows", 250)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 200_000


def test_observed_cells_come_out_as_they_went_in(shell):
    text = (
        'code,amount,whole,"word, and more",id\n'
        '007, 1.50,3,"a ""b""",x-1\n'
        "012,2.250,4, c ,x-2\n"
        "007,,5,c,x-3\n"
        '012,1e0,,"two\nlines",x-4\n'
        ",3.0,7,?,x-5\n"
    )
    with open("t.csv", "w", newline="") as stream:
        stream.write(text)
    shell.run("impute", "t.csv", "-o", "filled.csv", "--drop", "id", "--components", 1)
    before, after = rows_of("t.csv"), rows_of("filled.csv")
    holes = 0
    for old, new in zip(before, after, strict=True):
        for a, b in zip(old, new, strict=True):
            if a in ("", "?"):
                holes += 1
                assert b not in ("", "?")
            else:
                assert a == b
    assert holes == 4
    assert "4 cells filled" in shell.err


def test_columns_that_are_left_out_are_named(shell):
    write(make_table(), "t.csv")
    shell.run("impute", "t.csv", "-o", "filled.csv", "--drop", "kind")
    assert "column 'day' is left out: dates" in shell.err
    assert "'kind'" not in shell.err


def test_draws_have_seeds(shell, fitted):
    write(make_table(), "t.csv")
    command = ["impute", "t.csv", "-m", fitted, "--draw", "--seed"]
    drawn = [shell.run(*command, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_thresholds_of_outliers(shell, fitted):
    frame = make_table()
    frame.loc[7, "size"] = 1000.0
    write(frame, "t.csv")
    told = json.loads(shell.run("outliers", "t.csv", "-m", fitted, "--json"))
    assert told["worst"][0]["row"] == 8
    assert told["worst"][0]["cells"]["size"] == "1000.0"
    none, all_rows = (
        json.loads(shell.run("outliers", "t.csv", "-m", fitted, "--json", *extra))
        for extra in (["--threshold", "0"], ["--share", "1"])
    )
    assert (none["outliers"], all_rows["outliers"]) == (0, 60)
    lines = shell.run("outliers", "t.csv", "-m", fitted, "-o", "-").splitlines()
    assert lines[0].endswith(",typicality,outlier")
    assert lines[8].endswith("True")


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


# Processes ----------------------------------------------------------------------------


def process(*arguments, **options):
    command = [sys.executable, "-m", "hybridmix", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_errors_of_a_process(fitted, tmp_path):
    with process("predict", fitted, tmp_path / "none.csv") as run:
        out, err = run.communicate()
    assert (run.returncode, out) == (2, "")
    assert err.startswith("hybridmix: error:")
    assert err.count("\n") == 1


def test_closed_pipes_are_silent(fitted, tmp_path):
    table = write(make_table(3000), tmp_path / "t.csv")
    with process("predict", fitted, table, "--chunk-rows", 100) as run:
        assert run.stdout.readline().startswith("id,size,")
        run.stdout.close()
        assert run.stderr.read() == ""


def test_stdout_is_utf_8_everywhere(fitted, tmp_path):
    table = make_table().rename(columns={"id": "名"})
    path = write(table, tmp_path / "t.csv")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    with process("predict", fitted, path, env=environment, encoding="utf-8") as run:
        assert run.stdout.readline().startswith("名,size,")
        run.communicate()
    assert run.returncode == 0


def test_an_interrupted_fit_is_saved(shell, monkeypatch):
    @contextmanager
    def interrupting(console):
        def interrupt(step):
            if step.done == 3:
                raise KeyboardInterrupt

        with listening(interrupt):
            yield

    monkeypatch.setattr("hybridmix.cli.console.Console.progress", interrupting)
    write(make_table(), "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", "--components", "2")
    assert "hybridmix: warning: Interrupted" in shell.err
    hybridmix.load("m.hmx")


def test_interruption(shell, fitted, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(hybridmix.HybridMixtureClassifier, "predict_proba", interrupted)
    write(make_table(), "t.csv")
    assert shell("predict", fitted, "t.csv", "-o", "new.csv") == 130
    assert os.listdir(".") == ["t.csv"]
    monkeypatch.setattr("hybridmix.cli.app.run", interrupted)
    assert shell("predict", fitted) == 130
    assert shell.err == "hybridmix: interrupted\n"


def test_unexpected_errors_and_debugging(shell, fitted, monkeypatch):
    def broken(self, frame):
        raise RuntimeError("oh\nno")

    monkeypatch.setattr(hybridmix.HybridMixtureClassifier, "predict_proba", broken)
    write(make_table(), "t.csv")
    line = shell.fail("predict", fitted, "t.csv", code=1)
    assert "Unexpected RuntimeError: oh no (rerun with --debug" in line
    assert shell("predict", fitted, "t.csv", "--debug") == 1
    assert "Traceback" in shell.err
    for value in ("1", "", "0"):
        monkeypatch.setenv("HYBRIDMIX_DEBUG", value)
        shell("predict", fitted, "t.csv")
        assert ("Traceback" in shell.err) == (value == "1")


def test_bars_on_a_terminal(shell, fitted, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    write(make_table(), "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx")
    assert "L-BFGS" in shell.err
    shell.run("predict", fitted, "t.csv", "-o", "new.csv")
    assert "predicting" in shell.err
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", "-q", *QUICK)
    assert shell.out == shell.err == ""


def test_what_is_missing_is_named(shell, monkeypatch):
    monkeypatch.setattr("hybridmix.cli._NEEDED", ("typer", "no_such_package"))
    line = shell.fail("fit", code=1)
    assert "needs no_such_package: pip install 'hybridmix[cli]'" in line


def test_help_and_version(shell):
    assert shell.run("--version") == f"hybridmix {hybridmix.__version__}\n"
    assert "outliers" in shell.run()
    for command in ("fit", "predict", "evaluate", "impute", "outliers", "sample"):
        assert "Examples:" in shell.run(command, "--help")
