"""Shapes of real columns: maps, spikes, whole numbers, and what follows from them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from scipy.integrate import quad

import hybridmix
from hybridmix import (
    HybridMixtureClassifier,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.data.columns import read_columns
from hybridmix.data.schema import Schema
from hybridmix.data.shape_choice import Cells, chosen_shape
from hybridmix.data.shapes import ColumnShape, Logarithm, Logit, SinhArcsinh

TRANSFORMS = [
    SinhArcsinh(1.0, 2.0, 0.7, 0.6),
    SinhArcsinh(-3.0, 0.5, -1.2, 1.0),
    Logarithm(0.2),
    Logit(0.0, 1.0, 0.05),
    Logit(-2.0, 10.0, 0.01),
]


def some_table(n=600, seed=0):
    """Skewed, spiked, whole, bounded and symmetric columns, correlated."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    amount = np.exp(hidden + rng.normal(size=n))
    return np.column_stack(
        [
            np.exp(hidden + 0.5 * rng.normal(size=n)),
            np.where(rng.random(n) < 0.3, 0.0, amount),
            rng.negative_binomial(2, 0.1, size=n),
            1.0 / (1.0 + np.exp(2.0 - 2.0 * hidden - rng.normal(size=n))),
            hidden + rng.normal(size=n),
        ]
    )


def punched(X, share=0.2, seed=1):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


# Maps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_maps_are_onto_the_line_and_have_the_derivative_that_they_say(transform):
    transform.check_consistent()
    x = np.linspace(-6.0, 14.0, 801)
    mapped = transform.forward(x)
    assert np.all(np.diff(mapped) > 0.0)
    np.testing.assert_allclose(transform.inverse(mapped), x, atol=1e-9)
    z = np.linspace(-30.0, 30.0, 61)
    np.testing.assert_allclose(transform.forward(transform.inverse(z)), z, atol=1e-9)
    step = 1e-6
    slope = (transform.forward(x + step) - transform.forward(x - step)) / (2.0 * step)
    log_derivative = transform.log_derivative(x)
    np.testing.assert_allclose(np.log(slope), log_derivative, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_maps_of_extreme_values_are_numbers(transform):
    x = np.array([-1e308, -1.0, 0.0, 1.0, 1e308, np.nan])
    assert np.isfinite(transform.forward(x)[:-1]).all()
    assert np.isfinite(transform.log_derivative(x)[:-1]).all()
    assert np.isnan(transform.forward(x)[-1])
    assert not np.isnan(transform.inverse(np.array([-1e50, 1e50]))).any()


def test_the_mean_of_a_mapped_column_is_not_the_mapped_mean():
    shape = ColumnShape(Logarithm(1e-9))
    mean, deviation = shape.moments(np.array([0.3]), np.array([0.8]))
    variance = np.expm1(0.64) * np.exp(0.6 + 0.64)
    assert mean[0] == pytest.approx(np.exp(0.3 + 0.32), rel=1e-6)
    assert deviation[0] == pytest.approx(np.sqrt(variance), rel=1e-4)


@pytest.mark.parametrize(
    "shape",
    [
        ColumnShape(spikes=(0.0, 0.0)),
        ColumnShape(low=1.0, high=0.0),
        ColumnShape(transform="log"),
        ColumnShape(spikes=(np.inf,)),
    ],
)
def test_senseless_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="do not fit together"):
        shape.check_consistent()


# Choice -------------------------------------------------------------------------------


def shape_of(values, groups=None):
    values = np.asarray(values, dtype=float)
    groups = np.zeros(len(values), int) if groups is None else groups
    return chosen_shape(Cells(values, np.ones(len(values)), groups))


def test_shapes_are_chosen_by_what_columns_hold():
    rng = np.random.default_rng(0)
    n = 1000
    normal = rng.normal(size=n)
    assert shape_of(normal).is_plain
    assert isinstance(shape_of(np.exp(normal)).transform, Logarithm)
    assert isinstance(shape_of(np.exp(normal) - 0.3).transform, SinhArcsinh)
    assert isinstance(shape_of(rng.beta(1.0, 6.0, size=n)).transform, Logit)
    spiked = shape_of(np.where(rng.random(n) < 0.2, 0.0, np.exp(normal)))
    assert spiked.spikes == (0.0,)
    assert isinstance(spiked.transform, Logarithm)
    counts = shape_of(rng.poisson(4.0, size=n))
    assert (counts.whole, counts.low, counts.spikes) == (True, 0.0, ())


