"""The command line: what it takes columns and labels for."""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cli_tools import QUICK, kinds_of, make_table, model_frame, pd, read, rows_of, write

import hybridmix
from hybridmix.cli.console import Console
from hybridmix.cli.fitting import Reading, read_training
from hybridmix.cli.models import Model, match
from hybridmix.cli.tables import CHUNK_ROWS, open_table
from hybridmix.io import read_metadata

# Types of columns ---------------------------------------------------------------------


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
        "50 of 52 values are numbers; if the others are missing, use --na n.k.",
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


def test_commas_separate_cells_and_mark_fractions(shell):
    frame = make_table()[["size", "kind"]]
    frame["size"] = [
        None if v != v else f"{v:.2f}".replace(".", ",") for v in frame["size"]
    ]
    write(frame, "table.csv")
    shell.run("fit", "table.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert hybridmix.load("m.hmx").schema_.real == (0,)
    frame["other"] = np.arange(len(frame)) + 0.25
    assert kinds_of(shell, frame)["size"][1].endswith("use the same mark in all")


def test_groups_of_rows_with_the_same_label(shell):
    frame = make_table(90)
    frame["kind"] = np.repeat(["a", "b"], 45)
    frame["run"] = [f"r{k // 3}" for k in range(90)]
    shell.run("fit", write(frame, "t.csv"), "-t", "kind", "-o", "m.hmx", *QUICK)
    assert "--drop run, or --sequence run" in shell.err
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK, "--categorical", "run")
    assert "--sequence run" not in shell.err


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


# Cells that are not finite ------------------------------------------------------------


@pytest.mark.parametrize("text", ["inf", "-Infinity", "1e999"])
@pytest.mark.parametrize("chunk_rows", [20_000, 7])
def test_infinite_cells_are_errors(shell, monkeypatch, text, chunk_rows):
    monkeypatch.setattr("hybridmix.cli.fitting.CHUNK_ROWS", chunk_rows)
    frame = make_table().astype({"size": object})
    frame.loc[[41, 50], "size"] = text
    write(frame, "t.csv")
    for options in ([], ["-q"], ["--json"]):
        line = shell.fail("fit", "t.csv", "-o", "m.hmx", *options)
        assert f"t.csv: column 'size' is real, but row 42 has '{text}'" in line
        assert line.endswith(f"If it means a missing value: --na {text}.")
    assert kinds_of(shell, frame, "--na", text)["size"][0] == "real"
    assert kinds_of(shell, frame, "--drop", "size")["size"][0] == "dropped"
    told = kinds_of(shell, frame, "--categorical", "size,count")
    assert told["size"][0] == "categorical"
    assert "row 42" in shell.fail("impute", "t.csv", "-o", "filled.csv")


@pytest.mark.parametrize("name", ["size", "id"])
def test_columns_of_infinity_are_no_identifiers(shell, name):
    """They have no finite number, and so none that does not follow the one before."""
    write(make_table().assign(**{name: "inf"}), "t.csv")
    line = shell.fail("fit", "t.csv", "-o", "m.hmx")
    assert f"column '{name}' is real, but row 1 has 'inf'" in line


def test_infinite_cells_of_typed_files(shell, fitted):
    frame = make_table()
    frame.loc[41, "size"] = -np.inf
    write(frame, "t.parquet")
    line = shell.fail("fit", "t.parquet", "-o", "m.hmx", "-q")
    assert "column 'size' is real, but row 42 has '-inf'" in line
    assert "--na -inf" in line
    shell.run("fit", "t.parquet", "-o", "m.hmx", "--components", 1, "--na", "-inf")
    assert "row 42" in shell.fail("predict", fitted, "t.parquet")
    shell.run("predict", fitted, "t.parquet", "--na", "-inf", "-o", "new.csv")
    expected = hybridmix.load(fitted).predict_proba(
        model_frame(frame.replace(-np.inf, np.nan))
    )
    np.testing.assert_allclose(read("new.csv")["probability_yes"], expected[:, 1])


