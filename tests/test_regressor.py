"""Regression by joint densities: against brute force, with holes, shapes and files."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import families, make_problem
from model_files import array_of, assert_same, refused, set_array, set_value
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hybridmix
from hybridmix import MixtureRegressor
from hybridmix._parallel import Workers
from hybridmix.data import Dataset
from hybridmix.data.shapes import ColumnShape, Logarithm
from hybridmix.data.targets import TargetPlaces
from hybridmix.models.hiding import TargetModel
from hybridmix.models.predictive import Forecast
from hybridmix.objectives import Blend, Likelihood, PredictiveLikelihood
from hybridmix.problem import Problem
from hybridmix.training import regression_trials
from hybridmix.training.targets import TargetTrainer

# Two components of full covariances, and nothing is chosen.
PLAIN = {
    "n_components": 2,
    "covariance_type": "full",
    "tradeoff": 0.0,
    "column_shapes": "plain",
    "target_shapes": "plain",
    "random_state": 0,
}


def regressor(**options):
    return MixtureRegressor(**{**PLAIN, **options})


def curved(n_rows=200, seed=0, n_columns=2):
    """Rows whose target is a curve with a spread that depends on the row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    noise = np.where(X[:, 1] > 0.0, 0.5, 0.1)
    return X, np.abs(X[:, 0]) * 2.0 + X[:, 1] + noise * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def fitted():
    return regressor(n_components=3).fit(*curved())


@pytest.fixture(scope="module")
def searched():
    X, y = curved(60)
    X[::4, 0] = np.nan
    y[::7] = np.nan
    return MixtureRegressor(random_state=0).fit(X, y)


def components(model, member=0):
    """Return weights, means and covariances of [X | y], in the units of the table."""
    mixture = model.predictive_.members[member]
    schemas = model.schema_, model.target_schema_
    centre, scale = (
        np.concatenate([getattr(schema, name) for schema in schemas])
        for name in ("centre", "scale")
    )
    parameters = mixture.components.affine(scale, centre)
    return np.exp(mixture.log_weights), parameters.means, parameters.full_covariances


def density(model, rows, columns):
    """Return the density of some columns of [X | y] by SciPy."""
    weights, means, covariances = components(model)
    return sum(
        w * multivariate_normal(m[columns], v[np.ix_(columns, columns)]).pdf(rows)
        for w, m, v in zip(weights, means, covariances, strict=True)
    )


# Against brute force --------------------------------------------------------------------


def test_predictive_densities_are_quotients_of_densities(fitted):
    X, y = curved(20, seed=1)
    joint = density(fitted, np.column_stack([X, y]), [0, 1, 2])
    expected = np.log(joint / density(fitted, X, [0, 1]))
    np.testing.assert_allclose(fitted.log_predictive_density(X, y), expected, rtol=1e-8)


def test_holes_are_integrated_out(fitted):
    X, y = curved(3, seed=2)
    holed = X.copy()
    holed[:, 0] = np.nan
    joint = density(fitted, np.column_stack([X[:, 1], y]), [1, 2])
    expected = np.log(joint / density(fitted, X[:, 1:], [1]))
    found = fitted.log_predictive_density(holed, y)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    for row in range(3):
        # The same by numbers: the integral over the cell that is missing.
        both, _ = quad(
            lambda x, n=row: density(fitted, np.array([x, X[n, 1], y[n]]), [0, 1, 2]),
            -12,
            12,
        )
        alone, _ = quad(
            lambda x, n=row: density(fitted, np.array([x, X[n, 1]]), [0, 1]), -12, 12
        )
        assert found[row] == pytest.approx(np.log(both / alone), rel=1e-5)