def amounts_from_a_list(n, rng):
    """Draw zeros, and in three rows of ten one of thirty amounts."""
    amounts = np.sort(rng.choice(np.arange(100.0, 20_000.0), 30, replace=False))
    return np.where(rng.random(n) < 0.7, 0.0, rng.choice(amounts, n)), amounts


def test_amounts_from_a_list_are_spikes():
    rng = np.random.default_rng(0)
    values, amounts = amounts_from_a_list(2000, rng)
    assert shape_of(values).spikes == (0.0, *amounts)
    assert str(shape_of(values)).endswith(", 27 others")
    # Rounded measurements fill their grid, and rare values are left as they are.
    rounded = np.rint(50.0 * np.exp(rng.normal(size=2000)))
    rounded[rng.random(2000) < 0.7] = 0.0
    assert shape_of(rounded).spikes == (0.0,)
    values[:20] = rng.uniform(100.0, 20_000.0, size=20)
    assert set(shape_of(values).spikes) == {0.0, *amounts}


def test_rare_amounts_are_found_in_large_tables():
    rng = np.random.default_rng(0)
    values, amounts = amounts_from_a_list(20_000, rng)
    values[rng.random(20_000) < 0.8] = 0.0
    X = np.column_stack([values, rng.normal(size=20_000)])
    assert Schema.learn(read_columns(X), None, "auto").shapes[0].spikes == (0.0, *amounts)


def test_amounts_tell_classes_apart_that_sizes_do_not():
    rng = np.random.default_rng(0)
    values, _ = amounts_from_a_list(3000, rng)
    y = np.where(values == 0.0, rng.integers(2, size=3000), values % 2 == 0)
    X = np.column_stack([values, rng.normal(size=3000)])
    model = HybridMixtureClassifier(effort="fast", random_state=0).fit(X[:2000], y[:2000])
    has_amount = X[2000:, 0] > 0.0
    assert model.score(X[2000:][has_amount], y[2000:][has_amount]) > 0.98
    filled = model.impute(np.array([[np.nan, 0.0]]))
    assert filled[0, 0] == 0.0


def test_codes_of_spikes():
    shape = ColumnShape(spikes=(3.0, 0.1, -1.0))
    values = np.array([0.1, np.float32(0.1), 3.0, -1.0, 2.0, 9.0, np.nan])
    assert shape.spike_codes(values).tolist() == [2, 2, 1, 3, 0, 0, -1]
    assert ColumnShape().spike_codes(values).tolist() == [0] * 6 + [-1]


def test_heaps_are_left_to_components_and_classes():
    rng = np.random.default_rng(0)
    is_far = rng.random(1000) < 0.1
    values = rng.normal(size=1000) + 8.0 * is_far
    assert shape_of(values).is_plain
    assert shape_of(values, is_far.astype(int)).is_plain


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(500),
        np.repeat([0.0, 1.0], 250),
        np.exp(np.linspace(-3.0, 3.0, 500)) * 1e200,
        np.exp(np.linspace(-3.0, 3.0, 500)) * 1e-300,
        np.exp(np.linspace(-3.0, 3.0, 40)),
    ],
)
def test_odd_columns_are_not_mapped(values):
    shape = shape_of(values)
    assert shape.transform is None
    assert shape.spikes == ()


def test_weights_are_repetitions():
    X = some_table(300)
    weights = np.random.default_rng(0).integers(0, 3, size=300)
    by_weight = Schema.learn(read_columns(X), None, "auto", weights=weights.astype(float))
    repeated = Schema.learn(read_columns(np.repeat(X, weights, axis=0)), None, "auto")
    assert by_weight.shapes == repeated.shapes
    assert by_weight.shapes
    np.testing.assert_allclose(by_weight.centre, repeated.centre, rtol=1e-12)


def test_few_rows_and_very_many_columns_stay_plain():
    rng = np.random.default_rng(0)
    few = np.exp(rng.normal(size=(30, 5)))
    wide = np.exp(rng.normal(size=(200, 300)))
    for X in (few, wide):
        assert Schema.learn(read_columns(X), None, "auto").shapes == {}


def test_at_most_a_few_columns_get_spikes():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((500, 30)) < 0.4, 0.0, np.exp(rng.normal(size=(500, 30))))
    shapes = Schema.learn(read_columns(X), None, "auto").shapes.values()
    assert sum(bool(shape.spikes) for shape in shapes) == 8


