"""The network regressor: closed forms, rows of all kinds, refusals, files."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVR

from hybridmix import (
    MixtureDensity,
    MixtureEmbedding,
    MixtureNetworkRegressor,
    load,
    plots,
    report,
    save,
)
from hybridmix.cli import main
from hybridmix.exceptions import UnsupportedError
from hybridmix.inspection import feature_importance
from hybridmix.tasks import task_of
from hybridmix.training import linear_output

X, Y = load_diabetes(return_X_y=True)
X, Y = X[:200], Y[:200]
FIXED = {"n_components": 3, "covariance_type": "diag", "random_state": 0}
KINDS = ("posterior", "log_joint", "linear", "experts")
GIVEN = {"l2": 2.0, "l2_linear": 2.0}


def regressor(**options):
    """Return a regressor that does not search for a mixture."""
    return MixtureNetworkRegressor(**{**FIXED, **options})


def with_holes(share=0.2, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def mixed_table(n_rows=150, seed=0):
    """Return numbers and words, with holes in both, and a target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc"))
    frame["word"] = rng.choice(["yes", "no"], n_rows)
    y = 2.0 * frame["a"] + (frame["word"] == "yes") + 0.1 * rng.normal(size=n_rows)
    return frame.mask(rng.random(frame.shape) < 0.15), y.to_numpy()


# The output layer -----------------------------------------------------------------------


@pytest.mark.parametrize("features", ["posterior", ("posterior", "linear"), KINDS])
def test_least_squares_are_those_of_ridge(features):
    rows = with_holes()
    model = regressor(features=features, **GIVEN).fit(rows, Y)
    embedding = MixtureEmbedding(features=features, **FIXED).fit(rows)
    np.testing.assert_allclose(model.embed(rows), embedding.transform(rows))
    expected = Ridge(2.0).fit(model.embed(rows), Y)
    np.testing.assert_allclose(model.weights_[0], expected.coef_, atol=1e-7)
    np.testing.assert_allclose(model.predict(rows), expected.predict(model.embed(rows)))


def test_each_kind_of_features_has_its_penalty():
    model = regressor(l2=0.5, l2_linear=8.0).fit(X, Y)
    scaled = model.embed(X) * np.repeat([0.5, 8.0], [3, X.shape[1]]) ** -0.5
    np.testing.assert_allclose(
        model.predict(X), Ridge(1.0).fit(scaled, Y).predict(scaled)
    )


def test_penalties_are_chosen_by_generalised_cross_validation():
    model = regressor().fit(X, Y)
    features = model.embed(X)
    centred = features - features.mean(axis=0)
    scores = {}
    for own in linear_output.STRENGTHS:
        for linear in linear_output.STRENGTHS:
            penalty = np.diag(np.repeat([own, linear], [3, X.shape[1]]))
            hat = centred @ np.linalg.solve(centred.T @ centred + penalty, centred.T)
            residual = (Y - Y.mean()) - hat @ (Y - Y.mean())
            free = 1.0 - (1.0 + np.trace(hat)) / len(Y)
            scores[own, linear] = np.mean(residual**2) / free**2
    best = min(scores, key=scores.get)
    assert (model.l2_, model.l2_linear_) == best
    np.testing.assert_allclose(model.deviations_, np.sqrt(scores[best]))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_the_insensitive_loss_is_nearly_that_of_a_support_vector_machine(epsilon):
    model = regressor(output="epsilon", epsilon=epsilon, **GIVEN).fit(X, Y)
    features, scale = model.embed(X), Y.std()
    targets = (Y - Y.mean()) / scale

    def loss(weights, bias):
        beyond = np.abs(targets - features @ weights - bias) - epsilon
        return np.maximum(beyond, 0.0).sum() + weights @ weights

    machine = SVR(kernel="linear", C=0.5, epsilon=epsilon, tol=1e-6)
    machine.fit(features, targets)
    least = loss(machine.coef_[0], machine.intercept_[0])
    found = loss(model.weights_[0] / scale, (model.bias_[0] - Y.mean()) / scale)
    assert least * (1.0 - 1e-6) <= found <= 1.01 * least


