"""Pictures, and the figures behind them."""

import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import plain_classifier
from scipy.integrate import trapezoid
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hybridmix import (
    HybridMixtureClassifierCV,
    MEDClassifier,
    MEDFeatureSelector,
    MEDMultiTaskClassifier,
    MixtureDensity,
    MixtureOutlierDetector,
    plots,
)
from hybridmix.estimators.components import Marginal
from hybridmix.inspection import missing_feature_curve
from hybridmix.metrics import calibration_report
from hybridmix.plots import (
    ClassDensitiesDisplay,
    DecisionRegionsDisplay,
    InclusionDisplay,
    MarginsDisplay,
    MissingFeatureDisplay,
    OutlierScoresDisplay,
    PairwiseMarginalsDisplay,
    ReliabilityDisplay,
    TradeoffPathDisplay,
    TrainingDisplay,
    TreeEdgesDisplay,
)
from hybridmix.plots.drawing import ellipse, style_of

ROOT = Path(__file__).resolve().parent.parent
NAMES = ["sepal length", "sepal width", "petal length", "petal width", "size"]


@pytest.fixture(autouse=True)
def _close_figures():
    # Examples that ran in this process may have left their style behind.
    with mpl.rc_context({"backend": "Agg", "axes.titlelocation": "center"}):
        yield
    plt.close("all")


@pytest.fixture(scope="module")
def trained():
    X, y = load_iris(return_X_y=True)
    model = plain_classifier(
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
        TrainingDisplay.from_estimator(plain_classifier("likelihood").fit(X, y))


def test_reliability(trained):
    X, y = load_iris(return_X_y=True)
    display = ReliabilityDisplay.from_estimator(trained, X, y, name="hybrid")
    again = ReliabilityDisplay.from_estimator(trained, X, y, ax=display.ax_)
    assert again.figure_ is display.figure_
    assert len(display.ax_.lines) == 3  # the diagonal once, and two models


def test_calibration_report_agrees_with_scikit_learn():
    X, y = load_digits(return_X_y=True)
    model = plain_classifier(covariance_type="diag").fit(X[:900], y[:900])
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


# Switches -------------------------------------------------------------------------------


def test_inclusions_in_their_order():
    X, y = load_iris(return_X_y=True, as_frame=True)
    selector = MEDFeatureSelector(C=0.05).fit(X, y)
    display = InclusionDisplay.from_estimator(selector, n_columns=3)
    best = np.argsort(selector.ranking_)[:3]
    ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert ticks == list(X.columns[best])
    lengths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(lengths, selector.inclusion_[best])
    again = InclusionDisplay.from_estimator(
        selector, feature_names=["a", "b", "c", "d"], ax=display.ax_
    )
    assert again.figure_ is display.figure_
    assert again.names == ["abcd"[j] for j in np.argsort(selector.ranking_)]


def test_inclusions_of_tasks_and_classes():
    X, y = load_iris(return_X_y=True)
    model = MEDMultiTaskClassifier(shared=False)
    model.fit(X[:100], y[:100], task=np.arange(100) % 2)
    display = InclusionDisplay.from_estimator(model)
    assert len(display.ax_.patches) == 8
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["0", "1"]
    classifier = MEDClassifier(inclusion=0.1, calibrate=False).fit(X, y)
    assert len(InclusionDisplay.from_estimator(classifier).ax_.patches) == 4


def test_inclusions_that_are_not_there():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="has no switches of columns"):
        InclusionDisplay.from_estimator(MEDClassifier(calibrate=False).fit(X, y))
    selector = MEDFeatureSelector().fit(X, y)
    with pytest.raises(ValueError, match="3 names for 4 columns"):
        InclusionDisplay.from_estimator(selector, feature_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="n_columns"):
        InclusionDisplay.from_estimator(selector, n_columns=0)


# Marginals ------------------------------------------------------------------------------