@pytest.mark.parametrize("hole", [False, True])
@pytest.mark.parametrize(
    ("shape", "low"), [("plain", -30.0), ("skewed", -30.0), ("positive", 1e-9)]
)
def test_moments_and_quantiles_are_those_of_the_density(shape, low, hole):
    X, y = curved()
    y = np.exp(0.4 * y)
    model = regressor(target_shapes={0: shape}).fit(X, y)
    row = np.array([[np.nan if hole else 0.3, -0.4]])

    def p(value):
        return float(np.exp(model.log_predictive_density(row, [value]))[0])

    total = quad(p, low, 30.0, limit=200)[0]
    assert total == pytest.approx(1.0, abs=1e-4)
    mean = quad(lambda v: v * p(v), low, 30.0, limit=200)[0]
    variance = quad(lambda v: (v - mean) ** 2 * p(v), low, 30.0, limit=200)[0]
    predicted, deviation = model.predict(row, return_std=True)
    assert predicted[0] == pytest.approx(mean, rel=1e-3)
    assert deviation[0] == pytest.approx(np.sqrt(variance), rel=1e-2)
    for level in (0.05, 0.5, 0.9):
        value = model.predict_quantiles(row, level)[0]
        assert quad(p, low, value, limit=200)[0] == pytest.approx(level, abs=1e-4)


def test_one_gaussian_is_linear_regression():
    X, y = curved()
    model = regressor(n_components=1, covariance_prior=0.0).fit(X, y)
    design = np.column_stack([np.ones(len(X)), X])
    coefficients, residual = np.linalg.lstsq(design, y, rcond=None)[:2]
    np.testing.assert_allclose(model.predict(X), design @ coefficients, atol=1e-8)
    _, deviation = model.predict(X, return_std=True)
    expected = np.full(len(X), np.sqrt(residual[0] / len(X)))
    np.testing.assert_allclose(deviation, expected, rtol=1e-6)


def test_draws_follow_the_distribution(fitted):
    X, _ = curved(4, seed=5)
    X[0, 0] = np.nan
    draws = fitted.sample_y(X, 4000, random_state=0)
    assert draws.shape == (4, 4000)
    mean, deviation = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.06 * deviation.max())
    np.testing.assert_allclose(draws.std(axis=1), deviation, rtol=0.06)
    levels = fitted.predict_quantiles(X, [0.1, 0.8])
    below = (draws[:, :, None] <= levels[:, None]).mean(axis=1)
    np.testing.assert_allclose(below, [[0.1, 0.8]] * 4, atol=0.03)


def test_quantiles_of_atoms_are_jumps():
    forecast = Forecast(
        np.array([[0.6]]),
        np.zeros((1, 1)),
        np.ones((1, 1)),
        np.array([[0.4]]),
        np.ones(1),
    )
    below = 0.6 * norm.cdf(1.0)
    inside = forecast.quantiles(np.array([below + 0.2]))
    assert inside[0] == pytest.approx(1.0)
    assert forecast.cdf(np.array([0.999]))[0] < below < forecast.cdf(np.array([1.0]))[0]
    draws = forecast.draw(np.random.default_rng(0), 4000)
    assert np.mean(draws == 1.0) == pytest.approx(0.4, abs=0.03)


# Training -------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", [name for name in families() if "refined" not in name])
def test_gradients_of_the_predictive_likelihood(name, missing):
    if name == "categorical":
        pytest.skip("it has no real column to predict")
    problem, start = make_problem(name, missing)
    start = start.of_class(0)
    rows = problem._dataset.rows
    places = TargetPlaces((3, 4), (None, None))
    model = TargetModel(start, places)
    dataset = Dataset(rows, np.zeros(rows.n_rows, np.intp), None)
    objective = Blend(Likelihood(), PredictiveLikelihood(), 2.0)
    problem = Problem(dataset, objective, model, Workers(1))
    coordinates = model.coordinates(float(rows.n_rows))
    rng = np.random.default_rng(0)
    vector = 0.3 * rng.normal(size=coordinates.size)

    def value(vector):
        point = coordinates.at(vector)
        return problem.assess(point.model).value + point.model.log_prior_density()

    point = coordinates.at(vector)
    statistics = problem.assess(point.model).statistics
    gradient = point.gradient(statistics) + point.prior_gradient()
    for direction in rng.normal(size=(3, coordinates.size)):
        step = 1e-5 * direction
        slope = (value(vector + step) - value(vector - step)) / 2e-5
        assert direction @ gradient == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_a_tradeoff_raises_the_predictive_likelihood():
    X, y = curved()
    scores = [
        regressor(n_components=3, tradeoff=t)
        .fit(X, y)
        .log_predictive_density(X, y)
        .mean()
        for t in (0.0, 1.0, 10.0)
    ]
    assert scores[0] < scores[1] < scores[2]


