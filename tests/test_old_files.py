"""Model files of older versions load, and predict what they did then.

The files in ``files_v01`` were written by hybridmix 0.1.0: `HybridMixtureClassifier`,
`MixtureDensity`, `MixtureImputer` and `MixtureOutlierDetector` were fitted to 60 rows of
random numbers (``a, b, c``) with holes, some of them with a column ``colour``, and saved;
``expected.npz`` has every fifth row and what the models said about it. They are never to
be made again.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from model_files import manifest_of, refused, write_manifest

from hybridmix import HybridMixtureClassifier, MixtureImputer, load, save
from hybridmix.files.migrations import FORMAT_VERSION, migrated
from hybridmix.io import read_metadata, read_versions
from hybridmix.objectives import Margin
from hybridmix.solvers import ExtendedBaumWelch

FOLDER = Path(__file__).with_name("files_v01")
NAMES = ["classifier", "density", "imputer", "detector", "objects"]
COLOURS = np.array(["blue", "green", "red", None], dtype=object)

with np.load(FOLDER / "expected.npz") as archive:
    EXPECTED = dict(archive)
ROWS = EXPECTED["rows"]
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])
FRAME["colour"] = COLOURS[EXPECTED["codes"]]


def assert_close(found, name):
    np.testing.assert_allclose(found, EXPECTED[name], rtol=1e-9, atol=1e-12)


def check(models):
    classifier, imputer = models["classifier"], models["imputer"]
    assert_close(classifier.predict_proba(FRAME), "classifier")
    assert_close(classifier.score_samples(FRAME), "classifier_density")
    assert_close(models["density"].score_samples(ROWS), "density")
    assert_close(imputer.score_samples(FRAME), "imputer")
    assert_close(imputer.transform(FRAME)[["a", "b", "c"]], "imputer_filled")
    drawn = [table[["a", "b", "c"]] for table in imputer.draw(FRAME, random_state=0)]
    assert_close(np.stack(drawn), "imputer_draw")
    assert_close(models["detector"].score_samples(ROWS), "detector")
    assert_close(models["detector"].predict(ROWS), "detector_outliers")
    assert_close(models["objects"].predict_proba(ROWS), "objects")


def test_old_files_predict_as_they_did():
    check({name: load(FOLDER / f"{name}.hmx") for name in NAMES})


def test_old_files_can_be_saved_again(tmp_path):
    for name in NAMES:
        save(load(FOLDER / f"{name}.hmx"), tmp_path / name)
        assert manifest_of(tmp_path / name)["format_version"] == FORMAT_VERSION
    check({name: load(tmp_path / name) for name in NAMES})


def test_old_files_keep_their_options():
    classifier = load(FOLDER / "classifier.hmx")
    assert isinstance(classifier, HybridMixtureClassifier)
    assert classifier.n_components == {"no": 2, "yes": 1}
    assert classifier.classes_.tolist() == ["no", "yes"]
    imputer = load(FOLDER / "imputer.hmx")
    assert isinstance(imputer, MixtureImputer)
    assert len(imputer.draw_models_) == imputer.n_draws == 2
    objects = load(FOLDER / "objects.hmx")
    assert objects.loss == Margin(sharpness=5.0, margin=0.7)
    assert objects.solver == ExtendedBaumWelch(max_iter=15, factor=3.0)


def test_old_files_keep_what_is_next_to_the_model():
    path = FOLDER / "classifier.hmx"
    assert read_metadata(path) == {"table": "t.csv"}
    assert read_versions(path)["hybridmix"] == "0.1.0"


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([], {}),
        (["learn_prior", "verbose"], {"learn_prior": 1, "verbose": 2}),
        (["learn_prior"], {"learn_prior": 1}),
    ],
)
def test_names_that_a_class_still_has_are_kept(known, expected):
    old = {"learn_prior": 1, "verbose": 2}
    assert migrated("LimitedMemoryBFGS", old, known, 1) == expected
    assert migrated("LimitedMemoryBFGS", old, known, FORMAT_VERSION) == old


def without_margin(version, tmp_path):
    """Save a model whose loss lacks a field, in a given format."""
    path = tmp_path / "model"
    save(load(FOLDER / "objects.hmx"), path)
    manifest = manifest_of(path) | {"format_version": version}
    del manifest["model"]["estimator"]["params"]["loss"]["record"]["fields"]["margin"]
    del manifest["model"]["estimator"]["params"]["n_steps"]
    write_manifest(path, manifest)
    return path


def test_fields_that_are_new_have_their_default(tmp_path):
    model = load(without_margin(1, tmp_path))
    assert model.loss == Margin(sharpness=5.0, margin=1.0)
    assert model.n_steps == HybridMixtureClassifier().n_steps


def test_files_of_the_present_format_lack_nothing(tmp_path):
    path = without_margin(FORMAT_VERSION, tmp_path)
    refused(path, "Margin has unknown or missing fields: margin|fields: n_steps")
