"""Tables in blocks: the same models as in memory, whatever the blocks are."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

from hybridmix import (
    HybridMixtureClassifier,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
    load,
    save,
    scan,
)
from hybridmix.data import Dataset
from hybridmix.data.block_file import BlockFile
from hybridmix.data.blocks import BlockedDataset, BlockSize

COVARIANCES = ("full", "tied", "diag", "spherical", "subspace")
FEATURES = ["x0", "x1", "x2", "x3", "c"]
# Blocks have at least 256 rows.
TINY = 1


def make_table(n_rows=700, seed=0):
    """Real and categorical columns with holes, labels, some of them missing, weights."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(3, size=n_rows)
    real = generator.normal(size=(n_rows, 4)) + 1.5 * labels[:, None]
    real[:, 1] += 0.8 * real[:, 0]
    letters = np.array(["a", "b", "late"])[generator.integers(2, size=n_rows)]
    letters = letters.astype(object)
    letters[-5:] = "late"
    letters[generator.random(n_rows) < 0.1] = None
    columns = {
        f"x{j}": pl.Series(real[:, j]).scatter(
            np.flatnonzero(generator.random(n_rows) < 0.1), None
        )
        for j in range(4)
    }
    return pl.DataFrame(
        {
            **columns,
            "c": pl.Series(letters, dtype=pl.String),
            "species": pl.Series(np.array(["p", "q", "r"])[labels]),
            "w": generator.integers(0, 3, size=n_rows).astype(float),
        }
    )


def unlabelled_part(table):
    """Return the table with a third of the labels missing."""
    hole = np.arange(len(table)) % 3 == 0
    return table.with_columns(
        pl.when(pl.Series(~hole)).then(pl.col("species")).alias("species")
    )


TABLE = make_table()
X, Y, W = TABLE[FEATURES], TABLE["species"], TABLE["w"]


def scanned(table=TABLE):
    return scan(table.lazy(), memory=TINY)


# The same models ------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("weighted", [False, True])
def test_densities_are_those_of_memory(covariance_type, weighted):
    model = MixtureDensity(2, covariance_type=covariance_type, random_state=0)
    own = model.fit(X, sample_weight=W if weighted else None)
    expected, bic, trace = own.score_samples(X), own.bic_, own.trace_
    columns = [*FEATURES, "w"] if weighted else FEATURES
    blocks = scanned().select(columns)
    model.fit(blocks, sample_weight="w" if weighted else None)
    # Subspaces of rows with holes are found by EM, which amplifies rounding.
    atol = 1e-8 if covariance_type == "subspace" else 1e-10
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(
        model.score_samples(scanned()), expected, rtol=0, atol=atol
    )
    np.testing.assert_allclose(model.trace_, trace, rtol=0, atol=atol)
    assert model.bic_ == pytest.approx(bic, rel=1e-10)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("objective", ["likelihood", "hybrid"])
def test_classifiers_are_those_of_memory(covariance_type, objective):
    table = unlabelled_part(TABLE)
    options = {
        "n_components": 2,
        "covariance_type": covariance_type,
        "tradeoff": 3.0,
        # Every step of a gradient method amplifies rounding.
        "n_steps": 5,
        "class_weight": "balanced",
        "unlabelled_weight": 0.5,
        "random_state": 0,
    }
    own = HybridMixtureClassifier(objective, **options).fit(X, table["species"], W)
    other = HybridMixtureClassifier(objective, **options)
    other.fit(scanned(table), "species", "w")
    assert other.classes_.tolist() == own.classes_.tolist()
    atol = 1e-8 if covariance_type == "subspace" else 1e-10
    for method in ("predict_proba", "predict_joint_log_proba", "typicality"):
        expected = getattr(own, method)(X)
        found = getattr(other, method)(scanned(table))
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    assert other.predict(scanned()).tolist() == own.predict(X).tolist()
    assert other.score(scanned(), "species", "w") == own.score(X, Y, W)
    for name, values in own.history_.items():
        np.testing.assert_allclose(other.history_[name], values, rtol=0, atol=atol)


