"""The command line: text that terminals or spreadsheets would obey."""

import io
import json
import re

import pytest
from cli_tools import QUICK, make_table, pd, process, rows_of, write

from hybridmix._text import printable
from hybridmix.cli.cells import TextColumn, TypedColumn
from hybridmix.cli.writing import _Layout, _text_writer

RED = "\x1b[31mred\x1b[0m"
MARKUP = "[bold]x[/bold][/]"
TURNED = "\u202ecod"


@pytest.fixture
def hostile(shell):
    """A table with control characters and markup wherever there is room for them."""
    frame = make_table()
    names = {"size": f"size {RED}", "count": f"count {MARKUP}", "kind": f"kind{TURNED}"}
    frame["colour"] = frame["colour"].map({"red": RED, "blue": f"\x9b2J{MARKUP}"})
    frame["kind"] = frame["kind"].map({"no": f"no {RED}", "yes": f"yes\x07 {MARKUP}"})
    write(frame.rename(columns=names).assign(**{f"day {RED}": "2024-01-01"}), "t.csv")
    shell.run("fit", "t.csv", "-t", names["kind"], "-o", "m.hmx", *QUICK)
    return shell


def assert_harmless(text):
    assert printable(text, keep="\n") == text


def test_control_characters_are_shown_as_escapes(hostile, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert_harmless(hostile.err)
    assert r"no \x1b[31mred\x1b[0m" in hostile.err
    assert r"kind\u202ecod" in hostile.err
    for command in (
        ["fit", "t.csv", "-o", "density.hmx", "--components", "1", "-q"],
        ["inspect", "m.hmx"],
        ["evaluate", "m.hmx", "t.csv"],
        ["outliers", "t.csv", "-m", "m.hmx"],
        ["outliers", "t.csv"],
    ):
        hostile.run(*command)
        assert_harmless(hostile.out + hostile.err)
    shown = hostile.run("inspect", "m.hmx")
    assert r"size \x1b[31mred\x1b[0m" in shown
    assert f"count {MARKUP}" in shown
    assert r"\x9b2J[bold]x" in shown


def test_errors_and_warnings_are_harmless(hostile):
    line = hostile.fail("fit", "t.csv", "-o", "m.hmx", "-t", RED)
    assert_harmless(line)
    assert_harmless(hostile.fail("fit", f"{RED}.csv", "-o", "m.hmx"))
    assert r"\x1b[31mred" in line
    assert hostile("evaluate", f"{RED}\ud800.hmx", "t.csv", "--debug") == 2
    assert_harmless(hostile.err)
    frame = pd.read_csv("t.csv").drop(columns="id")
    frame[frame.columns[2]] = f"unseen {RED}"
    frame["more"] = 1
    write(frame.rename(columns={"more": f"more {RED}"}), "t.csv")
    hostile.run("predict", "m.hmx", "t.csv", "-o", "new.csv")
    assert "unseen" in hostile.err
    assert_harmless(hostile.err)


def test_json_keeps_every_character(hostile):
    text = hostile.run("inspect", "m.hmx", "--json")
    assert_harmless(text)
    values = json.loads(text)
    assert f"size {RED}" in [column["name"] for column in values["columns"]]
    assert values["classes"][0]["label"] == f"no {RED}"
    assert values["target"] == f"kind{TURNED}"


def test_files_and_pipes_keep_every_character(hostile, tmp_path):
    hostile.run("predict", "m.hmx", "t.csv", "-o", "new.csv")
    assert rows_of("new.csv")[0][1] == f"size {RED}"
    with process("predict", "m.hmx", "t.csv", cwd=tmp_path) as run:
        assert run.communicate()[0] == (tmp_path / "new.csv").read_text()


def test_tables_on_a_terminal_are_harmless():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    columns = {f"a{RED}": TextColumn([RED, "two\nlines"])}
    for stream, name in (
        (Terminal(), r"a\x1b[31mred\x1b[0m"),
        (io.StringIO(), f"a{RED}"),
    ):
        _text_writer(stream, _Layout(",", ".", False))(columns)
        lines = stream.getvalue().splitlines()
        assert lines[0] == name
        assert lines[2:] == ['"two', 'lines"']


# Formulas -----------------------------------------------------------------------------


FORMULAS = ["=1+1", "+49 30", "-x", "@SUM(A1)", "\t=1", "\uff1d1", "\r=1"]
HARMLESS = ["-1.5", "+3", "-1e-7", "-inf", "a=1", "", "'=1", "1-2"]


@pytest.mark.parametrize("column", [TextColumn, TypedColumn.of])
def test_formulas_are_escaped(column):
    stream = io.StringIO(newline="")
    layout = _Layout(";", ".", True)
    _text_writer(stream, layout)(
        {"=name": column(FORMULAS + HARMLESS), "n": column(FORMULAS + HARMLESS)}
    )
    rows = stream.getvalue()
    assert rows.startswith("'=name;n\n")
    for text in FORMULAS:
        assert f"'{text}" in rows
    for text in HARMLESS:
        assert re.search(rf"^{re.escape(text)};{re.escape(text)}$", rows, re.M)


def test_decimal_commas_are_not_formulas():
    stream = io.StringIO()
    columns = {"x": TextColumn(["-1,5", "-1,5,2"], ","), "y": TypedColumn.of([-0.5, 1.0])}
    _text_writer(stream, _Layout(";", ",", True))(columns)
    assert stream.getvalue() == "x;y\n-1,5;-0,5\n'-1,5,2;1\n"


def test_commands_escape_formulas(shell):
    frame = make_table()
    frame["colour"] = frame["colour"].map({"red": "=1+1", "blue": "-blue"})
    frame["kind"] = frame["kind"].map({"no": "=no", "yes": "@yes"})
    frame["size"] = frame["size"] - 2.0
    write(frame, "t.csv")
    shell.run("fit", "t.csv", "-t", "kind", "-o", "m.hmx", *QUICK)
    commands = {
        "predict": ["m.hmx", "t.csv"],
        "impute": ["t.csv", "-m", "m.hmx"],
        "outliers": ["t.csv", "-m", "m.hmx"],
        "sample": ["m.hmx"],
    }
    for name, command in commands.items():
        shell.run(name, *command, "-o", "raw.csv")
        shell.run(name, *command, "-o", "safe.csv", "--escape-formulas")
        raw, safe = rows_of("raw.csv"), rows_of("safe.csv")
        changed = {
            (before, after)
            for row, other in zip(raw, safe, strict=True)
            for before, after in zip(row, other, strict=True)
            if before != after
        }
        texts = {"=1+1", "-blue", "=no", "@yes"}
        assert changed == {(text, f"'{text}") for text in texts}
        line = shell.fail(name, *command, "-o", "new.parquet", "--escape-formulas")
        assert "--escape-formulas is for CSV and TSV files" in line
    assert "'=no" in shell.run("predict", "m.hmx", "t.csv", "--escape-formulas")