def test_the_insensitive_loss_hardly_sees_outliers():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2))
    clean = rows @ [1.0, -2.0]
    y = clean + np.where(rng.random(300) < 0.1, 50.0, 0.0)
    errors = {
        output: np.abs(regressor(output=output).fit(rows, y).predict(rows) - clean).mean()
        for output in ("gaussian", "epsilon")
    }
    assert errors["epsilon"] < 0.5 * errors["gaussian"]


def test_experts_are_linear_functions_of_their_own():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-5, 1, (200, 1)), rng.normal(5, 1, (200, 1))])
    y = np.abs(rows[:, 0])
    options = {"n_components": 2, "embedding_temperature": 1.0}
    experts = regressor(features=("posterior", "experts"), **options).fit(rows, y)
    assert experts.score(rows, y) > 0.99
    assert LinearRegression().fit(rows, y).score(rows, y) < 0.1


# Rows of all kinds ----------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"output": "epsilon"}, {"features": KINDS}])
def test_a_weight_of_two_is_two_rows(options):
    weights = np.random.default_rng(0).integers(0, 3, len(Y))
    targets = Y.copy()
    targets[::7] = np.nan
    one = regressor(**options).fit(X, targets, sample_weight=weights)
    other = regressor(**options).fit(
        np.repeat(X, weights, axis=0), np.repeat(targets, weights)
    )
    assert (one.l2_, one.l2_linear_) == (other.l2_, other.l2_linear_)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-5)


def test_several_targets_are_fitted_one_by_one():
    both = np.column_stack([Y, X[:, 2] - 3.0 * X[:, 5]])
    both[::3, 1] = np.nan
    for output in ("gaussian", "epsilon"):
        model = regressor(output=output, **GIVEN).fit(X, both)
        assert model.predict(X).shape == both.shape
        for k in range(2):
            alone = regressor(output=output, **GIVEN).fit(X, both[:, [k]])
            assert alone.predict(X).shape == (len(X), 1)
            np.testing.assert_allclose(
                model.predict(X)[:, k], alone.predict(X)[:, 0], rtol=1e-6
            )


def test_rows_without_a_target_take_part_in_the_mixture_alone():
    targets = Y.copy()
    targets[::2] = np.nan
    model = regressor(**GIVEN).fit(X, targets)
    density = MixtureDensity(**FIXED).fit(X)
    np.testing.assert_allclose(model.score_samples(X), density.score_samples(X))
    known = ~np.isnan(targets)
    features = model.embed(X)
    expected = Ridge(2.0).fit(features[known], targets[known])
    np.testing.assert_allclose(model.predict(X), expected.predict(features))
    assert model.score(X, targets) == model.score(X[known], targets[known])


def test_mixed_tables_with_holes():
    rows, y = mixed_table()
    model = regressor(features=KINDS).fit(rows, y)
    assert model.score(rows, y) > 0.5
    np.testing.assert_allclose(model.predict(pl.from_pandas(rows)), model.predict(rows))
    assert not model.impute(rows).isna().any(axis=None)
    assert np.isfinite(model.typicality(rows)).all()


def test_deviations_are_about_the_errors_on_other_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 5))
    y = 3.0 * rows[:, 0] + rng.normal(scale=2.0, size=2000)
    model = regressor().fit(rows[:200], y[:200])
    mean, deviation = model.predict(rows[200:], return_std=True)
    assert mean.shape == deviation.shape == (1800,)
    np.testing.assert_allclose(deviation[0], (y[200:] - mean).std(), rtol=0.15)


@pytest.mark.parametrize("options", [{}, {"output": "epsilon"}])
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(options):
    rows = np.tile(with_holes(), (20, 1))
    y = np.tile(Y, 20)
    found = [
        regressor(n_jobs=n_jobs, **options).fit(rows, y).predict(X) for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*found)