# The option -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("round", "is not one of auto, plain"),
        (None, "is not one of auto, plain"),
        ({0: "round"}, r"column_shapes\[0\]='round' is not one of"),
        ({0: (1.0, 0.0)}, "pair of bounds"),
        ({99: "skewed"}, "There is no column 99"),
        ({4: "positive"}, "wants values between 0 and inf in column 4"),
        ({4: "bounded"}, "give its bounds"),
        ({0: (0.0, 0.1)}, "wants values between 0 and 0.1"),
    ],
)
def test_senseless_options_are_refused(option, message):
    with pytest.raises(ValueError, match=message):
        MixtureDensity(column_shapes=option).fit(some_table())


def test_shapes_of_categorical_columns_are_refused():
    frame = pd.DataFrame({"a": np.arange(60.0), "b": ["x", "y"] * 30})
    with pytest.raises(ValueError, match="column 'b', which is categorical"):
        MixtureDensity(column_shapes={"b": "skewed"}).fit(frame)


def test_named_shapes_are_taken():
    X = some_table()
    wanted = {0: "plain", 1: "symmetric", 3: (0.0, 2.0), 4: "skewed"}
    shapes = MixtureDensity(column_shapes=wanted).fit(X).schema_.shapes
    assert 0 not in shapes
    assert shapes[1] == ColumnShape(spikes=(0.0,))
    assert (shapes[3].low, shapes[3].high) == (0.0, 2.0)
    assert isinstance(shapes[4].transform, SinhArcsinh)
    own = ColumnShape(Logarithm(0.001))
    model = MixtureDensity(column_shapes={0: own}).fit(X[:30])
    assert model.schema_.shapes == {0: own}


def test_plain_is_what_it_was():
    X = np.random.default_rng(0).normal(size=(200, 3))
    plain = MixtureDensity(2, column_shapes="plain", random_state=0).fit(X)
    auto = MixtureDensity(2, random_state=0).fit(X)
    assert plain.schema_.shapes == auto.schema_.shapes == {}
    np.testing.assert_array_equal(plain.score_samples(X), auto.score_samples(X))


# Densities ------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", ["full", "diag", "tied", "subspace"])
def test_mixed_densities_sum_to_one(covariance_type):
    X = some_table()
    model = MixtureDensity(2, covariance_type=covariance_type, random_state=0).fit(X)
    assert model.schema_.shapes[1].spikes == (0.0,)
    for column, ends in ((0, (-5.0, 400.0)), (1, (-5.0, 400.0)), (3, (-1.0, 2.0))):
        marginal = model.marginal([column])

        def density(x, marginal=marginal):
            return float(np.exp(marginal.score_samples([[x]])[0]))

        knots = np.quantile(X[:, column], np.linspace(0.0, 1.0, 30))
        total = quad(density, *ends, points=knots, limit=400)[0]
        if column == 1:
            total += np.exp(marginal.score_samples([[0.0]])[0])
        assert total == pytest.approx(1.0, abs=2e-3)


def test_densities_are_those_of_the_units_of_the_table():
    X = some_table()
    model = MixtureDensity(column_shapes={4: "plain"}, random_state=0).fit(X)
    X = X * [1.0, 1.0, 1.0, 1.0, 2.0]
    scaled = MixtureDensity(column_shapes={4: "plain"}, random_state=0).fit(X)
    difference = model.score(X / [1.0, 1.0, 1.0, 1.0, 2.0]) - scaled.score(X)
    assert difference == pytest.approx(np.log(2.0))
    assert model.bic_[1] == pytest.approx(
        model.bic(X / [1.0, 1.0, 1.0, 1.0, 2.0]), rel=1e-9
    )


def test_shapes_raise_the_likelihood_of_new_rows():
    X, new = some_table(), some_table(seed=9)
    # Without the spiked column, densities can be compared.
    X, new = np.delete(X, 1, axis=1), np.delete(new, 1, axis=1)
    auto = MixtureDensity(random_state=0).fit(X)
    plain = MixtureDensity(random_state=0, column_shapes="plain").fit(X)
    assert auto.score(new) > plain.score(new) + 0.3
    # One component cannot make up for shapes.
    single = {"n_components": 1, "covariance_type": "full"}
    auto = MixtureDensity(**single).fit(X)
    plain = MixtureDensity(**single, column_shapes="plain").fit(X)
    assert auto.score(new) > plain.score(new) + 1.0


