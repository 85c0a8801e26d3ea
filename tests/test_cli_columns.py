"""The command line: what it takes columns and labels for."""

import json

import numpy as np
import pytest
from cli_tools import QUICK, kinds_of, make_table, pd, read, rows_of, write

import hybridmix
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