def test_the_automatic_choice_is_that_of_the_density():
    model = MixtureNetworkRegressor(random_state=0).fit(X, Y)
    density = MixtureDensity(random_state=0).fit(X)
    assert model.n_components_ == density.n_components_
    assert model.covariance_type_ == density.covariance_type_
    assert len(model.leaderboard_) == len(density.leaderboard_)


def test_small_and_constant_targets():
    one = regressor(n_components=1).fit(X[:1], Y[:1])
    np.testing.assert_allclose(one.predict(X[:3]), Y[0])
    for output in ("gaussian", "epsilon"):
        constant = regressor(output=output).fit(X, np.full(len(X), 7.0))
        np.testing.assert_allclose(constant.predict(X), 7.0)
        large = regressor(output=output).fit(X, 1e150 * Y)
        small = regressor(output=output).fit(X, Y)
        np.testing.assert_allclose(large.predict(X), 1e150 * small.predict(X), rtol=1e-5)


def test_scorers_and_clones():
    scores = cross_val_score(clone(regressor()), X, Y, cv=3)
    assert scores.mean() > 0.3


# Refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "poisson"}, "output='poisson' is not one of"),
        ({"features": "square"}, "features='square' must be"),
        ({"features": ()}, "features="),
        ({"l2": 0.0}, "l2=0.0 is not valid"),
        ({"l2_linear": "none"}, "l2_linear='none' is neither"),
        ({"epsilon": -1.0}, "epsilon=-1.0 is not valid"),
        ({"embedding_temperature": 0.0}, "embedding_temperature=0.0"),
        ({"n_components": 0}, "n_components"),
        ({"covariance_type": "round"}, "covariance_type"),
    ],
)
def test_options_are_refused_before_work(options, message):
    model = regressor(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (Y[:5], "inconsistent numbers of samples"),
        (np.full(len(Y), np.nan), "no observed value"),
        (np.where(Y > 100, np.inf, Y), "infinity"),
        (["a"] * len(Y), "not a number"),
    ],
)
def test_targets_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        regressor().fit(X, y)


def test_an_insensitive_loss_has_no_deviations():
    model = regressor(output="epsilon").fit(X, Y)
    with pytest.raises(ValueError, match="needs output='gaussian'"):
        model.predict(X, return_std=True)


def test_an_interrupt_of_the_output_layer_keeps_least_squares(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    expected = regressor().fit(X, Y).predict(X)
    monkeypatch.setattr(linear_output._Insensitive, "expanded", interrupted)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = regressor(output="epsilon").fit(X, Y)
    assert model.interrupted_
    np.testing.assert_allclose(model.predict(X), expected)


# Files and other tools ------------------------------------------------------------------


@pytest.mark.parametrize("output", ["gaussian", "epsilon"])
def test_regressors_can_be_saved(output, tmp_path):
    rows, y = mixed_table()
    model = regressor(output=output, features=KINDS).fit(rows, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights_": np.zeros((1, 2))}, "weights_ does not have the shape"),
        ({"bias_": np.array([np.nan])}, "bias_ has values"),
        ({"deviations_": np.array([-1.0])}, "deviations_ has negative"),
        ({"output": "epsilon"}, "deviations_ do not belong"),
        ({"l2_": 0.0}, "l2_ is less than"),
        ({"n_outputs_": 2}, "n_outputs_ is wrong"),
        ({"target_ndim_": 3}, "target_ndim_ is wrong"),
        ({"embedding_": None}, "embedding_ is a NoneType"),
    ],
)
def test_regressors_that_were_tampered_with_are_refused(change, message, tmp_path):
    model = regressor().fit(X, Y)
    vars(model).update(change)
    with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "model")