def mixed_rows():
    """Iris with a column of categories, some holes, and names as labels."""
    data = load_iris()
    X, y = data.data.copy(), data.target_names[data.target]
    size = np.array(["small", "middle", "large"])[np.digitize(X[:, 0], [5.4, 6.3])]
    X[::7, 1] = np.nan
    return X, size, y


def as_table(container, X, size):
    if container == "numpy":
        return np.column_stack([X.astype(object), size])
    columns = {name: X[:, j] for j, name in enumerate(NAMES[:-1])} | {"size": size}
    return pd.DataFrame(columns) if container == "pandas" else pl.DataFrame(columns)


@pytest.fixture(scope="module", params=["numpy", "pandas", "polars"])
def mixed(request):
    """A classifier of two components per class, its table, labels and column names."""
    X, size, y = mixed_rows()
    table = as_table(request.param, X, size)
    model = plain_classifier("likelihood", n_components=2, random_state=0)
    names = range(5) if request.param == "numpy" else NAMES
    return model.fit(table, y), table, y, list(names)


def only(model, table, shown):
    """The rows with all columns missing but those shown, as an array of objects."""
    X, size, _ = mixed_rows()
    cells = np.column_stack([X.astype(object), size])
    cells[:, [j for j in range(5) if j not in shown]] = None
    if isinstance(table, np.ndarray):
        return cells
    columns = {name: list(cells[:, j]) for j, name in enumerate(NAMES)}
    frame = type(table)(columns)
    if isinstance(frame, pd.DataFrame):
        return frame.astype(dict.fromkeys(NAMES[:-1], float))
    return frame.cast(dict.fromkeys(NAMES[:-1], pl.Float64))


def test_regions_are_the_decisions_for_rows_of_two_columns(mixed):
    model, table, y, names = mixed
    chosen = [names[3], names[0]]
    display = DecisionRegionsDisplay.from_estimator(model, table, y, columns=chosen)
    assert display.n_hidden == 3
    horizontal, vertical = display.variables
    rows = only(model, table, [0, 3])
    expected = model.predict_proba(rows)
    i = np.abs(horizontal.values[:, None] - horizontal.points).argmin(axis=1)
    j = np.abs(vertical.values[:, None] - vertical.points).argmin(axis=1)
    found = display.probabilities[:, i, j].T
    assert np.abs(found - expected).max() < 0.1  # the nearest point of the grid is near
    assert np.abs(found - expected).mean() < 0.005
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["setosa", "versicolor", "virginica"]
    assert "3 other columns" in display.ax_.get_title()


def test_regions_are_those_of_calibrated_probabilities():
    X, y = load_iris(return_X_y=True)
    model = plain_classifier("likelihood", calibrate=True).fit(X[:, :2], y)
    assert model.temperature_ != 1.0
    display = DecisionRegionsDisplay.from_estimator(model, X[:, :2], y, columns=[0, 1])
    x, y = (variable.points for variable in display.variables)
    expected = model.predict_proba(np.column_stack([x, y]))
    diagonal = np.arange(len(x))
    np.testing.assert_allclose(display.probabilities[:, diagonal, diagonal].T, expected)
    assert display.ax_.get_title() == ""


@pytest.mark.parametrize(
    "covariance_type", ["full", "tied", "diag", "spherical", "subspace"]
)
def test_ellipses_are_those_of_the_exact_marginals(covariance_type):
    X, _ = load_iris(return_X_y=True)
    density = MixtureDensity(
        2,
        covariance_type=covariance_type,
        n_factors=2,
        random_state=0,
        covariance_prior=1.0,
    ).fit(X)
    means, covariances = Marginal.of(density, [3, 1]).moments()
    assert covariances.shape == (2, 2, 2)
    for mean, covariance in zip(means, covariances, strict=True):
        radius = ellipse(mean, covariance) - mean[:, None]
        squares = np.sum(radius * np.linalg.solve(covariance, radius), axis=0)
        np.testing.assert_allclose(squares, 2.0**2)
    rows = np.full((50, 4), np.nan)
    rows[:, [3, 1]] = X[::3, [3, 1]]
    apart = rows[:, None, [3, 1]] - means
    squares = np.einsum("nki,kij,nkj->nk", apart, np.linalg.inv(covariances), apart)
    logs = -0.5 * squares - 0.5 * np.linalg.slogdet(2 * np.pi * covariances)[1]
    expected = np.log(np.exp(logs) @ density.mixing_)
    np.testing.assert_allclose(density.score_samples(rows), expected)