def test_rows_without_a_target_are_learned_from():
    X, y = curved(300)
    known = y.copy()
    known[30:] = np.nan
    options = {"n_components": 1, "covariance_prior": 0.0, "tol": 1e-12, "max_iter": 5000}
    with_all = regressor(**options).fit(X, known)
    np.testing.assert_allclose(with_all.means_[0], X.mean(axis=0), atol=1e-6)
    alone = regressor(**options).fit(X[:30], y[:30])
    # One Gaussian: what is known of rows alone does not change p(y | x).
    np.testing.assert_allclose(with_all.predict(X), alone.predict(X), atol=1e-3)
    assert np.abs(with_all.score_samples(X) - alone.score_samples(X)).max() > 1e-3


@pytest.mark.parametrize("options", [PLAIN, {"random_state": 0}, {"effort": "fast"}])
def test_a_weight_of_two_is_two_rows(options):
    X, y = curved(60)
    weights = np.r_[np.full(20, 2.0), np.ones(30), np.zeros(10)]
    index = np.repeat(np.arange(60), weights.astype(int))
    one = MixtureRegressor(**{**options, "random_state": 0})
    other = clone(one).fit(X[index], y[index])
    one.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        one.log_predictive_density(X, y), other.log_predictive_density(X, y), atol=1e-4
    )


def test_the_same_seed_gives_the_same_model_for_any_number_of_threads():
    X, y = curved(150)
    X[::5, 1] = np.nan
    models = [
        MixtureRegressor([1, 3], random_state=3, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    ]
    assert_same(models[0].predict(X), models[1].predict(X))
    draws = [model.sample_y(X, 2, random_state=1) for model in models]
    assert_same(*draws)
    assert_same(models[0].predictive_, models[1].predictive_)


def test_intervals_cover_what_they_say():
    X, y = curved(400, seed=1)
    model = MixtureRegressor([4, 8], tradeoff=0.0, random_state=0).fit(X, y)
    new, targets = curved(2000, seed=2)
    for coverage, tolerance in ((0.5, 0.1), (0.9, 0.03)):
        low, high = model.predict_interval(new, coverage).T
        share = np.mean((low <= targets) & (targets <= high))
        assert share == pytest.approx(coverage, abs=tolerance)
    assert model.score(new, targets) > 0.85


def test_the_search_publishes_what_it_did(searched):
    X, y = curved(50, seed=9)
    shares = [row["share"] for row in searched.leaderboard_ if row["share"] > 0.0]
    assert sum(shares) == pytest.approx(1.0)
    assert len(shares) == len(searched.members_) <= 8
    by_share = sorted(shares, reverse=True)
    logs = [member.log_predictive_density(X, y) for member in searched.members_]
    expected = np.log(np.average(np.exp(logs), axis=0, weights=by_share))
    np.testing.assert_allclose(searched.log_predictive_density(X, y), expected)
    member = searched.members_[0]
    assert isinstance(member.n_components, int)
    assert member.predictive_.members[0] is searched.predictive_.members[0]
    assert searched.spread_ == searched.predictive_.spread


def test_groups_are_held_out_together(monkeypatch):
    X, y = curved(80)
    groups = np.repeat(np.arange(8), 10)
    seen = []
    original = regression_trials.RegressionSearch.tried

    def tried(self, budget):
        seen.append([(rest.n_rows, held.n_rows) for rest, held in self.parts])
        return original(self, budget)

    monkeypatch.setattr(regression_trials.RegressionSearch, "tried", tried)
    MixtureRegressor(n_components=[1, 2], random_state=0).fit(X, y, groups=groups)
    assert seen == [[(60, 20)] * 4]
    with pytest.raises(ValueError, match="single group"):
        MixtureRegressor().fit(X, y, groups=np.zeros(80))


@pytest.mark.parametrize("effort", ["fast", "thorough", 0.5])
def test_efforts(effort):
    X, y = curved(60)
    model = MixtureRegressor(effort=effort, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.2  # seconds may be over after one Gaussian
    assert model.leaderboard_


def test_fixed_options_need_no_held_out_rows():
    model = regressor(n_starts=3).fit(*curved(60))
    assert model.leaderboard_ == []
    assert model.spread_ == 1.0
    assert len(model.predictive_.members) == 3
    calibrated = regressor(calibrate=True).fit(*curved(60))
    assert calibrated.spread_ != 1.0


# Several targets ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def several():
    X, y = curved(300)
    rng = np.random.default_rng(4)
    both = np.column_stack([y, 0.5 * y - X[:, 0] + 0.3 * rng.normal(size=300)])
    return regressor(n_components=2, calibrate=True).fit(X, both), X, both


def test_several_targets_have_a_joint_density(several):
    model, X, Y = several
    alone = model.log_predictive_density(
        X, np.column_stack([Y[:, 0], np.full(300, np.nan)])
    )
    both = model.log_predictive_density(X, Y)
    assert np.isfinite(both).all()
    # The joint density integrates to that of the first target.
    row, first = X[:1], Y[0, 0]

    def p(second):
        return float(np.exp(model.log_predictive_density(row, [[first, second]]))[0])

    total, _ = quad(p, -20.0, 20.0, limit=200)
    assert total == pytest.approx(np.exp(alone[0]), rel=1e-5)


def test_several_targets_are_predicted_and_drawn_together(several):
    model, X, _ = several
    assert model.predict(X).shape == (300, 2)
    assert model.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (300, 2, 3)
    assert model.predict_interval(X).shape == (300, 2, 2)
    draws = model.sample_y(X[:2], 3000, random_state=0)
    assert draws.shape == (2, 2, 3000)
    mean, deviation = model.predict(X[:2], return_std=True)
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=2), deviation, rtol=0.06)
    # Given the row, the second target goes up with the first.
    assert np.corrcoef(draws[0])[0, 1] > 0.1