def test_marks_that_are_numbers_count_in_typed_files(shell):
    frame = make_table()
    frame.loc[:3, "count"] = -99
    values = {}
    for suffix in ("csv", "parquet"):
        table = write(frame, f"t.{suffix}")
        command = ["fit", table, "-t", "kind", "-o", "m.hmx", "--na", "-99", *QUICK]
        shell.run(*command)
        values[suffix] = hybridmix.load("m.hmx").predict_proba(model_frame(make_table()))
    np.testing.assert_allclose(values["csv"], values["parquet"], rtol=1e-9)


def test_words_for_infinity_may_be_categories(shell):
    frame = pd.DataFrame({"x": np.arange(30) % 7, "bound": ["inf", "sup", "max"] * 10})
    assert kinds_of(shell, frame)["bound"] == ("categorical", "3 values")


# What is left out ---------------------------------------------------------------------


def test_columns_that_are_left_out_are_never_hidden(shell):
    frame = make_table().astype({"size": object})
    frame.loc[3, "size"] = "n.k."
    write(frame, "t.csv")
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK]
    shell.run(*command, "-q")
    assert shell.err.splitlines() == [
        "hybridmix: warning: 51 of 52 values of 'size' are numbers; if the others are "
        "missing, use --na n.k. (it is left out)",
        "hybridmix: warning: column 'id' is left out: looks like an identifier; keep it "
        "with --real id",
        "hybridmix: warning: column 'day' is left out: dates; turn them into numbers, "
        "such as days or months",
    ]
    shell.run(*command, "-q", "--drop", "id,day,size")
    assert shell.err == ""
    shell.run("impute", "t.csv", "-o", "new.csv", "-q", "--drop", "id,day,kind")
    assert "51 of 52 values of 'size' are numbers" in shell.err
    shell.run("outliers", "t.csv", "--json", "--drop", "id,day,kind")
    assert "51 of 52 values of 'size' are numbers" in shell.err


def test_unseen_categories_are_never_hidden(shell, fitted):
    write(make_table().replace({"colour": {"red": "green"}}), "t.csv")
    for options in (["-q"], ["--json"]):
        shell.run("evaluate", fitted, "t.csv", *options)
        assert "warning: Categories that training did not see" in shell.err


# Wide tables --------------------------------------------------------------------------


def wide_table(n_columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, n_columns)).round(4))
    return frame.add_prefix("g").assign(kind=["no", "yes"] * 10)


def test_wide_tables_are_cut_on_the_screen(shell):
    frame = wide_table(300).assign(day="2024-01-01")
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert "g99 " in shell.err
    assert "g100 " not in shell.err
    assert "and 202 more columns: 200 real, 1 target, 1 dropped" in shell.err
    assert "column 'day' is left out" in shell.err
    shown = shell.run("inspect", "m.hmx")
    assert "and 200 more columns: 200 real" in shown
    assert "g299" not in shown
    assert len(json.loads(shell.run("inspect", "m.hmx", "--json"))["columns"]) == 300


def test_time_is_linear_in_columns(shell, fitted):
    def seconds(n_columns):
        write(wide_table(n_columns), "t.csv")
        table, console = open_table(Path("t.csv")), Console(quiet=True)
        began = time.process_time()
        training = read_training(table, Reading(target="kind"), console)
        names = training.frame.columns
        estimator = SimpleNamespace(
            feature_names_in_=names,
            schema_=SimpleNamespace(
                n_columns=len(names),
                real=range(len(names)),
                categorical=(),
                categories=(),
            ),
        )
        matching = match(Model(estimator, "kind"), table)
        for chunk in table.chunks(CHUNK_ROWS):
            pd.testing.assert_frame_equal(matching.frame(chunk), training.frame)
        return time.process_time() - began

    seconds(100)
    assert seconds(16_000) < 20 * max(seconds(2_000), 0.1)


# Targets ------------------------------------------------------------------------------


