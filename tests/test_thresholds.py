"""From which score on rows are outliers."""

import numpy as np
import pytest

from hybridmix import MixtureOutlierDetector

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical", "subspace")


def overlapping(n_rows=600):
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=1.5, size=(3, 3))
    return centres[rng.integers(3, size=n_rows)] + rng.normal(size=(n_rows, 3))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_one_in_a_hundred_rows_of_the_model_is_flagged(covariance_type):
    """Scores are upper bounds where components overlap; the threshold makes up for it."""
    detector = MixtureOutlierDetector(
        4, covariance_type=covariance_type, random_state=0, covariance_prior=1.0
    ).fit(overlapping())
    rows, _ = detector._sample_rows(20_000, 1)
    assert np.mean(detector.predict(rows) == -1) == pytest.approx(0.01, rel=0.35)
    # Holes make components overlap more, and scores higher.
    rows[:, 0] = np.nan
    assert 0.001 < np.mean(detector.predict(rows) == -1) < 0.0135


def test_a_single_component_has_the_threshold_of_its_definition():
    detector = MixtureOutlierDetector(
        1, covariance_type="full", covariance_prior=1.0
    ).fit(overlapping())
    assert detector.offset_ == np.log(0.01)


def test_the_threshold_does_not_depend_on_the_seed():
    X = overlapping()
    offsets = {
        MixtureOutlierDetector(
            2, init=X[:2], random_state=seed, covariance_type="full", covariance_prior=1.0
        )
        .fit(X)
        .offset_
        for seed in (0, 1, None)
    }
    assert len(offsets) == 1


@pytest.mark.parametrize("share", [0.0, 0.1, 0.13, 0.5])
def test_rows_lie_clearly_on_either_side_of_the_threshold(share):
    """A row at the very threshold would be flagged or not by rounding."""
    X = overlapping(100)
    detector = MixtureOutlierDetector(
        2,
        contamination=share,
        random_state=0,
        covariance_type="full",
        covariance_prior=1.0,
    ).fit(X)
    assert np.sum(detector.predict(X) == -1) == round(share * 100)
    assert np.abs(detector.decision_function(X)).min() > 1e-7


def test_tied_rows_are_flagged_together_or_not_at_all():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [9.0, 9.0]], [40, 40, 15, 5], 0)
    for share, flagged in ((0.04, 0), (0.05, 5), (0.1, 5)):
        detector = MixtureOutlierDetector(
            1, contamination=share, covariance_type="full", covariance_prior=1.0
        ).fit(X)
        assert np.sum(detector.predict(X) == -1) == flagged


def test_weighted_rows_count_in_the_threshold_like_repeated_ones():
    X = overlapping(80)
    counts = np.random.default_rng(1).integers(0, 4, size=80)
    options = {"n_components": 1, "contamination": 0.2, "random_state": 0}
    weighted = MixtureOutlierDetector(**options).fit(X, sample_weight=counts)
    repeated = MixtureOutlierDetector(**options).fit(np.repeat(X, counts, axis=0))
    assert weighted.offset_ == pytest.approx(repeated.offset_, rel=1e-9)


def test_anything_like_an_array_can_be_split_into_folds():
    from sklearn.utils.estimator_checks import _NotAnArray

    X = overlapping(60)
    y = np.where(np.arange(60) % 6, 1, -1)
    detector = MixtureOutlierDetector(
        1, threshold="f1", cv=2, covariance_type="full", covariance_prior=1.0
    )
    offset = detector.fit(X, y).offset_
    assert detector.fit(_NotAnArray(X), y).offset_ == offset