def test_the_form_of_the_targets_is_kept():
    X, y = curved(40)
    flat, column = regressor().fit(X, y), regressor().fit(X, y[:, None])
    assert flat.predict(X).shape == (40,)
    assert column.predict(X).shape == (40, 1)
    np.testing.assert_array_equal(flat.predict(X), column.predict(X)[:, 0])
    by_frame = regressor().fit(X, pd.DataFrame({"cost": y}))
    np.testing.assert_array_equal(by_frame.predict(X)[:, 0], flat.predict(X))
    by_series = regressor().fit(X, pl.Series("cost", y))
    np.testing.assert_array_equal(by_series.predict(X), flat.predict(X))
    by_words = regressor().fit(X, [None if k == 3 else v for k, v in enumerate(y)])
    assert np.isfinite(by_words.predict(X)).all()


# Shapes ---------------------------------------------------------------------------------


def test_positive_targets_are_predicted_positive():
    X, y = curved(300)
    y = np.exp(y)
    model = regressor(target_shapes="auto").fit(X, y)
    assert model.target_schema_.shapes[0].transform is not None
    far = np.array([[0.0, -30.0], [30.0, 30.0]])
    assert (model.predict(far) > 0.0).all()
    assert (model.sample_y(far, 100, random_state=0) > 0.0).all()
    assert (model.predict_interval(far, 0.99) > 0.0).all()