def test_areas_below_curves_are_class_probabilities(mixed):
    model, table, y, names = mixed
    display = ClassDensitiesDisplay.from_estimator(model, table, y, column=names[2])
    areas = trapezoid(display.joint, display.variable.points, axis=1)
    np.testing.assert_allclose(areas, model.class_prior_, atol=0.01)
    rows = np.sum([patch.get_data().values for patch in display.ax_.patches], axis=0)
    edges = display.ax_.patches[0].get_data().edges
    assert np.sum(rows * np.diff(edges)) == pytest.approx(1.0)


def test_bars_are_probabilities_of_categories(mixed):
    model, table, y, names = mixed
    display = ClassDensitiesDisplay.from_estimator(model, table, y, column=names[4])
    np.testing.assert_allclose(display.joint.sum(axis=1), model.class_prior_)
    assert display.variable.categories == ("large", "middle", "small")
    heights = np.array([bar.get_height() for bar in display.ax_.patches]).reshape(3, 3)
    np.testing.assert_allclose(heights, display.joint)
    frequencies = np.array([line.get_ydata() for line in display.ax_.lines])
    np.testing.assert_allclose(frequencies.sum(axis=1), 1 / 3)


def test_rows_without_labels_are_compared_with_all_classes(mixed):
    model, table, y, names = mixed
    unlabelled = np.where(np.arange(len(y)) % 2, y, None)
    _, axes = plt.subplots(1, 4)
    curves = ClassDensitiesDisplay.from_estimator(
        model, table, column=names[2], ax=axes[0]
    )
    total = axes[0].lines[-1].get_ydata()
    np.testing.assert_allclose(total, curves.joint.sum(axis=0))
    bars = ClassDensitiesDisplay.from_estimator(model, table, column=names[4], ax=axes[1])
    tops = [bar.get_y() + bar.get_height() for bar in axes[1].patches[-3:]]
    np.testing.assert_allclose(tops, bars.joint.sum(axis=0))
    some = DecisionRegionsDisplay.from_estimator(model, table, unlabelled, ax=axes[2])
    assert np.sum(some.labels == -1) == len(y) / 2
    assert axes[2].get_legend().get_texts()[-1].get_text() == "unlabelled"


def test_pairs_of_columns(mixed):
    model, table, y, names = mixed
    display = PairwiseMarginalsDisplay.from_estimator(
        model, table, y, columns=[names[2], names[4], names[3]]
    )
    assert display.axes_.shape == (3, 3)
    assert set(display.joint) == {(0, 0), (1, 1), (2, 2), (2, 0)}
    lengths, _, widths = display.variables
    volume = trapezoid(trapezoid(display.joint[2, 0], lengths.points), widths.points)
    np.testing.assert_allclose(volume, model.class_prior_, atol=0.02)
    single = trapezoid(display.joint[2, 0], widths.points, axis=1)
    np.testing.assert_allclose(single, display.joint[0, 0], atol=0.02)
    assert not display.axes_[0, 2].axison
    assert display.axes_[2, 1].get_xlabel() == display.variables[1].name


def test_pairs_of_columns_of_a_density():
    X, _ = load_iris(return_X_y=True)
    density = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    display = PairwiseMarginalsDisplay.from_estimator(density, X)
    assert display.axes_.shape == (4, 4)
    x = display.variables[1].points
    marginal = density.marginal([1]).score_samples(x[:, None])
    np.testing.assert_allclose(display.joint[1, 1][0], np.exp(marginal))
    with pytest.raises(ValueError, match="2 x 2 axes"):
        PairwiseMarginalsDisplay.from_estimator(
            density, X, columns=[0, 1], axes=plt.subplots(1, 2)[1]
        )
    with pytest.raises(ValueError, match="leave y out"):
        PairwiseMarginalsDisplay.from_estimator(density, X, y=np.zeros(len(X)))