def test_different_numbers_of_components_and_bic():
    options = {
        "covariance_type": "full",
        "tradeoff": 1.0,
        "n_steps": 3,
        "random_state": 0,
    }
    numbers = {"p": 1, "q": [1, 2, 3], "r": 2}
    own = HybridMixtureClassifier(n_components=numbers, **options).fit(X, Y)
    other = HybridMixtureClassifier(n_components=numbers, **options)
    other.fit(scanned().select([*FEATURES, "species"]), "species")
    for expected, found in zip(own.bic_, other.bic_, strict=True):
        assert found == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(other.predict_proba(X), own.predict_proba(X), atol=1e-10)


def test_validation_rows_calibration_and_weights_of_unlabelled_rows():
    table = unlabelled_part(TABLE)
    options = {
        "n_components": 1,
        "covariance_type": "full",
        "tradeoff": 3.0,
        "n_steps": 5,
        "validation_fraction": 0.2,
        "unlabelled_weight": "auto",
        "calibrate": True,
        # With holes, rows have other numbers, which decide what is held out.
        "column_shapes": "plain",
        "random_state": 0,
    }
    complete = table.with_columns(pl.col("^x.$").fill_null(0.0))
    own = HybridMixtureClassifier(**options).fit(complete[FEATURES], table["species"])
    other = HybridMixtureClassifier(**options)
    other.fit(scanned(complete).select([*FEATURES, "species"]), "species")
    assert other.unlabelled_weight_ == own.unlabelled_weight_
    assert other.temperature_ == pytest.approx(own.temperature_, abs=1e-7)
    np.testing.assert_allclose(
        other.predict_proba(X), own.predict_proba(X), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("shapes", ["auto", "range", {"x0": "skewed"}])
def test_shapes_are_those_of_memory(shapes):
    table = TABLE.with_columns(x0=pl.col("x0").exp(), x1=pl.col("x1").round())
    model = MixtureDensity(2, covariance_type="diag", column_shapes=shapes)
    expected = model.fit(table[FEATURES]).schema_
    found = model.fit(scanned(table).select(FEATURES)).schema_
    assert found.shapes == expected.shapes
    assert found.categories == expected.categories
    np.testing.assert_allclose(found.centre, expected.centre, rtol=1e-12)


def test_automatic_choices_are_made_on_a_sample():
    options = {"random_state": 0, "effort": "fast"}
    model = HybridMixtureClassifier(**options)
    model.fit(scanned().select([*FEATURES, "species"]), "species")
    assert model.score(scanned(), "species") > 0.8
    density = MixtureDensity(**options).fit(scanned().select(FEATURES))
    in_memory = MixtureDensity(**options).fit(X)
    assert density.covariance_type_ == in_memory.covariance_type_
    assert density.n_components_ == in_memory.n_components_


def test_searches_take_blocks():
    columns = ["x0", "x1", "species"]
    model = HybridMixtureClassifier(random_state=0)
    model.fit(scanned().select(columns), "species")
    assert model.leaderboard_
    density = MixtureDensity(random_state=0).fit(scanned().select(columns[:2]))
    assert density.leaderboard_


def test_detector_takes_blocks():
    detector = MixtureOutlierDetector(
        1, covariance_type="full", contamination=0.1, random_state=0
    )
    expected = detector.fit(X, sample_weight=W).predict(X)
    offset = detector.offset_
    detector.fit(scanned().select([*FEATURES, "w"]), sample_weight="w")
    assert detector.offset_ == pytest.approx(offset, abs=1e-10)
    assert detector.predict(scanned()).tolist() == expected.tolist()


def test_training_goes_on_from_a_model_and_is_saved(tmp_path):
    options = {"n_components": 2, "covariance_type": "full", "random_state": 0}
    blocks = scanned().select([*FEATURES, "species"])
    first = HybridMixtureClassifier("likelihood", **options).fit(blocks, "species")
    second = HybridMixtureClassifier(**options, tradeoff=2.0, n_steps=3, init=first)
    second.fit(blocks, "species").set_params(init="kmeans")
    save(second, tmp_path / "model.hybridmix")
    again = load(tmp_path / "model.hybridmix")
    np.testing.assert_array_equal(again.predict_proba(X), second.predict_proba(X))


def test_imputer_takes_blocks():
    imputer = MixtureImputer(2, covariance_type="full", random_state=0)
    expected = imputer.fit_transform(X)
    found = imputer.fit(scanned().select(FEATURES)).transform(X)
    columns = ["x0", "x1", "x2", "x3"]
    np.testing.assert_allclose(found[columns], expected[columns], rtol=0, atol=1e-10)
    assert found["c"].to_list() == expected["c"].to_list()
    with pytest.raises(TypeError, match="Write it block by block"):
        imputer.transform(scanned())


# Sources --------------------------------------------------------------------------


def write_files(folder, kind, table):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
        part = table[rows].to_arrow()
        path = folder / f"part-{number}.{kind}"
        if kind == "parquet":
            pa.parquet.write_table(part, path, row_group_size=100)
        elif kind == "feather":
            pa.feather.write_feather(part, path)
        else:
            pa.csv.write_csv(part, path)


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_files_are_read_block_by_block(tmp_path, kind):
    numbers = TABLE.select("x0", "x1", "species", "w").drop_nulls()
    write_files(tmp_path / "table", kind, numbers)
    table = scan(tmp_path / "table", columns=["x0", "x1"], memory=TINY)
    assert next(iter(table)).num_rows == 256
    model = MixtureDensity(2, covariance_type="full", random_state=0)
    expected = model.fit(numbers[["x0", "x1"]]).score_samples(numbers[["x0", "x1"]])
    found = model.fit(table).score_samples(table)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    first = tmp_path / "table" / f"part-0.{kind}"
    several = scan([first, tmp_path / "table" / f"part-1.{kind}"])
    assert len(several.column("w")) < len(numbers)
    dataset = pa.dataset.dataset(tmp_path / "table", format=kind)
    np.testing.assert_array_equal(scan(dataset).column("w"), numbers["w"].to_numpy())


def test_paths_are_scanned(tmp_path):
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(TABLE.select(*FEATURES, "species").to_arrow(), path)
    options = {"n_components": 1, "covariance_type": "full", "random_state": 0}
    model = HybridMixtureClassifier("likelihood", **options).fit(path, "species")
    assert model.score(str(path), "species") == model.score(X, Y)
    np.testing.assert_array_equal(model.predict(path), model.predict(X))


def test_folders_may_hold_other_files_and_types(tmp_path):
    for number, values in enumerate(([1, 2], [0.5, None])):
        folder = tmp_path / f"year={2020 + number}"
        folder.mkdir()
        pa.parquet.write_table(pa.table({"x": values}), folder / "part.parquet")
    (tmp_path / "README.txt").write_text("not a table")
    [block] = scan(tmp_path)
    assert block.to_pydict() == {
        "x": [1.0, 2.0, 0.5, None],
        "year": [2020] * 2 + [2021] * 2,
    }
    # What a file does not have is missing.
    pa.parquet.write_table(pa.table({"z": [7.0]}), tmp_path / "year=2021" / "q.parquet")
    [block] = scan(tmp_path, columns=["x", "z"])
    assert block.to_pydict() == {
        "x": [1.0, 2.0, 0.5, None, None],
        "z": [None] * 4 + [7.0],
    }


def test_filled_tables_are_written_block_by_block(tmp_path):
    model = MixtureDensity(1, covariance_type="full", random_state=0).fit(X)
    table = scanned().select(FEATURES)
    table.write(tmp_path / "filled", model.impute)
    filled = pl.read_parquet(tmp_path / "filled")
    assert filled.null_count().to_numpy().sum() == 0
    np.testing.assert_allclose(filled["x1"], model.impute(X)["x1"], rtol=0, atol=1e-12)
    table.write(tmp_path / "scores", lambda block: {"t": model.typicality(block)})
    scores = pl.read_parquet(tmp_path / "scores")["t"]
    np.testing.assert_allclose(scores, model.typicality(X), atol=1e-12)
    with pytest.raises(FileExistsError, match="name a folder"):
        table.write(tmp_path / "scores")
    with pytest.raises(TypeError, match="dictionary from names"):
        table.write(tmp_path / "other", model.typicality)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["filled", "scores"]


def test_float32_rounds_and_stays_near():
    table = scan(TABLE.lazy(), memory=TINY, dtype="float32").select(FEATURES)
    model = MixtureDensity(1, covariance_type="full")
    expected = model.fit(X).score_samples(X)
    found = model.fit(table).score_samples(X)
    assert 0 < np.abs(found - expected).max() < 1e-4


def test_a_class_or_a_weight_may_be_missing_in_a_block():
    table = TABLE.sort("species").with_columns(
        w=pl.Series(np.where(np.arange(len(TABLE)) < 300, 0.0, 1.0))
    )
    options = {"n_components": 1, "covariance_type": "full", "random_state": 0}
    own = HybridMixtureClassifier("likelihood", **options)
    other = HybridMixtureClassifier("likelihood", **options)
    own.fit(table[FEATURES], table["species"])
    other.fit(scanned(table).select([*FEATURES, "species"]), "species")
    np.testing.assert_allclose(other.predict_proba(X), own.predict_proba(X), atol=1e-10)
    kept = table.filter(pl.col("w") > 0.0)
    kept = kept.filter(pl.col("species") != "p")
    weighted = table.with_columns(
        w=pl.when(pl.col("species") == "p").then(0.0).otherwise(pl.col("w"))
    )
    density = MixtureDensity(1, covariance_type="full")
    expected = density.fit(kept[FEATURES]).score_samples(X)
    density.fit(scanned(weighted).select([*FEATURES, "w"]), sample_weight="w")
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=0, atol=1e-9)