def test_spikes_of_a_target_are_atoms():
    X, y = curved(400)
    is_zero = np.random.default_rng(0).random(400) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    y = np.where(is_zero, 0.0, np.exp(y))
    model = regressor(n_components=3, target_shapes="auto").fit(X, y)
    assert model.target_schema_.shapes[0].spikes == (0.0,)
    low, high = np.array([[-1.5, 0.0]]), np.array([[1.5, 0.0]])
    probability = [np.exp(model.log_predictive_density(x, [0.0]))[0] for x in (low, high)]
    assert probability[0] < 0.3 < 0.7 < probability[1]
    draws = model.sample_y(high, 2000, random_state=0)
    assert np.mean(draws == 0.0) == pytest.approx(probability[1], abs=0.04)
    assert model.predict_quantiles(high, 0.3)[0] == pytest.approx(0.0, abs=1e-9)
    mean, deviation = model.predict(high, return_std=True)
    assert mean[0] == pytest.approx(draws.mean(), rel=0.25)
    assert deviation[0] > 0.0
    several = regressor(target_shapes="auto").fit(X, np.column_stack([y, X[:, 0]]))
    draws = several.sample_y(high, 500, random_state=0)
    assert np.mean(draws[0, 0] == 0.0) > 0.5
    targets = np.array([[0.0, 1.0], [np.nan, 1.0], [1.0, np.nan]])
    assert np.isfinite(
        several.log_predictive_density(np.repeat(high, 3, 0), targets)
    ).all()


def test_whole_targets_are_drawn_whole():
    X, y = curved(200)
    y = np.rint(10.0 * y)
    model = regressor(target_shapes={0: ColumnShape(whole=True)}).fit(X, y)
    draws = model.sample_y(X, 1, random_state=0)
    np.testing.assert_array_equal(draws, np.rint(draws))


# Tables of any kind ---------------------------------------------------------------------


@pytest.mark.parametrize("library", [pd, pl])
def test_mixed_frames(library):
    X, y = curved(200)
    kinds = np.where(X[:, 0] > 0.0, "up", "down").astype(object)
    kinds[::10] = None
    frame = library.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": kinds.tolist()})
    model = regressor(column_shapes="auto").fit(frame, y)
    assert model.score(frame, y) > 0.5
    assert model.impute(frame)["kind"].is_null().sum() == 0 if library is pl else True
    rows, targets = model.sample(5, random_state=0)
    assert type(rows) is type(frame)
    assert targets.shape == (5,)
    assert np.isfinite(model.typicality(frame)).all()


def test_only_categories():
    rng = np.random.default_rng(0)
    words = rng.choice(["a", "b", "c"], size=(90, 2)).astype(object)
    y = (words[:, 0] == "a") * 3.0 + rng.normal(size=90)
    model = MixtureRegressor(random_state=0).fit(words, y)
    found = model.predict(np.array([["a", "b"], ["b", "b"]], dtype=object))
    assert found[0] - found[1] > 1.5
    assert np.isfinite(model.score_samples(words)).all()


def test_rows_far_from_all_others(fitted):
    X = np.array([[1e8, -1e8], [1e300, 0.0], [np.nan, np.nan]])
    mean, deviation = fitted.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(deviation).all()
    assert np.isfinite(fitted.predict_interval(X)).all()


# As scikit-learn has it -----------------------------------------------------------------


def test_it_is_a_regressor_of_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), regressor(n_components=1))
    scores = cross_val_score(pipe, X, y, cv=3)
    assert scores.mean() > 0.4
    model = clone(MixtureRegressor(3, tradeoff=2.0)).set_params(n_starts=2)
    assert model.get_params()["n_components"] == 3
    assert "MixtureRegressor" in model._repr_html_()
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_metadata_is_routed():
    import sklearn

    X, y = curved(60)
    groups = np.repeat(np.arange(6), 10)
    with sklearn.config_context(enable_metadata_routing=True):
        model = regressor().set_fit_request(groups=True, sample_weight=True)
        model.set_score_request(sample_weight=False)
        scores = cross_val_score(
            model,
            X,
            y,
            cv=GroupKFold(2),
            params={"groups": groups, "sample_weight": np.ones(60)},
        )
    assert np.isfinite(scores).all()