def test_columns_that_tell_most_are_shown_by_default(mixed):
    model, table, y, _ = mixed
    rng = np.random.default_rng(0)
    display = DecisionRegionsDisplay.from_estimator(model, table, y)
    names = {variable.name for variable in display.variables}
    assert names & {"petal length", "petal width", "column 2", "column 3"}
    noise = np.column_stack([rng.normal(size=(150, 3)), load_iris().data[:, 3]])
    other = plain_classifier("likelihood").fit(noise, y)
    assert ClassDensitiesDisplay.from_estimator(other, noise).variable.name == "column 3"


def test_a_search_is_drawn_by_its_best_model():
    X, y = load_iris(return_X_y=True)
    search = HybridMixtureClassifierCV(
        n_components=1, covariance_type="diag", tradeoff=[0, 1], cv=2
    ).fit(X, y)
    display = DecisionRegionsDisplay.from_estimator(search, X, y)
    best = DecisionRegionsDisplay.from_estimator(search.best_estimator_, X, y)
    np.testing.assert_array_equal(display.probabilities, best.probabilities)


def test_columns_that_cannot_be_drawn_are_named(mixed):
    model, table, y, names = mixed

    def regions(columns, rows=table):
        DecisionRegionsDisplay.from_estimator(model, rows, y, columns=columns)

    with pytest.raises(ValueError, match=r"(4|'size') is categorical"):
        regions([names[0], names[4]])
    with pytest.raises(ValueError, match="two real columns, not 1"):
        regions([names[0]])
    with pytest.raises(ValueError, match="more than once"):
        regions([names[0], names[0]])
    with pytest.raises(ValueError, match="There is no column"):
        regions([names[0], 17])
    with pytest.raises(ValueError, match=r"(0|'sepal length') has no value"):
        regions([names[0], names[1]], only(model, table, [1, 2]))


def test_estimators_that_cannot_be_drawn_are_named():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="LogisticRegression"):
        PairwiseMarginalsDisplay.from_estimator(LogisticRegression(), X, y)
    with pytest.raises(TypeError, match="PairwiseMarginalsDisplay draws"):
        DecisionRegionsDisplay.from_estimator(
            MixtureDensity(
                n_components=1, covariance_type="full", covariance_prior=1.0
            ).fit(X),
            X,
        )
    with pytest.raises(TypeError, match="how typical"):
        OutlierScoresDisplay.from_estimator(LogisticRegression(), X)
    words = load_iris().target_names[y][:, None]
    with pytest.raises(ValueError, match="name a column"):
        ClassDensitiesDisplay.from_estimator(
            MixtureDensity(
                n_components=1, covariance_type="full", covariance_prior=1.0
            ).fit(words),
            words,
        )


def test_a_constant_column_and_a_single_class():
    X = np.column_stack([np.arange(20.0), np.ones(20)])
    y = np.zeros(20, int)
    model = plain_classifier("likelihood").fit(X, y)
    display = DecisionRegionsDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(display.probabilities, 1.0)
    PairwiseMarginalsDisplay.from_estimator(model, X, y)


def test_styles_differ_without_colours():
    styles = [style_of(number) for number in range(32)]
    assert len(set(styles)) == 32
    assert len({(style.marker, style.line) for style in styles[:8]}) == 8


# Scores ---------------------------------------------------------------------------------


