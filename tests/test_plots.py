"""Pictures, and the figures behind them."""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss

from hybridmix import HybridMixtureClassifier
from hybridmix.metrics import calibration_report
from hybridmix.plots import ReliabilityDisplay, TrainingDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    # Examples that ran in this process may have left their style behind.
    with mpl.rc_context({"backend": "Agg", "axes.titlelocation": "center"}):
        yield
    plt.close("all")


@pytest.fixture(scope="module")
def trained():
    X, y = load_iris(return_X_y=True)
    model = HybridMixtureClassifier(
        "hybrid", loss="hinge", validation_fraction=0.3, random_state=0
    )
    return model.fit(X, y)


def test_traces_of_training(trained):
    display = TrainingDisplay.from_estimator(trained)
    titles = [ax.get_title() for ax in display.axes_]
    assert titles == ["objective, mean per row", "likelihood", "margin", "error"]
    np.testing.assert_array_equal(display.axes_[0].lines[0].get_ydata(), trained.trace_)
    labels = [text.get_text() for text in display.axes_[3].get_legend().get_texts()]
    assert labels == ["training error", "validation error", "kept"]


def test_traces_in_given_axes(trained):
    _, axes = plt.subplots(2, 2)
    assert TrainingDisplay.from_estimator(trained, axes=axes).figure_ is axes[0, 0].figure
    with pytest.raises(ValueError, match="4 panels"):
        TrainingDisplay.from_estimator(trained, axes=axes[0])


def test_no_traces_to_draw():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="one by one"):
        TrainingDisplay.from_estimator(HybridMixtureClassifier("likelihood").fit(X, y))


def test_reliability(trained):
    X, y = load_iris(return_X_y=True)
    display = ReliabilityDisplay.from_estimator(trained, X, y, name="hybrid")
    again = ReliabilityDisplay.from_estimator(trained, X, y, ax=display.ax_)
    assert again.figure_ is display.figure_
    assert len(display.ax_.lines) == 3  # the diagonal once, and two models


def test_calibration_report_agrees_with_scikit_learn():
    X, y = load_digits(return_X_y=True)
    model = HybridMixtureClassifier(covariance_type="diag").fit(X[:900], y[:900])
    probabilities = model.predict_proba(X[900:])
    report = calibration_report(y[900:], probabilities, model.classes_)
    assert report.accuracy == pytest.approx(model.score(X[900:], y[900:]))
    clipped = np.clip(probabilities, 1e-15, 1.0)
    expected = log_loss(y[900:], clipped / clipped.sum(axis=1, keepdims=True))
    assert report.log_loss >= 0.99 * expected  # scikit-learn bounds it
    assert report.bin_counts.sum() == len(y) - 900
    assert 0.0 < report.calibration_error < 1.0
    assert "calibration error" in str(report)


def test_perfect_probabilities_have_no_calibration_error():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    y = np.where(rng.random(200_000) < p, "yes", "no")
    report = calibration_report(y, np.column_stack([1 - p, p]), ["no", "yes"], n_bins=5)
    assert report.calibration_error < 0.005
    assert report.brier_score == pytest.approx(2 * np.mean(p * (1 - p)), rel=0.02)


def test_calibration_report_checks_its_input():
    with pytest.raises(ValueError, match="2 columns for 3 classes"):
        calibration_report([0], [[0.5, 0.5]], [0, 1, 2])
    with pytest.raises(ValueError, match="label 5 in row 0"):
        calibration_report([5], [[0.5, 0.5]], [0, 1])
    with pytest.raises(ValueError, match="Row 1 has no label"):
        calibration_report([0, np.nan], [[0.5, 0.5]] * 2, [0, 1])


def test_the_extra_to_install_is_named(monkeypatch, trained):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"hybridmix\[plot\]"):
        TrainingDisplay.from_estimator(trained)