# Rows in blocks -------------------------------------------------------------------


def blocked(n_blocks=4, weights=False):
    """Rows in memory and the same rows in blocks, of three labels and none."""
    generator = np.random.default_rng(1)
    labels = generator.integers(-1, 3, size=200)
    rows = MixtureDensity(1, covariance_type="full").fit(X)._encode(X[:200])
    w = generator.random(200) if weights else None
    file, sizes = BlockFile(None, np.float64), []
    for index in np.array_split(np.arange(200), n_blocks):
        own = None if w is None else w[index]
        block = Dataset.arrange(rows[index], labels[index], own)
        file.append(block)
        sizes.append(BlockSize.of(block, 3))
    return Dataset.arrange(rows, labels, w), BlockedDataset.of(file, sizes)


def sorted_rows(dataset):
    columns = np.vstack([dataset.labels, dataset.rows.real, dataset.filled_weights])
    return columns[:, np.lexsort(columns)]


@pytest.mark.parametrize("weights", [False, True])
def test_parts_of_blocks_are_parts_of_all_rows(weights):
    whole, blocks = blocked(weights=weights)
    pairs = [
        (whole, blocks),
        (whole.labelled(), blocks.labelled()),
        (whole.unlabelled(), blocks.unlabelled()),
        (whole.of_class(1), blocks.of_class(1)),
        (whole.of_classes([0, 2]), blocks.of_classes([0, 2])),
        (whole.of_classes([0]), blocks.of_classes([0])),
    ]
    for expected, part in pairs:
        assert part.n_rows == expected.n_rows
        assert part.total_weight == pytest.approx(expected.total_weight)
        assert part.label_counts(3).tolist() == expected.label_counts(3).tolist()
        np.testing.assert_allclose(part.class_weights(3), expected.class_weights(3))
        found = part.in_memory(10_000)
        assert np.all(np.diff(found.labels) >= 0)
        np.testing.assert_array_equal(sorted_rows(found), sorted_rows(expected))
        assert part.n_distinct(7) == 7
        assert part.n_distinct(10_000) == expected.n_distinct(10_000)
    blocks.close()


