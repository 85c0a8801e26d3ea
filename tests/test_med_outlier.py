"""MEDOutlierDetector: the one-class support vector machine as a limit."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from hybridmix import MEDOutlierDetector, load, save


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :10]
    return X[y == 1][:150], X[y == 0][:50]


@pytest.mark.parametrize("C", [0.02, 0.1, 1.0])
def test_no_smoothness_is_a_one_class_machine(rows, C):
    X, others = rows
    ours = MEDOutlierDetector(C=C, smoothness=0.0, gamma=0.1, tol=1e-6).fit(X)
    theirs = OneClassSVM(nu=ours.nu_, gamma=0.1, tol=1e-8).fit(X)
    # LIBSVM's multipliers are at most 1, ours at most C.
    for part in (X, others):
        np.testing.assert_allclose(
            ours.score_samples(part) / C, theirs.score_samples(part), rtol=5e-3, atol=5e-3
        )
    assert (
        np.mean(ours.score_samples(X) < 0.99)
        <= ours.nu_
        <= np.mean(ours.multipliers_ > 0.0)
    )


def test_smooth_scores_rank_like_those_of_a_one_class_machine(rows):
    X, others = rows
    ours = MEDOutlierDetector(gamma=0.1).fit(X)
    theirs = OneClassSVM(nu=ours.nu_, gamma=0.1).fit(X)
    both = np.vstack([X, others])
    correlation = spearmanr(ours.score_samples(both), theirs.score_samples(both))
    assert correlation.statistic > 0.95


def test_outliers_have_low_scores(rows):
    X, others = rows
    model = MEDOutlierDetector().fit(X)
    scores = np.concatenate([model.score_samples(X), model.score_samples(others)])
    assert roc_auc_score(np.repeat([1, 0], [len(X), len(others)]), scores) > 0.9
    far = model.score_samples(np.full((1, 10), 100.0))
    assert far == pytest.approx(0.0, abs=1e-6)
    assert model.predict(np.full((1, 10), 100.0)) == -1


def test_thresholds(rows):
    X, _ = rows
    model = MEDOutlierDetector(contamination=0.2).fit(X)
    assert np.mean(model.predict(X) == -1) == pytest.approx(0.2, abs=0.01)
    np.testing.assert_array_equal(
        model.decision_function(X), model.score_samples(X) - model.offset_
    )
    automatic = MEDOutlierDetector(C=0.1, smoothness=0.01, contamination="auto").fit(X)
    flagged = automatic.predict(X) == -1
    # They are the rows whose multiplier is more than half of C.
    assert 0.0 < flagged.mean() < 2.0 * automatic.nu_
    assert automatic.multipliers_[flagged].min() > 0.05
    assert automatic.multipliers_[~flagged].max() < 0.051


def test_weights_are_repeated_rows(rows):
    X = rows[0][:60]
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    options = {"gamma": 0.1, "C": 0.1, "tol": 1e-6}
    weighted = MEDOutlierDetector(**options).fit(X, sample_weight=weights)
    repeated = MEDOutlierDetector(**options).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(
        weighted.score_samples(X), repeated.score_samples(X), atol=5e-3
    )
    assert weighted.nu_ == pytest.approx(repeated.nu_, rel=0.01)
    assert weighted.offset_ == pytest.approx(repeated.offset_, abs=0.01)


def test_kernels(rows):
    X, _ = rows
    kernel = rbf_kernel(X, gamma=0.1)
    weights = np.arange(len(X)) % 3
    given = MEDOutlierDetector("precomputed").fit(kernel, sample_weight=weights)
    named = MEDOutlierDetector(gamma=0.1).fit(X, sample_weight=weights)
    np.testing.assert_allclose(
        given.score_samples(kernel), named.score_samples(X), atol=2e-3
    )
    linear = MEDOutlierDetector("linear").fit(X + 5.0)
    np.testing.assert_allclose(linear.score_samples(X), X @ linear.coef_)
    several = MEDOutlierDetector(kernels=["linear", "rbf"], inclusion=0.5).fit(X)
    assert several.inclusion_.shape == (2,)


@pytest.mark.parametrize("options", [{}, {"model": "linear"}], ids=str)
def test_files_clones_and_pipelines(rows, tmp_path, options):
    X, _ = rows
    model = make_pipeline(StandardScaler(), clone(MEDOutlierDetector(**options)))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    model.fit(frame)
    last = model[-1]
    save(last, tmp_path / "model")
    inner = model[:-1].transform(frame)
    np.testing.assert_array_equal(
        load(tmp_path / "model").predict(inner), model.predict(frame)
    )


def test_functions_are_not_saved(rows, tmp_path):
    model = MEDOutlierDetector(rbf_kernel).fit(rows[0])
    with pytest.raises(ValueError, match="a model file never holds code"):
        save(model, tmp_path / "model")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bias": "flat"}, "bias='flat'"),
        ({"contamination": 0.7}, "contamination=0.7"),
        ({"model": "independent"}, "model='independent'"),
        ({"C": -1.0}, "C=-1.0"),
    ],
    ids=str,
)
def test_options_that_make_no_sense(rows, options, message):
    with pytest.raises(ValueError, match=message):
        MEDOutlierDetector(**options).fit(rows[0])
