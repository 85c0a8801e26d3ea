"""Files of tables that are read in blocks: odd ones, and what is written of them."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from hybridmix import HybridMixtureClassifier, MixtureDensity, scan
from hybridmix.cli.tables import open_table
from hybridmix.data import block_readers

# Blocks have at least 256 rows.
TINY = 1


def numbers(n_rows=600, seed=0):
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(generator.normal(size=(n_rows, 2)), columns=["a", "b"])
    return table.assign(y=np.array(["p", "q"])[generator.integers(2, size=n_rows)])


TABLE = numbers()


def classifier():
    return HybridMixtureClassifier("likelihood", n_components=1, covariance_type="full")


# What is read ---------------------------------------------------------------------


def test_datasets_and_lazy_frames_are_scanned():
    X = TABLE[["a", "b"]]
    expected = classifier().fit(X, TABLE["y"]).predict_proba(X)
    for source in (
        pl.from_pandas(TABLE).lazy(),
        pa.dataset.dataset(pa.Table.from_pandas(TABLE)),
    ):
        model = classifier().fit(source, "y")
        np.testing.assert_allclose(model.predict_proba(source), expected, atol=1e-10)


def test_hidden_and_unfinished_files_are_not_read(tmp_path):
    for name in (".hidden", "_unfinished"):
        (tmp_path / f"{name}.parquet").write_text("not a table")
        (tmp_path / name).mkdir()
        TABLE.to_parquet(tmp_path / name / "part.parquet")
    TABLE.to_parquet(tmp_path / "part.parquet")
    assert len(scan(tmp_path).column("a")) == len(TABLE)
    # Only names within the folder matter.
    assert len(scan(tmp_path / "_unfinished").column("a")) == len(TABLE)


def test_the_index_of_pandas_is_not_a_column(tmp_path):
    path = tmp_path / "table.parquet"
    TABLE[TABLE["y"] == "p"].to_parquet(path)
    assert "__index_level_0__" in pa.parquet.read_schema(path).names
    table = scan(path)
    assert table.names == ("a", "b", "y")
    [block] = table
    assert block.column_names == ["a", "b", "y"]
    commands = open_table(path)
    assert commands.names == ["a", "b", "y"]
    [chunk] = commands.chunks(1000)
    assert list(chunk.columns) == ["a", "b", "y"]


@pytest.mark.parametrize(
    ("memory", "n_bytes"), [("1.5GB", 1_500_000_000), (" 2 tib ", 2**41), (1e6, 10**6)]
)
def test_memory_is_given_in_units(memory, n_bytes):
    assert scan(pl.LazyFrame({"a": [1.0]}), memory=memory)._memory == n_bytes


def test_a_column_may_be_labels_and_weights():
    table = TABLE.assign(y=1.0 + (TABLE["y"] == "p"))
    model = classifier().fit(pl.from_pandas(table).lazy(), "y", sample_weight="y")
    expected = classifier().fit(table[["a", "b"]], table["y"], sample_weight=table["y"])
    np.testing.assert_allclose(model.means_, expected.means_, atol=1e-10)


# Errors ---------------------------------------------------------------------------


def test_files_of_different_types_are_named(tmp_path):
    TABLE.to_parquet(tmp_path / "0.parquet")
    TABLE.assign(b="text").to_parquet(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet and the files before .* Field b"):
        scan(tmp_path)


def test_cells_that_do_not_fit_to_the_first_rows_are_named(tmp_path):
    # The first megabyte decides about types.
    cells = ["7,1"] * 400_000 + ["7,0.5"]
    (tmp_path / "table.csv").write_text("\n".join(["a,b", *cells]))
    with pytest.raises(ValueError, match=r"Column 'b' of .*'0\.5'.*scan_csv") as caught:
        MixtureDensity(1).fit(tmp_path)
    assert str(tmp_path) in str(caught.value)


def write_more(path):
    numbers(700).to_parquet(path)


@pytest.mark.parametrize("change", [write_more, os.remove])
@pytest.mark.parametrize("n_before", [0, 1])
def test_files_that_change_are_an_error(tmp_path, monkeypatch, change, n_before):
    path = tmp_path / "table.parquet"
    TABLE.to_parquet(path)
    table = scan(path)
    for _ in range(n_before):
        table.column("a")
    read = block_readers._ArrowReader._read

    def changed(reader, columns, n_rows):
        for block in read(reader, columns, n_rows):
            yield block
            change(path)

    monkeypatch.setattr(block_readers._ArrowReader, "_read", changed)
    with pytest.raises(OSError, match=r"table\.parquet has changed since"):
        table.column("a")
    with pytest.raises(OSError, match=r"table\.parquet has changed since"):
        table.column("a")


def test_lazy_frames_that_change_are_an_error(tmp_path):
    path = tmp_path / "table.csv"
    TABLE.to_csv(path, index=False)
    table = scan(pl.scan_csv(path), columns=["a"])
    table.column("a")
    numbers(700).to_csv(path, index=False)
    with pytest.raises(OSError, match="had 600 rows, and now has 700"):
        table.column("a")


def test_labels_that_appear_while_a_table_is_read_are_an_error():
    n_reads = 0

    def relabelled(frame):
        nonlocal n_reads
        n_reads += 1
        return frame.with_columns(y=pl.lit("p" if n_reads < 2 else "new"))

    frame = pl.from_pandas(TABLE).lazy().map_batches(relabelled)
    with pytest.raises(ValueError, match="label 'new' in column 'y' was not there"):
        classifier().fit(frame, "y")


def test_options_of_scan_are_checked(tmp_path):
    table = pl.LazyFrame({"ab": [1.0], "a": [1.0], "b": [1.0]})
    for columns in ("ab", ["a", "a"]):
        with pytest.raises(ValueError, match="each of them once"):
            scan(table, columns=columns)
    with pytest.raises(ValueError, match=r"memory='1\.5\.5GB' is not"):
        scan(table, memory="1.5.5GB")
    with pytest.raises(NotADirectoryError, match="missing' is not a folder"):
        scan(table, cache=tmp_path / "missing")
    with pytest.raises(ValueError, match="at least one path"):
        scan([])
    TABLE.to_parquet(tmp_path / "0.parquet")
    TABLE.to_csv(tmp_path / "1.csv")
    with pytest.raises(ValueError, match="files of several formats"):
        scan(tmp_path)


def test_errors_of_predictions_say_where_rows_are_counted_from():
    model = MixtureDensity(1, covariance_type="full").fit(TABLE[["a", "b"]])
    table = TABLE.assign(a=np.where(np.arange(600) == 300, np.inf, 0.0))
    with pytest.raises(ValueError, match="column 'a', row 44") as caught:
        model.score_samples(scan(pl.from_pandas(table).lazy(), memory=TINY))
    assert caught.value.__notes__ == ["Rows are counted from row 256 of the table."]


# What is written ------------------------------------------------------------------


def test_parts_that_are_written_have_the_same_types(tmp_path):
    whole = np.arange(600) % 7
    table = pl.from_pandas(TABLE[["a"]]).with_columns(n=pl.Series(whole))
    holes = table.with_columns(n=pl.when(pl.int_range(600) != 400).then("n"))
    model = MixtureDensity(1, covariance_type="full").fit(table)
    scan(holes.lazy(), memory=TINY).write(tmp_path / "filled", model.impute)
    paths = sorted((tmp_path / "filled").iterdir())
    assert len(paths) == 3
    assert {pa.parquet.read_schema(path).field("n").type for path in paths} == {
        pa.float64()
    }
    filled = pl.read_parquet(tmp_path / "filled")["n"]
    assert filled.null_count() == 0
    np.testing.assert_array_equal(
        np.delete(filled.to_numpy(), 400), np.delete(whole, 400)
    )


def alternating(first, second):
    """Return a function that returns one thing for the first block, then another."""
    made = iter([first])
    return lambda _: next(made, second)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda block: {"p": np.zeros((block.height, 2))}, r"shape \(256, 2\) for 'p'"),
        (lambda _: {"p": 1.0}, r"shape \(\) for 'p'"),
        (alternating({"p": [1.0]}, {"p": ["a"]}), "Field p has incompatible types"),
        (alternating({"p": [1.0]}, {"q": [1.0]}), "columns p for one block, and q"),
    ],
)
def test_tables_that_cannot_be_written_are_refused(tmp_path, function, message):
    table = scan(pl.from_pandas(TABLE).lazy(), memory=TINY)
    with pytest.raises(ValueError, match=message):
        table.write(tmp_path / "made", function)
    assert list(tmp_path.iterdir()) == []


def test_tables_without_rows_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="has no rows"):
        scan(pl.from_pandas(TABLE[:0]).lazy()).write(tmp_path / "made")
    assert list(tmp_path.iterdir()) == []