def test_missing_targets_are_left_out_of_scores(fitted):
    X, y = curved(50, seed=7)
    holed = y.copy()
    holed[::2] = np.nan
    assert fitted.score(X, holed) == pytest.approx(fitted.score(X[1::2], y[1::2]))
    weights = np.r_[np.zeros(25), np.ones(25)]
    assert fitted.score(X, y, sample_weight=weights) == pytest.approx(
        fitted.score(X[25:], y[25:])
    )
    logs = fitted.log_predictive_density(X, holed)
    assert np.isnan(logs[::2]).all()
    assert np.isfinite(logs[1::2]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tradeoff": -1.0}, "tradeoff"),
        ({"tradeoff": "some"}, "tradeoff"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_starts": 0}, "n_starts"),
        ({"n_components": 0}, "n_components"),
        ({"calibrate": "yes"}, "calibrate"),
        ({"target_shapes": "round"}, "column_shapes|target_shapes"),
        ({"covariance_type": "ful"}, "covariance_type"),
        ({"effort": "much"}, "effort"),
        ({"init": "random"}, "init"),
        ({"init": np.zeros((2, 2))}, "init"),
    ],
)
def test_options_are_refused_before_work(options, message):
    with pytest.raises(ValueError, match=message):
        MixtureRegressor(**options).fit([["not", "a table"]], None)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y"),
        ([1.0, 2.0], "inconsistent"),
        ([np.nan] * 4, "no observed value"),
        (np.full((4, 2), [1.0, np.nan]), "column 1 of y has no observed value"),
        ([1.0, np.inf, 2.0, 3.0], "infinity"),
        (["a", "b", "c", "d"], "not a number"),
        (np.zeros((4, 1, 1)), "shape"),
        (pd.DataFrame({"cost": list("abcd")}), "'cost' does not hold numbers"),
        ([1j, 2.0, 3.0, 4.0], "Complex"),
    ],
)
def test_targets_are_refused(y, message):
    model = regressor()
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(8.0).reshape(4, 2), y)
    assert not hasattr(model, "model_")


def test_calls_are_refused(fitted, several):
    X, y = curved(5)
    for levels in ([], [0.0], [1.5], [[0.1]]):
        with pytest.raises(ValueError, match="quantiles"):
            fitted.predict_quantiles(X, levels)
    with pytest.raises(ValueError, match="coverage"):
        fitted.predict_interval(X, 1.0)
    with pytest.raises(ValueError, match="n_samples"):
        fitted.sample_y(X, 0)
    with pytest.raises(ValueError, match="2 target"):
        fitted.score(X, np.column_stack([y, y]))


def test_small_tables():
    for n_rows in (1, 2, 3, 5):
        X, y = curved(n_rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MixtureRegressor(random_state=0).fit(X, y)
        assert np.isfinite(model.predict(X)).all()
        assert np.isfinite(model.predict_interval(X)).all()
    constant = MixtureRegressor(random_state=0).fit(curved(30)[0], np.full(30, 2.0))
    np.testing.assert_allclose(constant.predict(curved(5)[0]), 2.0, atol=1e-2)


# Interrupts -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_fits", [8, 18])
def test_an_interrupt_keeps_what_was_found(n_fits, monkeypatch):
    X, y = curved(80)
    original = TargetTrainer.fitted
    calls = []

    def fitted(self, *args):
        calls.append(args)
        if len(calls) > n_fits:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(TargetTrainer, "fitted", fitted)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = MixtureRegressor([1, 2, 4], random_state=0).fit(X, y)
    assert model.interrupted_
    assert model.score(X, y) > 0.3


def test_an_interrupt_before_anything_is_an_interrupt(monkeypatch):
    def fitted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TargetTrainer, "fitted", fitted)
    model = MixtureRegressor()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*curved(40))
    with pytest.raises(KeyboardInterrupt):
        regressor().fit(*curved(40))
    assert not hasattr(model, "model_")


def test_progress_is_announced(capsys):
    MixtureRegressor(n_components=[1, 2], random_state=0, verbose=1).fit(*curved(60))
    assert "search" in capsys.readouterr().out


# Files ----------------------------------------------------------------------------------

PREDICTIVE = ("estimator", "learned", "predictive_", "record", "fields")
LEARNED = ("estimator", "learned")


