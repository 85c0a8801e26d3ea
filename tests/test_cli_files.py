"""The command line: files that are broken, long or of another kind."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from cli_tools import FORMATS, QUICK, make_table, pq, read, rows_of, write

from hybridmix.training.covariances import COVARIANCE_TYPES
from hybridmix.training.discriminative import OBJECTIVES

# Files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", "line 3: 3 cells, but the header has 2"),
        ("t.csv", b"a,b\n1,2\n\n1\n", "line 4: 1 cells"),
        ("t.csv", b"a,b\n1,caf\xe9\n", "t.csv: byte 0xe9 is not UTF-8"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16")[:-1], "is not UTF-16"),
        ("t.csv", b'a,b\n1,"2\n3,4\n', "unexpected end of data"),
        ("t.csv.gz", b"a,b\n1,2\n", "not a complete gzip file"),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12],
            "not a complete gzip file",
        ),
        ("t.parquet", b"PAR", "not a parquet file"),
        ("t.feather", b"a,b\n1,2\n", "not a feather file"),
        ("t.dat", b"", "must be one of .csv, .csv.gz, .tsv"),
        ("t.xlsx", b"", "is a spreadsheet: save its sheet as CSV"),
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
    assert "does it lack a header?" in shell.err


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
        (
            ["fit", "t.csv", "-o", "m.hmx", "-t", "size", "--tune"],
            "--tune is for classifiers",
        ),
        (["fit", "t.csv", "-o", "m.hmx", "--real", "size", "--drop", "size"], "at once"),
        (["fit", "t.csv", "-o", "m.hmx", "--components", "two"], "--components two"),
        (
            ["fit", "t.csv", "-o", "m.hmx", "--covariance", "round"],
            f"'round' is not one of {', '.join(COVARIANCE_TYPES)}.",
        ),
        (
            ["fit", "t.csv", "-o", "m.hmx", "--objective", "round"],
            f"'round' is not one of {', '.join(OBJECTIVES)}.",
        ),
        (["fit", "t.csv", "-o", "t.csv"], "would replace what is read"),
        (["fit", "t.csv", "-o", "no/such/m.hmx"], "there is no folder"),
        (["fit", "t.csv"], "--output"),
        (["fit", "t.csv", "-o", "-"], "models do not go to stdout"),
        (["fit", "none.csv", "-o", "m.hmx"], "there is no such file"),
        (["fit", "t.csv", "-o", "m.hmx", "--components", "99"], "99"),
        (["impute", "t.csv", "-o", "t.csv"], "would replace what is read"),
        (["impute", "t.csv", "-o", "new.xls"], "must be one of"),
        (["impute", "t.csv", "-m", "MODEL", "--drop", "size"], "--drop is for fitting"),
        (["outliers", "t.csv", "--share", "0.1", "--threshold", "0.1"], "not both"),
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
def test_folders_without_files_are_not_tables(shell, suffix):
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
