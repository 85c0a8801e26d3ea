"""The command line: how it helps where files and options are not as they should be."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cli_tools import QUICK, kinds_of, make_table, pd, read, write
from sequence_tools import make_gestures

import hybridmix
from hybridmix.cli.cells import TextColumn, TypedColumn
from hybridmix.cli.console import Console
from hybridmix.cli.pace import Pace, in_words
from hybridmix.cli.targets import read_all
from hybridmix.cli.workflow import load_matching
from hybridmix.explorer.subject import Explored
from hybridmix.progress import Step


@pytest.fixture
def fitted(shell):
    """A classifier of the file ``table.csv``."""
    write(make_table(), "table.csv")
    shell.run("fit", "table.csv", "-t", "kind", "-o", "model.hmx", *QUICK)
    return "model.hmx"


# The model comes before the table -----------------------------------------------------


@pytest.mark.parametrize("command", ["impute", "outliers"])
def test_a_model_may_come_before_the_table(shell, fitted, command):
    shell.run(command, fitted, "table.csv", "-o", "new.csv")
    shell.run(command, "table.csv", "--model", fitted, "-o", "same.csv")
    assert read("new.csv").equals(read("same.csv"))


@pytest.mark.parametrize("command", ["predict", "evaluate", "report", "impute"])
def test_a_table_in_the_place_of_the_model_is_refused(shell, fitted, command):
    output = [] if command == "evaluate" else ["-o", "new.csv"]
    message = shell.fail(command, "table.csv", fitted, *output)
    assert f"hybridmix {command} {fitted} table.csv" in message


def test_files_that_are_too_many_or_too_few(shell, fitted):
    message = shell.fail("impute", fitted)
    assert message.endswith(f"hybridmix impute {fitted} TABLE")
    message = shell.fail("outliers", fitted, "table.csv", "table.csv")
    assert "hybridmix outliers MODEL TABLE" in message
    assert "MODEL TABLE" in shell.fail("impute", "a.hmx", "table.csv", "-m", fitted)


# Labels that are kept out -------------------------------------------------------------


def test_rows_have_the_same_numbers_in_all_commands(shell, fitted):
    frame = make_table()
    frame.loc[41, "size"] = 99.0
    write(frame, "t.csv")
    worst = json.loads(shell.run("outliers", fitted, "t.csv", "--json"))["worst"][0]
    assert worst["row"] == 42
    matching = load_matching(Path(fitted), Path("t.csv"), Console())
    X, _ = read_all(matching, matching.table.chunks(20), None)
    assert X.index[X["size"].argmax()] == 42
    assert Explored.of(matching.model.estimator, X, None).description()["first_row"] == 1


def test_labels_are_kept_out(shell, fitted):
    quick = ["--components", "1", "-q", "--drop", "id,day"]
    shell.run("impute", "table.csv", "-o", "new.csv", "--target", "kind", *quick)
    assert shell.err == ""
    np.testing.assert_array_equal(
        read("new.csv")["kind"].isna(), make_table()["kind"].isna()
    )
    shell.run("impute", "table.csv", "-o", "all.csv", *quick)
    assert not read("all.csv")["kind"].isna().any()
    shell.run("outliers", fitted, "table.csv", "-t", "kind")
    message = shell.fail("impute", "table.csv", "--target", "kinds", *quick)
    assert "--target: table.csv has no column 'kinds'" in message
    message = shell.fail("impute", fitted, "table.csv", "--target", "size")
    assert "--target size: the model learned from this column" in message


# Outliers -----------------------------------------------------------------------------


@pytest.mark.parametrize("as_array", [False, True])
def test_guilty_cells_are_named(shell, as_array):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    frame["c"] = frame["a"] + frame["b"] + 0.1 * rng.normal(size=80)
    model = hybridmix.MixtureDensity(1, covariance_type="full")
    model.fit(frame.to_numpy() if as_array else frame)
    hybridmix.save(model, "m.hmx")
    frame.loc[3, "b"] = 50.0
    frame.loc[4, ["a", "c"]] = [30.0, -20.0]
    write(frame, "t.csv")
    told = json.loads(shell.run("outliers", "m.hmx", "t.csv", "--json", "--worst", 80))
    guilty = {row["row"]: row["guilty"] for row in told["worst"]}
    [cell] = guilty[4]
    assert cell["column"] == "b"
    expected = frame["c"][3] - frame["a"][3]
    assert cell["expected"] == pytest.approx(expected, abs=0.5)
    assert [cell["column"] for cell in guilty[5]] == ["a", "c"]
    assert sum(len(cells) > 0 for cells in guilty.values()) <= told["outliers"]
    shell.run("outliers", "m.hmx", "t.csv", "--worst", 2)
    assert "a 30.0 (expected 0.2" in " ".join(shell.out.split())


def test_guilty_categories_are_named(shell, fitted):
    frame = make_table().assign(colour="blue", size=lambda t: t["size"].fillna(1.0))
    frame.loc[7, ["size", "colour"]] = [90.0, "blue"]
    write(frame, "t.csv")
    told = json.loads(shell.run("outliers", fitted, "t.csv", "--json", "--worst", 1))
    assert [cell["column"] for cell in told["worst"][0]["guilty"]] == ["size"]


def test_guilty_columns_of_sequences_are_named(shell):
    frame = make_gestures(20, 0).dropna()
    model = hybridmix.HMMDensity(2, topology="left-right", covariance_type="diag")
    X = hybridmix.Sequences.from_long(frame.drop(columns="gesture"), "recording", "t")
    hybridmix.save(model.fit(X), "m.hmx")
    frame.loc[frame["recording"] == "r7", "y"] += 40.0
    write(frame, "t.csv")
    options = ["--sequence", "recording", "--time", "t", "--json", "--worst", 1]
    told = json.loads(shell.run("outliers", "m.hmx", "t.csv", *options))
    [worst] = told["worst"]
    assert worst["cells"]["recording"] == "r7"
    assert [cell["column"] for cell in worst["guilty"]] == ["y"]


# Numbers that are not quite numbers ---------------------------------------------------


def spoilt_table(n_rows=136):
    """A table whose numbers have marks, and other text, among them."""
    rng = np.random.default_rng(0)
    kind = np.arange(n_rows) % 2
    prices = 500.0 * (1 + kind) + rng.normal(0.0, 300.0, n_rows)
    frame = make_table(n_rows)[["size", "kind"]]
    frame["glucose"] = [str(int(v)) for v in rng.normal(100.0, 9.0, n_rows)]
    frame.loc[5, "glucose"] = "unknown"
    frame["price"] = [f"{price:,.2f}" for price in 3.0 * prices]
    return frame


def test_marks_of_missing_values_are_named(shell):
    frame = spoilt_table().drop(columns="price")
    write(frame, "t.csv")
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK]
    shell.run(*command)
    advice = "135 of 136 values of 'glucose' are numbers; if the others are missing, use"
    assert f"warning: {advice} --na unknown (it is left out)" in shell.err
    shell.run(*command, "--na", "unknown")
    assert "warning" not in shell.err
    frame.loc[7, "glucose"] = "not taken"
    write(frame, "t.csv")
    shell.run(*command, "-q")
    assert "134 of 136" in shell.err
    assert "use --na 'not taken,unknown' (it is left out)" in shell.err


def test_marks_between_thousands(shell):
    write(spoilt_table(), "t.csv")
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.hmx", "--na", "unknown", *QUICK]
    shell.run(*command)
    assert "of 'price' looks like a number: use --thousands , (it is" in shell.err
    message = shell.fail(*command, "--real", "price")
    assert "looks like a number: --thousands ,." in message
    shell.run(*command, "--thousands", ",")
    assert "warning" not in shell.err
    # The model remembers the mark, and other cells stay as they are.
    shell.run("impute", "m.hmx", "t.csv", "-o", "new.csv")
    assert read("new.csv")["price"].tolist() == spoilt_table()["price"].tolist()
    assert "--thousands" in shell.fail(*command, "--thousands", "comma")


def test_thousands_of_a_target(shell):
    write(spoilt_table()[["size", "price"]], "t.csv")
    command = ["fit", "t.csv", "-t", "price", "-o", "m.hmx", "--effort", "fast"]
    assert "looks like a number: use --thousands ," in shell.fail(*command)
    shell.run(*command, "--thousands", ",", "--no-check")
    assert "predicted as a number" in shell.err


@pytest.mark.parametrize(
    ("cells", "mark", "decimal"),
    [
        (["1.467,5", "1.890", "320,25"], ".", ","),
        (["1 467,5", "1\N{NO-BREAK SPACE}890", "320,25"], " ", ","),
        (["1'467.5", "1'890", "320.25"], "'", "."),
    ],
)
def test_thousands_in_other_countries(shell, cells, mark, decimal):
    rows = [f"{cell};{number}{decimal}5" for number in range(12) for cell in cells]
    with open("t.csv", "w", encoding="utf-8") as stream:
        stream.write("\n".join(["price;size", *rows]))
    command = ["fit", "t.csv", "-o", "m.hmx", "--components", "1", "--no-check"]
    shell.run(*command)
    assert "looks like a number: use --thousands" in shell.err
    shell.run(*command, "--thousands", mark)
    assert "warning" not in shell.err
    told = hybridmix.load("m.hmx")
    assert told.feature_names_in_.tolist() == ["price", "size"]
    assert told.schema_.centre[0] == pytest.approx((1467.5 + 1890.0 + 320.25) / 3.0)


def test_categories_with_numbers_among_them_stay_categories(shell):
    cells = ["0.5", "1.0", "placebo", "2", "A", "10"] * 8
    frame = pd.DataFrame({"dose": cells, "size": np.arange(48.0) % 7})
    assert kinds_of(shell, frame)["dose"] == ("categorical", "6 values")


def test_whole_numbers_that_may_be_codes(shell):
    frame = make_table().assign(rooms=lambda t: t["id"] % 4, floor=lambda t: t["id"] % 3)
    write(frame, "t.csv")
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK]
    shell.run(*command)
    assert (
        "are codes, add: --categorical rooms,floor (or, for all of these, --categorical "
        "codes)"
    ) in shell.err
    kinds = kinds_of(shell, frame.drop(columns="kind"), "--categorical", "codes")
    assert kinds["rooms"] == ("categorical", "4 whole numbers as codes")
    assert kinds["size"][0] == "real"
    kinds = kinds_of(shell, frame.assign(codes=1.5), "--categorical", "codes")
    assert kinds["codes"][0] == "categorical"
    assert kinds["rooms"][0] == "real"


def test_numbers_that_stand_for_missing_values(shell):
    frame = make_table().assign(
        age=lambda t: (20.0 + t["id"] % 30).where(t["id"] % 9 > 0, 9999.0)
    )
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    count = (frame["age"] == 9999.0).sum()
    assert f"far from all other values: 9999 in 'age' ({count} rows)" in shell.err
    assert "add: --na 9999 (which holds for all columns)" in shell.err
    for silencing in (("--na", "9999"), ("--na", "9999.00"), ("--real", "age")):
        shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *silencing, *QUICK)
        assert "far from" not in shell.err
    shell.run("outliers", "t.csv", "--drop", "kind", "--effort", "fast")
    assert "--na 9999 " in shell.err


def test_marks_that_are_numbers_may_be_written_differently():
    texts = TextColumn(["9999.0", "9,999", "1", "09999", "a"], thousands=",")
    marks = frozenset({"9999"})
    assert texts.texts(marks) == [None, None, "1", "09999", "a"]
    assert TextColumn(["9999,00", "1,5"], ",").texts(marks) == [None, "1,5"]
    for n_rows in (2, 1000):  # read one by one, and all at once
        numbers = TextColumn(["9999.0", "2"] * (n_rows // 2)).numbers(marks)
        assert np.isnan(numbers[::2]).all()
        assert (numbers[1::2] == 2.0).all()
    typed = TypedColumn(pa.array([9999.0, 2.0]))
    assert np.isnan(typed.numbers(frozenset({"9999.0"})))[0]


def test_numbers_of_many_digits_are_shown_in_few(shell):
    frame = make_table().assign(level=lambda t: (t["size"].fillna(1.0) + 2) / 7)
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    written = str(frame["level"].iloc[0])
    assert len(written) > 15
    assert written not in shell.err
    assert f"{frame['level'].iloc[0]:.4g}" in shell.err


def test_numbers_that_only_name_something(shell):
    frame = make_table().assign(customer_no=lambda t: 70_000 + t["id"] * 7 % 30)
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert "or a place, add: --drop customer_no" in shell.err
    frame = frame.drop(columns="kind")
    assert kinds_of(shell, frame)["customer_no"] == (
        "real",
        "whole numbers (an identifier?)",
    )


def test_numbers_that_name_groups_of_one_label(shell):
    frame = make_table(200)
    groups = frame.groupby("kind").cumcount() // 4 + 100 * (frame["kind"] == "no")
    write(frame.assign(patient_id=groups).drop(columns="id"), "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert "all rows with the same 'patient_id' have the same label" in shell.err


# Encodings ----------------------------------------------------------------------------


def test_encodings(shell):
    frame = make_table().assign(colour=lambda t: t["colour"].replace("red", "café"))
    text = frame.to_csv(index=False)
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK]
    for encoding in ("cp1252", "utf-16"):
        with open("t.csv", "w", encoding=encoding, newline="") as stream:
            stream.write(text)
        if encoding == "cp1252":
            assert "add --encoding cp1252" in shell.fail(*command)
            assert "is not known" in shell.fail(*command, "--encoding", "windows")
            assert "not in utf-16" in shell.fail(*command, "--encoding", "utf-16")
            command += ["--encoding", "cp1252"]
        else:
            command = command[:-2]
        shell.run(*command)
        assert hybridmix.load("m.hmx").schema_.categories == (("blue", "café"),)


# Standard streams ---------------------------------------------------------------------


class Piped:
    """What a program writes into another one."""

    def __init__(self, path):
        self.buffer = BytesIO(Path(path).read_bytes())

    def isatty(self):
        return False


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet", "feather"])
def test_tables_are_read_from_stdin(shell, fitted, monkeypatch, suffix):
    path = write(make_table(), f"piped.{suffix}")
    expected = shell.run("predict", fitted, path, "--keep", "none")
    monkeypatch.setattr("sys.stdin", Piped(path))
    assert shell.run("predict", fitted, "-", "--keep", "none") == expected


def test_a_fit_to_stdin_and_a_report_to_stdout(shell, fitted, monkeypatch):
    monkeypatch.setattr("sys.stdin", Piped("table.csv"))
    shell.run("fit", "-", "-t", "kind", "-o", "piped.hmx", *QUICK)
    assert shell.err.splitlines()[-1].startswith("Next: hybridmix report piped.hmx TABLE")
    page = shell.run("report", "piped.hmx", "table.csv", "-o", "-", "--no-baselines")
    assert page.startswith("<!")
    monkeypatch.setattr("sys.stdin", Piped("table.csv"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert "nothing is piped into it" in shell.fail("impute", "-")


# Headers ------------------------------------------------------------------------------


def test_columns_of_the_same_name(shell):
    frame = make_table()[["size", "count", "kind"]]
    frame.columns = ["a", "a", "kind"]
    frame.to_csv("t.csv", index=False)
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert "has columns of the same name; the later ones are called 'a.2'" in shell.err
    assert hybridmix.load("m.hmx").feature_names_in_.tolist() == ["a", "a.2"]
    shell.run("predict", "m.hmx", "t.csv", "-o", "new.csv")
    assert read("new.csv").columns.tolist()[:3] == ["a", "a.2", "kind"]


def test_columns_without_names_and_tables_that_begin_late(shell):
    lines = make_table()[["size", "kind"]].to_csv(index=False, sep=";").splitlines()
    Path("t.csv").write_text("\n".join(f"{line};;" for line in lines))
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    assert "warning" not in shell.err
    Path("t.csv").write_text("\n".join(["Exported on Monday", "", *lines]))
    message = shell.fail("fit", "t.csv", "-t", "kind", "-o", "m.hmx")
    assert message.endswith("Does its header come further down?")


def test_numbers_with_signs(shell):
    frame = spoilt_table().assign(price=lambda t: "$" + t["price"].str.replace(",", ""))
    frame.loc[3, "price"] = "unknown"
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", "--na", "unknown", *QUICK)
    assert "of 'price' would be a number without its sign: remove it" in shell.err


# Time ---------------------------------------------------------------------------------


def test_long_work_says_how_long_it_takes():
    now, said = [0.0], []
    pace = Pace(said.append, clock=lambda: now[0])
    for done in range(11):
        pace(Step("search", done, 10))
        pace(Step("EM", done, 3))
        now[0] += 4.0
    assert said == ["search 2/10, about 32 s left"]
    pace(Step("members", 0, 3))
    now[0] += 40 * 60.0
    pace(Step("members", 1, 3))
    assert said[1:] == ["members 1/3, about 80 minutes left"]
    assert in_words(9 * 3600.0) == "9.0 hours"


def test_large_tables_are_announced(shell, monkeypatch):
    monkeypatch.setattr("hybridmix.cli.commands.learning._MANY_CELLS", 100)
    write(make_table(), "t.csv")
    command = ["fit", "t.csv", "-t", "kind", "-o", "m.hmx", "--no-check"]
    shell.run(*command, "--covariance", "diag")
    assert "60 rows of 3 columns: the search may take minutes. --seconds 60" in shell.err
    shell.run(*command, "--effort", "fast")
    assert "may take minutes" not in shell.err