def test_files_hold_the_whole_model(searched, several, tmp_path):
    for model, X in ((searched, curved(20)[0]), (several[0], several[1])):
        path = tmp_path / "model.hmx"
        hybridmix.save(model, path)
        loaded = hybridmix.load(path)
        assert_same(loaded.predict(X), model.predict(X))
        assert_same(loaded.predict_interval(X), model.predict_interval(X))
        assert_same(loaded.leaderboard_, model.leaderboard_)
        assert_same(loaded.fingerprint_, model.fingerprint_)
        assert_same(loaded.members_[0].predict(X), model.members_[0].predict(X))


@pytest.mark.parametrize(
    ("where", "change", "message"),
    [
        ((*PREDICTIVE, "shares"), lambda x: 2.0 * x, "shares do not sum to one"),
        ((*PREDICTIVE, "shares"), lambda x: x[:-1], "shares"),
        ((*PREDICTIVE, "shares"), lambda x: np.full_like(x, np.nan), "shares"),
    ],
)
def test_tampered_arrays_are_refused(where, change, message, searched, tmp_path):
    path = tmp_path / "model.hmx"
    hybridmix.save(searched, path)
    set_array(path, where, change(array_of(path, where)))
    refused(path, message)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ((*PREDICTIVE, "spread"), -1.0, "spread"),
        ((*PREDICTIVE, "spread"), "wide", "spread"),
        ((*LEARNED, "n_outputs_"), 2, "n_outputs_"),
        ((*LEARNED, "target_ndim_"), 3, "target_ndim_"),
        ((*LEARNED, "spread_"), 3.0, "spread_"),
        ((*LEARNED, "predictive_"), None, "predictive_"),
        ((*LEARNED, "target_schema_"), None, "target_schema_"),
        ((*LEARNED, "members_"), 1, "members_"),
    ],
)
def test_tampered_values_are_refused(where, value, message, searched, tmp_path):
    path = tmp_path / "model.hmx"
    hybridmix.save(searched, path)
    set_value(path, where, value)
    refused(path, message)


# Pictures -------------------------------------------------------------------------------


def test_pictures(fitted, several):
    import matplotlib.pyplot as plt

    from hybridmix import plots

    X, y = curved(400, seed=8)
    y[::9] = np.nan
    shown = plots.PredictionIntervalsDisplay.from_estimator(fitted, X, y, coverage=0.8)
    low, high = fitted.predict_interval(X, 0.8).T
    known = ~np.isnan(y)
    assert shown.covered == pytest.approx(np.mean((low <= y) & (y <= high), where=known))
    calibration = plots.QuantileCalibrationDisplay.from_estimator(
        fitted, X, y, levels=[0.2, 0.7]
    )
    quantiles = fitted.predict_quantiles(X[known], [0.2, 0.7])
    expected = np.mean(y[known, None] <= quantiles, axis=0)
    np.testing.assert_allclose(calibration.shares, expected)
    curve = plots.DependenceDisplay.from_estimator(fitted, X, y, column=0)
    rows = np.column_stack([curve.values, np.full(len(curve.values), np.nan)])
    np.testing.assert_allclose(curve.means, fitted.predict(rows))
    np.testing.assert_allclose(curve.band, fitted.predict_interval(rows))
    model, X, Y = several
    curve = plots.DependenceDisplay.from_estimator(model, X, Y, column=1, target=1)
    assert curve.ax_.get_ylabel() == "target"
    with pytest.raises(ValueError, match="7"):
        plots.DependenceDisplay.from_estimator(fitted, X, column=7)
    plt.close("all")


def test_rows_that_are_very_far_away_have_finite_predictions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=200))
    model = MixtureRegressor(
        1, covariance_type="full", tradeoff=0.0, target_shapes="auto", random_state=0
    ).fit(X, y)
    assert isinstance(model.target_schema_.shapes[0].transform, Logarithm)
    far = np.array([[1e4, 0.0], [-1e4, 0.0]])
    means, deviations = model.predict(far, return_std=True)
    assert np.isfinite(means).all()
    assert np.isfinite(deviations).all()
    assert means[0] > means[1]
