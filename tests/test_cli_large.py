"""The command line: folders, and tables that do not fit into memory."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_tools import QUICK, make_table, pd, read, rows_of, write

from hybridmix import load
from hybridmix.cli import large
from hybridmix.cli.columns import ColumnKind
from hybridmix.cli.tables import open_table

# Blocks of 256 rows, the fewest there are.
BLOCKS = ["--memory", "1kB"]
N_ROWS = 600
SUFFIXES = ["csv", "tsv.gz", "parquet", "feather"]


@pytest.fixture
def table():
    frame = make_table(N_ROWS)
    # How much rows without a label count is chosen by other held-out rows in blocks.
    frame["kind"] = np.array(["no", "yes"], dtype=object)[np.arange(N_ROWS) % 2]
    return frame


def write_folder(frame, suffix, name="folder"):
    """Write a folder of three files, and a file that does not belong to the table."""
    Path(name).mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
        part = frame.iloc[rows].reset_index(drop=True)
        write(part, f"{name}/part-{number}.{suffix}")
    Path(f"{name}/README.txt").write_text("not a table", encoding="utf-8")
    return name


def same_models(first, second, frame):
    rows = frame[["size", "count", "colour"]].astype({"count": "Float64"})
    rows["count"] = rows["count"].to_numpy(float, na_value=np.nan)
    one, other = load(first), load(second)
    expected = one.score_samples(rows)
    np.testing.assert_allclose(other.score_samples(rows), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_fit_in_blocks_is_that_in_memory(shell, table, suffix):
    path = write(table, f"t.{suffix}")
    options = ["--target", "kind", *QUICK]
    shell.run("fit", path, "-o", "memory.hmx", *options)
    assert "blocks" not in shell.err
    shell.run("fit", path, "-o", "blocks.hmx", *options, *BLOCKS)
    assert f"{path} would take about" in shell.err
    assert "may take 1 kB: it is read in blocks" in shell.err
    assert f"{N_ROWS} of {N_ROWS} rows have a label" in shell.err
    same_models("memory.hmx", "blocks.hmx", table)
    assert load("blocks.hmx").classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_folders_are_one_table(shell, table, suffix):
    path, folder = write(table, f"t.{suffix}"), write_folder(table, suffix)
    options = ["--target", "kind", *QUICK]
    shell.run("fit", path, "-o", "file.hmx", *options)
    for more in ([], BLOCKS):
        shell.run("fit", folder, "-o", "folder.hmx", *options, *more)
        same_models("file.hmx", "folder.hmx", table)
    for command in ("predict", "impute"):
        for source, output in ((path, "file.csv"), (folder, "folder.csv")):
            arguments = ["file.hmx", source] if command == "predict" else [source]
            more = [] if command == "predict" else ["--model", "file.hmx"]
            shell.run(command, *arguments, *more, "-o", output, "--chunk-rows", 70)
        assert rows_of("folder.csv") == rows_of("file.csv")
    expected = json.loads(shell.run("evaluate", "file.hmx", path, "--json"))
    found = json.loads(shell.run("evaluate", "file.hmx", folder, "--json"))
    assert found["confusion"] == expected["confusion"]
    assert found["log_loss"] == pytest.approx(expected["log_loss"])


def test_holes_and_outliers_of_large_tables(shell, table):
    path = write(table, "t.parquet")
    options = ["--drop", "id,day,kind", "--components", 1, "--covariance", "full"]
    for name, more in (("memory", []), ("blocks", BLOCKS)):
        shell.run("impute", path, "-o", f"filled-{name}.parquet", *options, *more)
        assert ("it is read in blocks" in shell.err) == bool(more)
        shell.run("outliers", path, "-o", f"flagged-{name}.parquet", *options, *more)
        assert ("it is read in blocks" in shell.err) == bool(more)
    for stem in ("filled", "flagged"):
        expected, found = (
            read(f"{stem}-{name}.parquet") for name in ("memory", "blocks")
        )
        pd.testing.assert_frame_equal(found, expected, rtol=1e-8)
    message = shell.fail("impute", path, "-m", "x.hmx", "-o", "o.csv", *BLOCKS)
    assert "--memory is for fitting" in message


def test_labels_of_large_tables(shell, table):
    table["kind"] = np.where(table["kind"] == "yes", 1.0, 0.0)
    table.loc[::4, "kind"] = -1.0
    table["mass"] = 1.0 + (table.index % 3)
    path = write(table, "t.csv")
    options = ["--target", "kind", "--unlabelled", "-1", "--weight", "mass", *QUICK]
    for name, more in (("memory", []), ("blocks", BLOCKS)):
        told = shell.run("fit", path, "-o", f"{name}.hmx", *options, *more, "--json")
        assert json.loads(told)["rows"] == N_ROWS
        assert json.loads(told)["labelled"] == (table["kind"] >= 0).sum()
        assert load(f"{name}.hmx").classes_.tolist() == [0, 1]


def test_models_that_need_memory_say_so(shell, table):
    table["worth"] = table["size"].fillna(0.0) + np.arange(N_ROWS) / N_ROWS
    path = write(table, "t.csv")
    options = ["--components", 1, "--covariance", "diag", "--tradeoff", 1, *BLOCKS]
    shell.run("fit", path, "--target", "worth", "-o", "m.hmx", *options)
    assert "but this model needs all rows" in shell.err
    assert "read in blocks" not in shell.err
    assert shell.err.count("it is predicted as a number") == 1
    words = shell.fail("fit", path, "-o", "m.hmx", "--memory", "much")
    assert "--memory much: give a number of bytes, such as 500MB" in words


def test_memory_that_is_free(shell, table, monkeypatch):
    assert 1e6 < large.free_memory() < 1e15
    monkeypatch.setattr(large, "free_memory", lambda: 10_000)
    shell.run("fit", write(table, "t.csv"), "-o", "m.hmx", "--drop", "kind", *QUICK[2:])
    assert "may take 7 kB: it is read in blocks" in shell.err


@pytest.mark.usefixtures("shell")  # in a folder of its own
def test_sizes_are_estimated_by_the_first_rows():
    many = make_table(36_000)
    kinds = [ColumnKind(name, "real", "", (), 0.0) for name in ("size", "count")]
    exact = len(many) * 2 * large._BYTES_OF_NUMBER
    for suffix in SUFFIXES:
        found = large.estimated_bytes(open_table(Path(write(many, f"t.{suffix}"))), kinds)
        assert exact * 0.7 < found < exact * 1.5, suffix


def test_folders_that_are_not_tables(shell, table):
    Path("empty").mkdir()
    words = shell.fail("fit", "empty", "-o", "m.hmx")
    assert "empty is a folder without any file of a table" in words
    folder = write_folder(table, "csv")
    write(table.rename(columns={"size": "width"}), f"{folder}/part-3.csv")
    assert "part-3.csv has other columns than" in shell.fail("fit", folder, "-o", "m.hmx")
    write(table, f"{folder}/part-3.parquet")
    assert "one table" in shell.fail("fit", folder, "-o", "m.hmx")


def test_files_may_disagree_about_types(shell, table):
    folder = write_folder(table.drop(columns="kind"), "parquet")
    other = table.drop(columns="kind").astype({"count": "Float64"})
    other["count"] += 0.5
    write(other, f"{folder}/part-3.parquet")
    shell.run("fit", folder, "-o", "m.hmx", *QUICK[2:], *BLOCKS)
    shell.run("impute", folder, "-m", "m.hmx", "-o", "filled.parquet")
    assert (read("filled.parquet")["count"] % 1 == 0.5).sum() > N_ROWS / 2