def decided(shell, frame, *options, sep=",", decimal="."):
    """Return the task that a fit decides on, and what it says about it."""
    frame.to_csv("t.csv", index=False, sep=sep, decimal=decimal)
    command = ["fit", "t.csv", "-o", "m.hmx", "--components", 1, "--covariance", "diag"]
    told = json.loads(
        shell.run(*command, "--drop", "id,day", "--effort", "fast", *options, "--json")
    )
    return told["task"], shell.err


def test_measurements_are_predicted_as_numbers(shell):
    rng = np.random.default_rng(0)
    frame = make_table(400).assign(price=rng.integers(100, size=400) / 8 + 0.125)
    task, _ = decided(shell, frame, "-t", "price")
    assert task == "regress"
    shell.run("fit", "t.csv", "-t", "price", "-o", "m.hmx", "--effort", "fast")
    n_values = frame["price"].nunique()
    said = f"--target price has {n_values} different numbers in 400 rows"
    assert f"{said}: it is predicted as a number." in shell.err
    assert "add --task classify" in shell.err
    assert f"{n_values} different" in shell.err


def test_decimal_commas_are_measurements_too(shell):
    frame = make_table().assign(price=np.arange(60) % 25 + 0.5)
    assert decided(shell, frame, "-t", "price", sep=";", decimal=",")[0] == "regress"
    model = hybridmix.load("m.hmx")
    assert model.target_schema_.centre == pytest.approx(frame["price"].mean(), rel=0.2)


@pytest.mark.parametrize(
    ("numbers", "task"),
    [
        (np.arange(400) % 20, "classify"),  # few of them
        (np.arange(400) % 90, "classify"),  # more, and each of them several times
        (np.arange(400) % 130, "regress"),  # more than anyone has classes
        (np.arange(400) + 5, "regress"),  # all of them different
        (np.minimum(np.arange(400), 25), "regress"),  # some occur once, as ages do
        (np.arange(400) % 3 - 1.0, "classify"),  # whole, but written with a point
    ],
)
def test_whole_numbers_as_targets(shell, numbers, task):
    frame = make_table(400).assign(number=numbers)
    assert decided(shell, frame, "-t", "number")[0] == task
    other = {"classify": "regress", "regress": "classify"}[task]
    assert decided(shell, frame, "-t", "number", "--task", other)[0] == other


def test_whole_numbers_of_short_tables(shell):
    frame = make_table(20).assign(number=np.arange(20) % 16, count=np.arange(20) % 9)
    assert decided(shell, frame, "-t", "number")[0] == "regress"
    assert decided(shell, frame, "-t", "count")[0] == "classify"
    kinds = kinds_of(shell, frame.iloc[:10])
    assert kinds["count"] == ("real", "whole numbers")


def test_many_classes_are_doubted(shell):
    frame = make_table(400).assign(age=np.arange(400) % 130)
    _, said = decided(shell, frame, "-t", "age", "--task", "classify")
    assert (
        "--target age has 130 different numbers, and each is treated as a class" in said
    )
    assert "are not classes" in shell.fail("fit", "t.csv", "-t", "day", "-o", "m.hmx")


def test_few_fractions_are_classes(shell):
    frame = make_table().assign(dose=np.arange(60) % 3 / 2)
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "dose", "-o", "m.hmx", *QUICK)
    assert hybridmix.load("m.hmx").classes_.tolist() == ["0.0", "0.5", "1.0"]


def test_labels_that_mix_numbers_and_words(shell):
    frame = make_table().assign(kind=np.array(["1", "2", "x"])[np.arange(60) % 3])
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert hybridmix.load("m.hmx").classes_.tolist() == ["1", "2", "x"]
    shell.run("predict", "m.hmx", "t.csv", "-o", "new.parquet")
    assert set(read("new.parquet")["predicted"]) <= {"1", "2", "x"}
    assert json.loads(shell.run("evaluate", "m.hmx", "t.csv", "--json"))["rows"] == 60
    write(frame[frame["kind"] != "x"], "numbers.csv")
    shell.run("evaluate", "m.hmx", "numbers.csv")