def test_values_that_no_row_of_training_could_have_are_improbable_not_impossible():
    X = some_table()
    model = MixtureDensity(random_state=0).fit(X)
    strange = X[:4].copy()
    strange[0, 0], strange[1, 3], strange[2, 3], strange[3] = -1.0, 1.5, -0.5, 1e300
    log_density = model.score_samples(strange)
    assert np.isfinite(log_density).all()
    assert (log_density < model.score_samples(X).min()).all()
    assert np.isfinite(model.typicality(strange)).all()


def test_the_fits_of_classes_look_within_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 200)
    X = rng.normal(size=(600, 2)) + 4.0 * y[:, None] ** 2
    assert (
        plain_classifier("likelihood", column_shapes="auto").fit(X, y).schema_.shapes
        == {}
    )
    X = np.exp(rng.normal(size=(600, 2)) + 0.5 * y[:, None])
    shaped = plain_classifier("likelihood", column_shapes="auto").fit(X, y)
    plain = plain_classifier("likelihood").fit(X, y)
    assert {str(shape) for shape in shaped.schema_.shapes.values()} == {"positive"}
    assert shaped.score(X, y) > plain.score(X, y)


# Fills, draws, samples ------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", ["full", "diag", "tied", "subspace"])
def test_fills_draws_and_samples_respect_the_shape(covariance_type):
    X = some_table()
    holed = punched(X)
    model = MixtureImputer(2, covariance_type=covariance_type, n_draws=2, random_state=0)
    model.fit(holed)
    tables = [model.transform(holed), *model.draw(holed, random_state=0)]
    tables.append(MixtureDensity(2, random_state=0).fit(holed).sample(400)[0])
    for table in tables:
        assert not np.isnan(table).any()
        assert table[:, 0].min() > 0.0
        assert np.all((table[:, 1] == 0.0) | (table[:, 1] > 0.0))
        assert np.all(table[:, 2] == np.rint(table[:, 2]))
        assert table[:, 2].min() >= 0.0
        assert table[:, 3].min() >= 0.0
        assert table[:, 3].max() <= 1.0
    seen = ~np.isnan(holed)
    np.testing.assert_array_equal(tables[0][seen], holed[seen])
    for table in tables[1:]:
        assert np.mean(table[:, 1] == 0.0) == pytest.approx(0.3, abs=0.07)


def test_fills_are_conditional_means_in_units():
    rng = np.random.default_rng(0)
    a = rng.normal(size=4000)
    X = np.exp(np.column_stack([a, 0.6 * a + 0.8 * rng.normal(size=4000)]))
    model = MixtureImputer(1, random_state=0).fit(X)
    at = np.exp(0.5)
    filled = model.transform([[at, np.nan]])[0, 1]
    assert filled == pytest.approx(np.exp(0.6 * 0.5 + 0.5 * 0.64), rel=0.05)
    draws = model.impute(np.tile([[at, np.nan]], (4000, 1)), draw=True, random_state=0)
    assert draws[:, 1].mean() == pytest.approx(filled, rel=0.1)


def test_frames_are_filled():
    X = some_table()
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["c"] = frame["c"].astype("Int64")
    frame.loc[::5, "c"] = pd.NA
    frame.loc[::7, "b"] = np.nan
    filled = MixtureImputer(1, random_state=0).fit_transform(frame)
    assert not filled.isna().any().any()
    assert np.all(filled["c"] == np.rint(filled["c"]))


# What knows about shapes ----------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", ["full", "diag", "tied", "spherical"])
def test_models_are_saved_with_their_shapes(tmp_path, covariance_type):
    X = some_table()
    model = MixtureDensity(2, covariance_type=covariance_type, random_state=0)
    model.fit(punched(X))
    hybridmix.save(model, tmp_path / "model.hmx")
    loaded = hybridmix.load(tmp_path / "model.hmx")
    assert loaded.schema_.shapes == model.schema_.shapes
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    [probabilities] = loaded.spike_probabilities_
    assert probabilities.shape == (2, 2)
    assert not hasattr(loaded, "categories_")


