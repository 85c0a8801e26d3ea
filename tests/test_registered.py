"""Classes of other packages in model files, and nested estimators."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import sklearn
from helpers import plain_classifier
from model_files import MODEL, assert_same, at, manifest_of, refused, set_value
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import KFold

import hybridmix
from hybridmix import HybridMixtureClassifierCV, MixtureDensity
from hybridmix._registered import class_named, name_of
from hybridmix._require import require
from hybridmix.files.codec import Decoder, Encoder
from hybridmix.io import load, registered, save
from hybridmix.objectives import Margin

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1], 30)
X = RNG.normal(size=(60, 2)) + 2.0 * Y[:, None]


@registered(name="tests.OddMargin")
@dataclass(frozen=True)
class OddMargin(Margin):
    """An objective of another package."""

    oddness: int = 1

    def check_consistent(self):
        super().check_consistent()
        require(self.oddness % 2 == 1, "oddness is even")


@dataclass(frozen=True)
class Stranger(Margin):
    """An objective that nobody registered."""


@registered
class OwnDensity(MixtureDensity):
    """An estimator of another package."""


def classifier(**options):
    return plain_classifier(
        "margin", n_steps=2, covariance_type="diag", random_state=0, **options
    ).fit(X, Y)


# Classes of other packages --------------------------------------------------------------


def test_own_classes_are_saved_and_loaded(tmp_path):
    model = classifier(loss=OddMargin(oddness=3))
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.loss == OddMargin(oddness=3)
    assert_same(loaded, model)
    assert "tests.OddMargin" in str(manifest_of(tmp_path / "model"))


def test_own_estimators_are_saved_and_loaded(tmp_path):
    model = OwnDensity().fit(X)
    save(model, tmp_path / "model")
    assert_same(load(tmp_path / "model"), model)
    name = manifest_of(tmp_path / "model")["model"]["estimator"]["class"]
    assert name == f"{__name__}.OwnDensity"


def test_own_classes_check_themselves(tmp_path):
    with pytest.raises(ValueError, match="oddness is even"):
        save(classifier(loss=OddMargin(oddness=2)), tmp_path / "model")
    save(classifier(loss=OddMargin(oddness=3)), tmp_path / "model")
    where = ("estimator", "params", "loss", "record", "fields", "oddness")
    set_value(tmp_path / "model", where, 4)
    refused(tmp_path / "model", "oddness is even")


def test_unregistered_classes_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match=r"loss holds a Stranger, .*hybridmix\.io\.regis"):
        save(classifier(loss=Stranger()), tmp_path / "model")


def test_unregistered_classes_are_named(tmp_path):
    path = tmp_path / "model"
    save(classifier(loss=OddMargin()), path)
    where = ("estimator", "params", "loss", "record", "class")
    set_value(path, where, "somewhere.Else")
    refused(path, r"class 'somewhere\.Else' is unknown: .*import the module that defines")


def test_files_do_not_import_what_they_name(tmp_path, monkeypatch):
    """A module that a file names is not imported, even if there is one."""
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "model"
    save(
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            X
        ),
        path,
    )
    for name in ("evil.Family", "evil", "hybridmix.cli.Model"):
        set_value(path, (*MODEL[:-1], "class"), name)
        refused(path, "is unknown")
    assert "evil" not in sys.modules


def test_names_are_unique():
    with pytest.raises(ValueError, match=r"'Margin' is taken by hybridmix\.objectives"):

        @registered(name="Margin")
        @dataclass
        class Other:
            pass

    assert class_named("Margin") is Margin


def test_a_class_that_is_defined_again_replaces_the_old_one():
    def defined():
        @registered
        @dataclass
        class Twice:
            pass

        return Twice

    first, second = defined(), defined()
    name = name_of(second)
    assert name is not None
    assert class_named(name) is second
    assert name_of(first) is None


def test_what_cannot_be_registered():
    with pytest.raises(TypeError, match="neither a dataclass nor an estimator"):

        @registered
        class Plain:
            pass


def test_loading_finds_classes_without_everything_imported(tmp_path):
    """In a new process that knows only the files, names lead to their packages."""
    save(classifier(loss=Margin()), tmp_path / "model")
    code = (
        "import sys; from hybridmix.files import load;"
        f"print(type(load({str(tmp_path / 'model')!r}).loss).__name__)"
    )
    source = Path(hybridmix.__file__).parents[1]
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "Margin"


# Estimators in estimators, and what searches hold ---------------------------------------


def search(**options):
    return HybridMixtureClassifierCV(
        covariance_type=["diag"],
        n_components=[1, 2],
        tradeoff=[0.0, 1.0],
        cv=2,
        random_state=0,
        **options,
    )


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_searches_are_saved(scoring, tmp_path):
    template = plain_classifier(n_steps=2, covariance_prior=2.0)
    model = search(estimator=template, scoring=scoring).fit(X, Y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert_same(loaded.estimator, model.estimator)
    assert_same(loaded.best_estimator_, model.best_estimator_)
    assert (loaded.best_params_, loaded.best_score_, loaded.best_index_) == (
        model.best_params_,
        model.best_score_,
        model.best_index_,
    )
    assert list(loaded.cv_results_) == list(model.cv_results_)
    for name, column in model.cv_results_.items():
        assert type(loaded.cv_results_[name]) is type(column)
        np.testing.assert_array_equal(loaded.cv_results_[name], column)
    assert loaded.score(X, Y) == model.score(X, Y)
    assert loaded.scorer_(loaded, X, Y) == model.scorer_(model, X, Y)
    assert_same(sklearn.clone(loaded).fit(X, Y).best_params_, model.best_params_)


@pytest.mark.parametrize(
    ("option", "pattern"),
    [
        ({"scoring": get_scorer("accuracy")}, "scoring holds a _Scorer"),
        ({"scoring": make_scorer(len)}, "scoring holds a _Scorer"),
        ({"cv": KFold(2)}, "cv holds a KFold"),
    ],
)
def test_options_of_searches_that_are_code_are_refused(option, pattern, tmp_path):
    model = search().fit(X, Y).set_params(**option)
    with pytest.raises(TypeError, match=f"{pattern}, which cannot be saved"):
        save(model, tmp_path / "model")


def test_unknown_scores_are_refused(tmp_path):
    path = tmp_path / "model"
    save(search().fit(X, Y), path)
    set_value(path, ("estimator", "params", "scoring"), "os.system")
    refused(path, "os.system")


def test_half_searched_is_refused(tmp_path):
    model = search().fit(X, Y)
    model.best_estimator_ = plain_classifier()
    with pytest.raises(NotFittedError):
        save(model, tmp_path / "model")
    model.best_estimator_ = None
    with pytest.raises(ValueError, match="best_estimator_ is a NoneType"):
        save(model, tmp_path / "model")


def test_nested_estimators_are_checked(tmp_path):
    path = tmp_path / "model"
    start = MixtureDensity(1, covariance_type="full", covariance_prior=1.0).fit(X)
    save(
        MixtureDensity(1, init=start, covariance_type="full", covariance_prior=1.0).fit(
            X
        ),
        path,
    )
    learned = ("estimator", "params", "init", "estimator", "learned")
    assert "model_" in at(manifest_of(path)["model"], learned)
    set_value(path, (*learned, "n_features_in_"), 3)
    refused(path, "n_features_in_ is wrong")


@pytest.mark.parametrize(
    "array",
    [
        np.ma.MaskedArray([1.0, np.nan], mask=[False, True]),
        np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[True, False], [True, True]]),
        np.ma.MaskedArray([1, 2]),
        np.ma.MaskedArray(np.array(["auto", None, 3], dtype=object), mask=False),
    ],
)
def test_masked_arrays(array):
    encoder = Encoder()
    encoded = encoder.encode(array)
    decoded = Decoder(encoder.arrays.__getitem__, 2).decode(encoded)
    assert type(decoded) is np.ma.MaskedArray
    assert_same(np.asarray(decoded.data), np.asarray(array.data))
    assert_same(np.asarray(decoded.mask), np.asarray(array.mask))
    assert (decoded.mask is np.ma.nomask) == (array.mask is np.ma.nomask)


def test_masks_must_fit():
    data = {"array": {"axes": [0], "member": 0}}
    for mask, pattern in (
        (np.zeros(3, dtype=bool), "mask of another shape or type"),
        (np.zeros(2), "mask of another shape or type"),
    ):
        value = {"masked": {"data": data, "mask": {"array": {"axes": [0], "member": 1}}}}
        decoder = Decoder([np.zeros(2), mask].__getitem__, 2)
        with pytest.raises(ValueError, match=pattern):
            decoder.decode(value)
    with pytest.raises(ValueError, match="has no data"):
        Decoder([].__getitem__, 2).decode({"masked": {"data": 3, "mask": None}})