def test_rows_are_held_out_of_blocks():
    _, blocks = blocked()
    rest, held = blocks.split(0.2, np.random.default_rng(0))
    assert rest.n_rows + held.n_rows == blocks.n_rows
    counts = rest.label_counts(3) + held.label_counts(3)
    assert counts.tolist() == blocks.label_counts(3).tolist()
    both = np.concatenate(
        [sorted_rows(rest.in_memory(10_000)), sorted_rows(held)], axis=1
    )
    expected = sorted_rows(blocks.in_memory(10_000))
    np.testing.assert_array_equal(both[:, np.lexsort(both)], expected)
    blocks.close()


def test_few_rows_are_spread_over_blocks():
    _, blocks = blocked()
    few = blocks.in_memory(20)
    assert few.labelled().n_rows <= 20
    assert set(few.labels.tolist()) == {-1, 0, 1, 2}
    thin = blocks.thinned(10, np.random.default_rng(0))
    assert set(thin.labels.tolist()) == {-1, 0, 1, 2}
    blocks.close()


def test_nothing_is_left_on_the_disk(tmp_path):
    table = scan(TABLE.lazy(), memory=TINY, cache=tmp_path).select(FEATURES)
    MixtureDensity(1, covariance_type="full").fit(table)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_after_an_interrupt(tmp_path, monkeypatch):
    blocks = []

    def append(self, block):
        blocks.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(BlockFile, "append", append)
    table = scan(TABLE.lazy(), memory=TINY, cache=tmp_path).select(FEATURES)
    with pytest.raises(KeyboardInterrupt):
        MixtureDensity(1, covariance_type="full").fit(table)
    assert blocks[0]._file.closed
    assert list(tmp_path.iterdir()) == []


