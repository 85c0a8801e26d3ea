"""What the tests of the command line share: a shell, tables, files."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from hybridmix.cli import main

# Without these, the tests that import this module are skipped.
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")
for package in ("typer", "rich"):
    pytest.importorskip(package)

FORMATS = ["csv", "tsv", "csv.gz", "parquet", "feather"]
QUICK = ["--objective", "likelihood", "--covariance", "diag", "--components", "1"]
QUICK += ["--no-check"]


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


def model_frame(frame):
    """The columns of the model as the command line passes them."""
    return pd.DataFrame(
        {
            "size": frame["size"].astype(float),
            "count": frame["count"].astype("Float64").to_numpy(float, na_value=np.nan),
            "colour": frame["colour"],
        }
    )


def kinds_of(shell, frame_or_text, *arguments):
    if isinstance(frame_or_text, str):
        with open("columns.csv", "w", encoding="utf-8") as stream:
            stream.write(frame_or_text)
    else:
        write(frame_or_text, "columns.csv")
    command = ["fit", "columns.csv", "-o", "m.hmx", "--json", "--components", "1"]
    command += ["--no-check"]
    told = json.loads(shell.run(*command, *arguments))
    return {column["name"]: (column["type"], column["why"]) for column in told["columns"]}


def process(*arguments, **options):
    command = [sys.executable, "-m", "hybridmix", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