def test_training_goes_on_with_the_shapes_of_a_model():
    X = some_table()
    y = (X[:, 4] > 0.0).astype(int)
    start = plain_classifier("likelihood", column_shapes="auto").fit(X, y)
    half = plain_classifier("hybrid", init=start, n_steps=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        half.fit(X[::2], y[::2])
    assert half.schema_.shapes == start.schema_.shapes


def test_outliers_are_judged_in_tables_with_spikes():
    X = some_table(1000)
    detector = MixtureOutlierDetector(2, random_state=0).fit(X)
    assert np.mean(detector.predict(X) == -1) == pytest.approx(0.01, abs=0.01)
    far = X[:1].copy()
    far[0, 0] = 1e6
    assert detector.predict(far)[0] == -1


def test_marginals_keep_shapes():
    X = some_table()
    model = MixtureDensity(random_state=0).fit(X)
    part = model.marginal([4, 1])
    assert set(part.schema_.shapes) == {1}
    holed = X.copy()
    holed[:, [0, 2, 3]] = np.nan
    np.testing.assert_allclose(
        part.score_samples(X[:, [4, 1]]), model.score_samples(holed)
    )


def test_onnx_agrees():
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from hybridmix.onnx import to_onnx

    X = some_table()
    y = (X[:, 4] > 0.0).astype(int)
    table = np.vstack([X, punched(X), [[-1.0, 0.1, 0.5, 1.5, 0.0]]])
    options = {"column_shapes": {3: "bounded", 4: "skewed"}, "random_state": 0}
    for covariance_type in ("full", "diag"):
        model = plain_classifier(
            "likelihood", covariance_type=covariance_type, **options
        ).fit(X, y)
        session = onnxruntime.InferenceSession(
            to_onnx(model, dtype="float64").SerializeToString(),
            providers=["CPUExecutionProvider"],
        )
        _, probabilities, log_density = session.run(None, {"X": table})
        np.testing.assert_allclose(log_density, model.score_samples(table), rtol=1e-8)
        np.testing.assert_allclose(probabilities, model.predict_proba(table), atol=1e-8)


def test_reports_and_pictures_show_shapes():
    pytest.importorskip("matplotlib").use("agg")
    from hybridmix.plots import (
        ClassDensitiesDisplay,
        DecisionRegionsDisplay,
        PairwiseMarginalsDisplay,
    )

    X = some_table()
    y = (X[:, 4] > 0.0).astype(int)
    model = plain_classifier("likelihood", column_shapes="auto", random_state=0)
    model.fit(X, y)
    display = ClassDensitiesDisplay.from_estimator(model, X, y, column=1)
    assert display.variable.masses.sum() == pytest.approx(0.3, abs=0.05)
    area = np.trapezoid(display.joint.sum(axis=0), display.variable.points)
    assert area + display.variable.masses.sum() == pytest.approx(1.0, abs=0.1)
    PairwiseMarginalsDisplay.from_estimator(model, X, y, columns=[0, 1])
    regions = DecisionRegionsDisplay.from_estimator(model, X, y, columns=[0, 4])
    assert regions.shapes[0].transform is not None
    report = hybridmix.report(model, X, y, cv=2, baselines=False)
    assert f"real: {model.schema_.shapes[1]}" in report.html


def test_ranges_are_kept_without_a_transform():
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.poisson(0.7, 200), generator.exponential(size=200)])
    X = X.astype(float)
    X[generator.random(X.shape) < 0.3] = np.nan
    density = MixtureDensity(2, covariance_type="full", column_shapes="range").fit(X)
    assert all(shape.transform is None for shape in density.schema_.shapes.values())
    for table in (density.impute(X, draw=True, random_state=0), density.sample(500)[0]):
        assert table.min() >= 0.0
        np.testing.assert_array_equal(table[:, 0], np.rint(table[:, 0]))


def test_a_far_value_elsewhere_leaves_the_fill_of_an_independent_column():
    X = np.exp(np.random.default_rng(0).normal(size=(400, 2)))
    density = MixtureDensity(1, covariance_type="diag").fit(X)
    assert density.schema_.shapes
    rows = np.column_stack([np.full(4, np.nan), [1.0, 1e6, 1e9, 1e12]])
    fills = density.impute(rows)[:, 0]
    np.testing.assert_allclose(fills, fills[0], rtol=1e-3)


def test_scores_of_a_search_are_in_the_units_of_the_table():
    generator = np.random.default_rng(0)
    X, new = (1000.0 * np.exp(generator.normal(size=(n, 2))) for n in (600, 600))
    density = MixtureDensity(random_state=0).fit(X)
    best = max(row["score"] for row in density.leaderboard_)
    assert abs(best - density.score(new)) < 0.5


def test_no_value_is_minus_zero():
    shape = ColumnShape(whole=True)
    assert not np.signbit(shape.allowed(np.array([-0.2, 0.2]))).any()