# Errors ---------------------------------------------------------------------------


def test_errors_name_the_way_out(tmp_path):
    model = HybridMixtureClassifier("likelihood", n_components=1, covariance_type="full")
    with pytest.raises(TypeError, match="y must name a column"):
        model.fit(scanned(), Y)
    with pytest.raises(ValueError, match="no column 'label' in the table"):
        model.fit(scanned(), "label")
    with pytest.raises(ValueError, match="real numbers, which are not labels"):
        model.fit(scanned(), "x0")
    with pytest.raises(ValueError, match="requires y"):
        model.fit(scanned(), None)
    automatic = HybridMixtureClassifier(cv=3)
    with pytest.raises(ValueError, match="cv and groups need a table in memory"):
        automatic.fit(scanned(), "species")
    with pytest.raises(ValueError, match="weights that are negative"):
        MixtureDensity(1).fit(scanned().select(FEATURES), sample_weight="x0")
    with pytest.raises(ValueError, match="needs a table in memory, to hold rows out"):
        MixtureOutlierDetector(threshold="f1").fit(scanned(), Y)
    fitted = MixtureDensity(1, covariance_type="full").fit(X)
    with pytest.raises(TypeError, match=r"scan\(\.\.\.\)\.write"):
        fitted.impute(scanned())
    with pytest.raises(ValueError, match="no column 'x1'"):
        fitted.predict(scanned().select(["x0"]))
    infinite = TABLE.with_columns(x0=pl.Series([0.0] * 699 + [np.inf]))
    with pytest.raises(ValueError, match="infinity") as caught:
        fitted.fit(scanned(infinite).select(FEATURES))
    assert "from row 512" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="memory='much'"):
        scan(TABLE.lazy(), memory="much")
    with pytest.raises(TypeError, match="Tables in memory can be passed"):
        scan(TABLE)
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        scan(tmp_path / "nothing")
    with pytest.raises(ValueError, match="no Parquet, Feather or CSV"):
        scan(tmp_path)
    with pytest.raises(ValueError, match="no rows"):
        fitted.fit(scanned(TABLE[:0]).select(FEATURES))