def test_predictions_are_gaussian():
    rows, others = with_holes()[:150], with_holes(seed=1)[150:]
    both = np.column_stack([Y[:150], X[:150, 2] - 3.0 * X[:150, 5]])
    model = regressor().fit(rows, both)
    mean, deviation = model.predict(others, return_std=True)
    levels = [0.05, 0.5, 0.99]
    quantiles = model.predict_quantiles(others, levels)
    expected = norm.ppf(levels, mean[..., None], deviation[..., None])
    np.testing.assert_allclose(quantiles, expected)
    np.testing.assert_allclose(model.predict_quantiles(others, 0.5), mean)
    interval = model.predict_interval(others, 0.8)
    np.testing.assert_allclose(interval, model.predict_quantiles(others, [0.1, 0.9]))
    targets = np.column_stack([Y[150:], X[150:, 2]])
    targets[0], targets[1, 1] = np.nan, np.nan
    density = model.log_predictive_density(others, targets)
    own = norm.logpdf(targets, mean, deviation)
    np.testing.assert_allclose(density[1:], np.nansum(own[1:], axis=1))
    assert np.isnan(density[0])
    draws = model.sample_y(others, 4000, random_state=0)
    assert draws.shape == (50, 2, 4000)
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=0.1 * deviation.max())
    np.testing.assert_allclose(draws.std(axis=2), deviation, rtol=0.06)
    drawn, drawn_targets = model.sample(30, random_state=0)
    assert drawn.shape == (30, X.shape[1])
    assert drawn_targets.shape == (30, 2)


def test_intervals_hold_about_as_many_targets_as_they_should():
    X, y = load_diabetes(return_X_y=True)
    low, high = regressor().fit(X[::2], y[::2]).predict_interval(X[1::2]).T
    assert 0.84 < np.mean((low <= y[1::2]) & (y[1::2] <= high)) < 0.95


def test_densities_of_constant_targets_are_finite():
    model = regressor().fit(X, np.full(len(X), 7.0))
    np.testing.assert_allclose(model.predict_interval(X), 7.0)
    assert np.isfinite(model.log_predictive_density(X, np.full(len(X), 7.0))).all()


def test_insensitive_losses_have_no_distribution(tmp_path, capsys):
    rows = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    model = regressor(output="epsilon").fit(rows, Y)
    assert task_of(model).target == "numbers"
    for name in (
        "predict_quantiles",
        "predict_interval",
        "log_predictive_density",
        "sample_y",
        "sample",
    ):
        assert hasattr(regressor(), name)
        assert not hasattr(model, name)
    with pytest.raises(UnsupportedError, match="output='gaussian'"):
        report(model, rows, Y)
    with pytest.raises(TypeError, match="predictive distribution"):
        feature_importance(model, rows, Y)
    files = [str(tmp_path / "model.hmx"), str(tmp_path / "rows.csv")]
    save(model, files[0])
    rows.assign(y=Y).to_csv(files[1], index=False)
    assert main(["inspect", files[0]]) == 0
    assert main(["predict", *files]) == 0
    assert "predicted_low" not in capsys.readouterr().out
    for command in (
        ["evaluate", *files, "--target", "y"],
        ["predict", *files, "--coverage", "0.9"],
        ["sample", files[0]],
    ):
        assert main(command) != 0
        assert "no predictive distribution" in capsys.readouterr().err


def test_columns_are_judged_as_those_of_other_regressors():
    X, y = load_diabetes(return_X_y=True)
    model = regressor().fit(X[:300], y[:300])
    importance = feature_importance(model, X[300:], y[300:])
    errors = model.predict(X[300:]) - y[300:]
    assert importance.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))
    # The body mass index tells most about this disease.
    assert importance.order[0] == 2


@pytest.mark.parametrize(
    ("display", "options"),
    [
        (plots.PredictionIntervalsDisplay, {}),
        (plots.QuantileCalibrationDisplay, {}),
        (plots.DependenceDisplay, {"column": 0}),
    ],
)
def test_pictures_of_distributions(display, options):
    X, y = load_diabetes(return_X_y=True)
    model = regressor().fit(X[:100], y[:100])
    drawn = display.from_estimator(model, X, y, **options)
    plt.close(drawn.figure_)
    model = regressor(output="epsilon").fit(X[:100], y[:100])
    with pytest.raises(TypeError, match="use a MixtureRegressor"):
        display.from_estimator(model, X, y, **options)