def test_path_of_a_search():
    X, y = load_iris(return_X_y=True)
    search = HybridMixtureClassifierCV(
        n_components=[1, 2], covariance_type="diag", tradeoff=[10, 0, 1], cv=3
    ).fit(X, y)
    display = TradeoffPathDisplay.from_estimator(search)
    np.testing.assert_array_equal(display.tradeoffs, [0, 1, 10])
    (scores,) = display.measures.values()
    assert scores.shape == (3, 3)
    assert scores.mean(axis=1)[display.chosen] == pytest.approx(search.best_score_)
    assert display.tradeoffs[display.chosen] == search.best_params_["tradeoff"]
    assert display.axes_[0].get_ylabel() == "accuracy"
    alone = HybridMixtureClassifierCV(n_components=1, tradeoff=1, cv=2).fit(X, y)
    with pytest.raises(ValueError, match="tradeoff=1 alone"):
        TradeoffPathDisplay.from_estimator(alone)
    other = GridSearchCV(plain_classifier(), {"n_steps": [1]}, cv=2).fit(X, y)
    with pytest.raises(ValueError, match="Search along several tradeoffs"):
        TradeoffPathDisplay.from_estimator(other)


def test_path_of_one_classifier():
    X, y = load_iris(return_X_y=True)
    train, test = slice(0, None, 2), slice(1, None, 2)
    model = plain_classifier(covariance_type="diag", n_steps=5)
    display = TradeoffPathDisplay.from_path(
        model, X[train], y[train], X[test], y[test], tradeoffs=[5, 0]
    )
    start = model.set_params(objective="likelihood").fit(X[train], y[train])
    end = plain_classifier(tradeoff=5, covariance_type="diag", n_steps=5, init=start).fit(
        X[train], y[train]
    )
    errors, likelihoods = display.measures.values()
    for row, fitted in enumerate([start, end]):
        assert errors[row] == pytest.approx(1 - fitted.score(X[test], y[test]))
        assert likelihoods[row] == pytest.approx(fitted.score_samples(X[test]).mean())
    with pytest.raises(ValueError, match="2 measures"):
        display.plot(axes=plt.subplots()[1])


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_missing_features(container):
    X, y = load_iris(return_X_y=True)
    X = container(X)
    model = plain_classifier("likelihood").fit(X, y)
    options = {"rates": [0, 0.5], "n_repeats": 2, "random_state": 0}
    display = MissingFeatureDisplay.from_estimator(model, X, y, **options)
    curve = missing_feature_curve(model, X, y, **options)
    np.testing.assert_array_equal(display.curve.scores, curve.scores)
    np.testing.assert_array_equal(display.ax_.lines[0].get_ydata(), curve.mean)
    MissingFeatureDisplay.from_estimator(
        make_pipeline(model), X, y, **options, name="other", ax=display.ax_
    )
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["HybridMixtureClassifier", "other"]
    markers = {line.get_marker() for line in display.ax_.lines}
    assert len(markers) == 2


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_outlier_scores(container):
    X, y = load_iris(return_X_y=True)
    X[0, 0] = 40.0
    X[1, 1] = np.nan
    X = container(X)
    detector = MixtureOutlierDetector(
        1, contamination=0.1, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    display = OutlierScoresDisplay.from_estimator(detector, X)
    assert display.threshold == detector.offset_
    np.testing.assert_array_equal(display.scores, detector.score_samples(X))
    heights = sum(patch.get_height() for patch in display.ax_.containers[0].patches)
    assert heights == np.sum(detector.predict(X) == 1)
    model = plain_classifier("likelihood").fit(X, y)
    other = OutlierScoresDisplay.from_estimator(model, X)
    assert other.threshold == pytest.approx(np.log(0.01))
    lines = other.ax_.get_legend().get_texts()
    assert lines[1].get_text() == f"{np.sum(model.typicality(X) < np.log(0.01))} outliers"


# Maximum entropy discrimination --------------------------------------------------------


@pytest.fixture(scope="module")
def chains():
    """Letters: each follows the one before in a chain, and the first one in a hub."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.integers(0, 3, (300, 4))
    for j in range(1, 4):
        source = X[np.arange(300), np.where(y == 0, j - 1, 0)]
        X[:, j] = np.where(rng.random(300) < 0.8, source, X[:, j])
    return np.array(list("abc"))[X], np.array(["chain", "hub"])[y]


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_edges_of_trees(container, chains):
    X, y = chains
    table = container(X)
    names = list("0123")
    if container is pd.DataFrame:
        # Real columns are not part of the trees.
        table.columns = names = ["outlook", "wind", "traffic", "sales"]
        table.insert(0, "age", np.sqrt(np.arange(300.0)))
    model = MEDClassifier("tree", calibrate=False).fit(table, y)
    display = TreeEdgesDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.probabilities, model.edge_probabilities_)
    assert [ax.get_title() for ax in display.axes_] == ["chain", "hub"]
    for ax, expected in zip(
        display.axes_, [{(0, 1), (1, 2), (2, 3)}, {(0, 1), (0, 2), (0, 3)}], strict=True
    ):
        assert [text.get_text() for text in ax.texts] == names
        # The last line has the columns, and the others are edges between two of them.
        *edges, columns = ax.lines
        places = columns.get_xydata().tolist()
        wide = {
            tuple(places.index(end) for end in line.get_xydata().tolist())
            for line in edges
            if line.get_linewidth() > 3.0
        }
        assert wide == expected


def test_edges_that_cannot_be_drawn(chains):
    X, y = chains
    model = MEDClassifier("tree", calibrate=False).fit(X, y)
    with pytest.raises(ValueError, match="2 classes to draw"):
        TreeEdgesDisplay.from_estimator(model, axes=plt.subplots()[1])
    other = MEDClassifier("independent", calibrate=False).fit(X, y)
    with pytest.raises(TypeError, match="model='tree'"):
        TreeEdgesDisplay.from_estimator(other)


def test_margins_of_two_classes():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], load_iris().target_names[y[50:]]
    model = MEDClassifier(margin=2.0, tol=1e-8, calibrate=False)
    machine = make_pipeline(StandardScaler(), model).fit(X, y)
    display = MarginsDisplay.from_estimator(machine, X, y)
    np.testing.assert_array_equal(display.margins < 0.0, machine.predict(X) != y)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    n_wrong, n_lacking, n_enough = (int(text.split()[-1]) for text in texts[:3])
    assert texts[3] == "mean a priori: 2"
    assert n_wrong + n_lacking + n_enough == len(X)
    # Rows that have a multiplier lack margin, and no others do.
    assert n_wrong + n_lacking == len(model.support_)
    heights = [
        sum(patch.get_height() for patch in bars.patches)
        for bars in display.ax_.containers
    ]
    assert heights == [n_wrong, n_lacking, n_enough]


def test_margins_of_several_classes_leave_unlabelled_rows_out():
    X, y = load_iris(return_X_y=True)
    model = MEDClassifier(margin=0.01, calibrate=False).fit(X, y)
    display = MarginsDisplay.from_estimator(model, X, np.where(y == 0, -1, y))
    scores, rows = model.decision_function(X[50:]), np.arange(100)
    own = scores[rows, y[50:]]
    scores[rows, y[50:]] = -np.inf
    np.testing.assert_array_equal(display.margins, own - scores.max(axis=1))
    with pytest.raises(TypeError, match="not trained by margins"):
        MarginsDisplay.from_estimator(LogisticRegression().fit(X[50:], y[50:]), X, y)


# The gallery ----------------------------------------------------------------------------


def test_gallery(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import figures

    monkeypatch.setattr(figures, "IMAGES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["gallery.py", "--save", "--quick"])
    runpy.run_path(str(ROOT / "examples" / "gallery.py"), run_name="__main__")
    drawn = {file.name: file.stat().st_size for file in tmp_path.glob("*.png")}
    assert max(drawn.values()) < 150_000
    kept = {file.name for file in (ROOT / "docs" / "images").glob("gallery_*.png")}
    assert drawn.keys() == kept
    n_displays = sum(name.endswith("Display") for name in plots.__all__)
    assert len(drawn.keys() - {"gallery_dark.png"}) == n_displays
