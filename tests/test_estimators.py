"""What users see of the estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import plain_classifier
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import auc, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hybridmix import (
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.objectives import Margin, ScaledMargin
from hybridmix.solvers import ExtendedBaumWelch, LimitedMemoryBFGS


def punched(X, share, seed=0):
    X = np.array(X, dtype=float)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


# Density -------------------------------------------------------------------------------


def test_bic_finds_the_number_of_components():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.5, size=(100, 2)) for c in (0, 4, 8)])
    model = MixtureDensity(
        range(1, 6), random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(punched(X, 0.1))
    assert model.n_components_ == 3
    assert set(model.bic_) == {1, 2, 3, 4, 5}  # it rose twice after 3
    assert model.bic_[3] == pytest.approx(model.bic(punched(X, 0.1)), rel=1e-6)


def test_responsibilities_clusters_and_samples(iris):
    X, _ = iris
    model = MixtureDensity(
        3, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(punched(X, 0.1))
    responsibilities = model.predict_proba(X)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), responsibilities.argmax(axis=1))
    sample, components = model.sample(3000, random_state=1)
    np.testing.assert_allclose(sample.mean(axis=0), X.mean(axis=0), rtol=0.05)
    np.testing.assert_allclose(
        np.bincount(components, minlength=3) / 3000, model.mixing_, atol=0.05
    )
    again, _ = model.sample(3000, random_state=1)
    np.testing.assert_array_equal(sample, again)


def test_rows_without_any_value():
    X = punched(np.random.default_rng(0).normal(size=(100, 3)), 0.1)
    X[5] = np.nan
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    assert model.score_samples(X)[5] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[5], model.mixing_)
    np.testing.assert_allclose(model.impute(X)[5], model.mixing_ @ model.means_)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_fewer_rows_than_columns(kind):
    X = np.random.default_rng(0).normal(size=(8, 40))
    y = np.arange(8) % 2
    model = plain_classifier(covariance_type=kind).fit(X, y)
    assert model.score(X, y) == 1.0
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_constant_columns(kind, iris):
    X, y = iris
    X = np.column_stack([X, np.full(150, 9.0), np.zeros(150)])
    model = plain_classifier(covariance_type=kind, n_components=2, random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.9
    odd = X[:1].copy()
    odd[0, 4] = 90.0
    assert model.score_samples(odd)[0] < model.score_samples(X).min()
    np.testing.assert_allclose(model.means_[:, 4], 9.0)


def test_duplicates_get_no_more_components_than_there_are_rows():
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], 20, axis=0)
    with pytest.warns(UserWarning, match="only 2 distinct"):
        model = MixtureDensity(
            5, random_state=0, covariance_type="full", covariance_prior=1.0
        ).fit(X)
    assert model.n_components_ == 2
    assert np.isfinite(model.score(X))


def test_more_components_than_rows_is_an_error():
    with pytest.raises(
        ValueError, match="n_components=5 is more than the number of rows"
    ):
        MixtureDensity(5, covariance_type="full", covariance_prior=1.0).fit(
            np.arange(6.0).reshape(3, 2)
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be"),
        ({"n_components": "many"}, "n_components='many'"),
        ({"covariance_type": "banded"}, "covariance_type='banded' is not one of"),
        ({"covariance_prior": -1.0}, "covariance_prior=-1.0 is not valid"),
        ({"covariance_prior": -1.0}, "at least 0 and at most 1e\\+12, or 'auto'"),
        ({"covariance_prior": "weak"}, "'weak' is neither a number nor 'auto'"),
        ({"covariance_prior": np.ones(2)}, "is neither a number nor 'auto'"),
        ({"variance_floor": 2.0}, "variance_floor=2.0 .* at most 1"),
        ({"smoothing": 0.0}, "smoothing=0.0"),
        ({"tol": "small"}, "tol='small'"),
        ({"max_iter": 1.5}, "max_iter=1.5 .* whole number"),
        ({"n_init": 0}, "n_init=0"),
        ({"init": "random"}, "init='random' is not one of kmeans"),
        ({"n_jobs": "x"}, "n_jobs='x' is not valid: it must be None"),
        ({"n_jobs": 0}, "n_jobs=0 is not valid"),
        ({"random_state": -1}, "random_state=-1 is not valid"),
        ({"random_state": "x"}, "random_state='x' is not valid"),
        ({"verbose": "x"}, "verbose='x' is not valid"),
    ],
)
def test_wrong_options_are_named(options, message, iris):
    with pytest.raises(ValueError, match=message):
        MixtureDensity(**options).fit(iris[0])


@pytest.mark.parametrize("columns", [[], [0, 0], [7], ["x"]])
def test_marginal_refuses_wrong_columns(columns, iris):
    with pytest.raises(ValueError, match=r"[Cc]olumn"):
        MixtureDensity(n_components=1, covariance_type="full", covariance_prior=1.0).fit(
            iris[0]
        ).marginal(columns)


def test_marginal_of_a_frame_expects_its_names():
    frame = load_iris(as_frame=True).data
    model = MixtureDensity(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(frame)
    names = ["petal width (cm)", "sepal length (cm)"]
    small = model.marginal(names)
    assert small.feature_names_in_.tolist() == names
    assert small.means_.shape == (2, 2)
    hidden = frame.copy()
    hidden[[c for c in frame if c not in names]] = np.nan
    np.testing.assert_allclose(
        small.score_samples(frame[names]), model.score_samples(hidden)
    )


# Classifier ----------------------------------------------------------------------------


def test_accuracy_with_holes_in_training_and_prediction():
    for load, least in ((load_iris, 0.9), (load_wine, 0.9), (load_breast_cancer, 0.88)):
        X, y = load(return_X_y=True)
        model = plain_classifier(covariance_type="tied")
        assert cross_val_score(model, punched(X, 0.2), y, cv=5).mean() > least


def test_probabilities_are_consistent(iris):
    X, y = punched(iris[0], 0.2), iris[1]
    model = plain_classifier(n_components=2, random_state=0).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        np.exp(model.predict_log_proba(X)), probabilities, atol=1e-40
    )
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(np.logaddexp.reduce(joint, axis=1), model.score_samples(X))
    np.testing.assert_array_equal(model.predict(X), joint.argmax(axis=1))
    components = model.predict_component(X)
    agree = model.component_classes_[components] == model.predict(X)
    assert agree.mean() > 0.95


def test_string_labels_and_class_prior(iris):
    X, y = iris[0], load_iris().target_names[iris[1]]
    model = plain_classifier("likelihood", class_prior=[0.5, 0.3, 0.2]).fit(X, y)
    np.testing.assert_allclose(model.class_prior_, [0.5, 0.3, 0.2])
    assert set(model.predict(X)) == set(y)
    uneven = np.r_[0:50, 50:70, 100:110]
    empirical = plain_classifier("likelihood").fit(X[uneven], y[uneven])
    np.testing.assert_allclose(empirical.class_prior_, [50 / 80, 20 / 80, 10 / 80])
    uniform = plain_classifier("likelihood", class_prior="uniform").fit(
        X[uneven], y[uneven]
    )
    np.testing.assert_allclose(uniform.class_prior_, 1 / 3)
    for wrong in ("flat", [0.5, 0.5], [0.5, 0.6, 0.1], [1.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="class_prior"):
            plain_classifier(class_prior=wrong).fit(X, y)


def test_components_per_class_and_by_bic(iris):
    X, y = iris
    model = plain_classifier(n_components={0: 1, 1: 2, 2: [1, 3]}, random_state=0)
    model.fit(X, y)
    assert model.n_components_[:2].tolist() == [1, 2]
    assert model.n_components_[2] in (1, 3)
    assert set(model.bic_[2]) == {1, 3}
    with pytest.raises(ValueError, match="no entry for the class 2"):
        plain_classifier(n_components={0: 1, 1: 1}).fit(X, y)


def test_a_class_with_a_single_row(iris):
    X, y = iris[0][:101], iris[1][:101]
    with pytest.warns(UserWarning, match="class 2 has only 1 distinct row"):
        model = plain_classifier(n_components=2, random_state=0).fit(X, y)
    assert model.n_components_.tolist() == [2, 2, 1]
    assert model.predict(X[-1:]) == [2]


def test_one_class_only(iris):
    model = plain_classifier().fit(iris[0], np.full(150, "only"))
    assert set(model.predict(iris[0])) == {"only"}
    np.testing.assert_array_equal(model.predict_proba(iris[0]), 1.0)


def test_sampled_rows_have_labels(iris):
    model = plain_classifier(random_state=0).fit(*iris)
    X, y = model.sample(2000)
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(np.bincount(y) / 2000, 1 / 3, atol=0.05)


def test_unlabelled_rows_help_where_classes_are_clusters():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1.0, size=(300, 2)) for c in (0.0, 4.0)])
    y = np.repeat([0, 1], 300)
    shown = np.r_[0:3, 300:303]
    few = np.full(600, -1)
    few[shown] = y[shown]
    alone = plain_classifier("likelihood").fit(X[shown], y[shown])
    for weight in ("auto", 1.0):
        model = plain_classifier(
            "likelihood", unlabelled_weight=weight, random_state=0
        ).fit(X, few)
        assert model.score(X, y) >= alone.score(X, y)
        assert model.score(X, y) > 0.98
    ignored = plain_classifier("likelihood", unlabelled_weight=0.0).fit(X, few)
    np.testing.assert_allclose(ignored.means_, alone.means_, atol=1e-6)
    for wrong in (-1.0, "half"):
        with pytest.raises(ValueError, match="unlabelled_weight"):
            plain_classifier(unlabelled_weight=wrong).fit(X, few)


def test_labelled_rows_as_they_are_when_nothing_couples_the_classes(iris):
    """Classes are fitted one by one: those of a pair do not depend on the third."""
    X, y = iris
    all_three = plain_classifier("likelihood", covariance_prior=0.0).fit(X, y)
    pair = plain_classifier("likelihood", covariance_prior=0.0).fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(all_three.means_[:2], pair.means_)
    np.testing.assert_allclose(all_three.covariances_[:2], pair.covariances_, rtol=1e-6)


def test_start_from_a_fitted_classifier(iris):
    X, y = iris
    first = plain_classifier("likelihood", n_components=2, random_state=0)
    first.fit(X, y)
    again = plain_classifier("likelihood", n_components=2, init=first).fit(X, y)
    np.testing.assert_allclose(again.means_, first.means_, rtol=0.05)


def test_init_must_belong_to_the_same_classes(iris):
    X, y = iris
    first = plain_classifier().fit(X, y)
    for other_y in (np.where(y == 2, 1, y), np.array(list("abc"))[y]):
        with pytest.raises(ValueError, match="other columns, categories, classes"):
            plain_classifier(init=first).fit(X, other_y)
    with pytest.raises(ValueError, match="other columns, categories, classes"):
        MixtureDensity(3, init=first, covariance_type="full", covariance_prior=1.0).fit(X)
    with pytest.raises(ValueError, match="init must be a method"):
        plain_classifier(init=X[:3]).fit(X, y)


def test_objective_is_checked(iris):
    with pytest.raises(ValueError, match="objective='width'"):
        plain_classifier("width").fit(*iris)


def test_number_of_labels_must_match(iris):
    with pytest.raises(ValueError, match="inconsistent"):
        plain_classifier().fit(iris[0], iris[1][:-1])


# Discriminative training ---------------------------------------------------------------


@pytest.mark.parametrize("objective", ["hybrid", "conditional", "margin"])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_discriminative_training_raises_its_objective(objective, kind, iris):
    X, y = punched(iris[0], 0.1), iris[1]
    generative = plain_classifier("likelihood", covariance_type=kind).fit(X, y)
    model = plain_classifier(objective, covariance_type=kind, n_steps=15).fit(X, y)
    assert model.trace_[-1] > model.trace_[0]
    assert model.score(X, y) >= generative.score(X, y)
    assert np.isfinite(model.score_samples(X)).all()


def test_hybrid_training_corrects_a_wrong_model():
    """Diagonal Gaussians cannot describe these classes, but can separate them better."""
    X, y = load_breast_cancer(return_X_y=True)
    options = {"covariance_type": "diag"}
    generative = plain_classifier("likelihood", **options)
    generative = cross_val_score(generative, X, y).mean()
    hybrid = cross_val_score(plain_classifier("hybrid", **options), X, y).mean()
    assert hybrid > generative + 0.01


def test_tradeoff_leads_from_the_likelihood_to_the_margin(iris):
    X, y = iris
    models = [
        plain_classifier("hybrid", tradeoff=tradeoff, covariance_type="diag").fit(X, y)
        for tradeoff in (0.0, 1.0, 100.0)
    ]
    densities = [
        np.mean(model.predict_joint_log_proba(X)[np.arange(150), y]) for model in models
    ]
    assert densities[0] > densities[1] > densities[2]
    generative = plain_classifier("likelihood", covariance_type="diag").fit(X, y)
    np.testing.assert_allclose(models[0].means_, generative.means_, rtol=1e-2)


def test_held_out_rows_choose_the_iterate():
    X, y = load_digits(return_X_y=True)
    model = plain_classifier(
        "hybrid",
        covariance_type="diag",
        validation_fraction=0.3,
        patience=3,
        random_state=0,
    ).fit(X[:600], y[:600])
    errors = model.history_["validation_error"]
    assert len(errors) == model.n_iter_ + 1
    assert len(errors) - 1 - np.argmin(errors) <= 3
    assert errors.min() < errors[0]


def test_held_out_rows_need_enough_labels(iris):
    few = np.r_[0:3, 50:53, 100:103]
    model = plain_classifier("hybrid", validation_fraction=0.2)
    with pytest.raises(ValueError, match="holds out no row"):
        model.fit(iris[0][few], iris[1][few])


def test_hybrid_training_with_unlabelled_rows_categories_and_weights():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=300) + y,
            "c": np.where(rng.random(300) < 0.2 + 0.5 * y, "a", "b"),
        }
    )
    few = np.where(rng.random(300) < 0.3, y, -1)
    model = plain_classifier("hybrid", n_components=2, random_state=0)
    model.fit(frame, few, sample_weight=rng.random(300) + 0.5)
    assert model.score(frame, y) > 0.7


@pytest.mark.parametrize("loss", ["hinge", "ramp", "scaled", "log"])
@pytest.mark.parametrize("solver", ["lbfgs", "baum-welch"])
def test_every_loss_by_every_solver(loss, solver, iris):
    X, y = punched(iris[0], 0.1), iris[1]
    model = plain_classifier(
        "hybrid", loss=loss, solver=solver, covariance_type="diag", n_steps=15
    ).fit(X, y)
    history = model.history_
    term = "conditional" if loss == "log" else "margin"
    assert set(history) == {"value", "likelihood", term, "training_error"}
    assert history[term][-1] > history[term][0]
    assert history["training_error"][-1] == pytest.approx(1.0 - model.score(X, y))
    np.testing.assert_array_equal(model.trace_, history["value"])


def test_the_likelihood_in_the_history_is_in_the_units_of_the_table(iris):
    X, y = iris[0] * 100.0, iris[1]
    model = plain_classifier("hybrid", n_steps=3).fit(X, y)
    log_joint = model.predict_joint_log_proba(X)[np.arange(150), y]
    assert model.history_["likelihood"][-1] == pytest.approx(log_joint.mean())


def test_losses_and_solvers_can_be_objects(iris):
    X, y = iris
    options = {"covariance_type": "diag", "margin": 2.0, "loss": "hinge"}
    named = plain_classifier("hybrid", n_steps=9, **options).fit(X, y)
    given = plain_classifier(
        "hybrid",
        loss=Margin(margin=2.0, width=1.0),
        solver=LimitedMemoryBFGS(max_iter=9, curvature=11.0),
        covariance_type="diag",
    ).fit(X, y)
    np.testing.assert_array_equal(given.means_, named.means_)
    published = plain_classifier(
        "margin",
        loss=ScaledMargin(power=0.1),
        solver=ExtendedBaumWelch(max_iter=20, monotone=False, factor=10.0),
        covariance_type="diag",
    ).fit(X, y)
    assert published.n_iter_ <= 20
    assert published.score(X, y) > 0.9


@pytest.mark.parametrize("objective", ["hybrid", "conditional", "margin"])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_columns_that_never_vary_say_nothing(objective, kind):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = np.column_stack([rng.normal(size=200) + y, np.zeros(200)])
    model = plain_classifier(objective, covariance_type=kind).fit(X, y)
    expected = model.predict_proba([[-3.0, 0.0], [4.0, 0.0]])
    np.testing.assert_array_equal(expected.argmax(axis=1), [0, 1])
    if kind != "spherical":  # whose one variance is that of both columns
        found = model.predict_proba([[-3.0, 1.0], [4.0, 1.0]])
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_wrong_labels_do_not_steer_the_ramp_loss():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 2)) + 2.0 * y[:, None]
    noisy = y.copy()
    noisy[:30] = 1  # wrong, and far on the other side
    X[:30] -= 6.0
    scores = {}
    for loss in ("hinge", "ramp"):
        model = plain_classifier(
            "margin", loss=loss, margin=1.0, covariance_type="spherical"
        ).fit(X, noisy)
        scores[loss] = model.score(X[30:], y[30:])
    assert scores["ramp"] > scores["hinge"]


def test_given_validation_rows_choose_the_iterate():
    X, y = load_digits(return_X_y=True)
    options = {"covariance_type": "diag", "patience": 3}
    model = plain_classifier("hybrid", **options)
    model.fit(X[:600], y[:600], X_val=X[600:900], y_val=y[600:900])
    errors = model.history_["validation_error"]
    assert errors.min() == pytest.approx(1.0 - model.score(X[600:900], y[600:900]))
    assert len(errors) - 1 - np.argmin(errors) <= 3
    unlabelled = np.where(np.arange(300) % 2, y[600:900], -1)
    again = plain_classifier("hybrid", **options).fit(
        X[:600], y[:600], X_val=X[600:900], y_val=unlabelled
    )
    known = unlabelled >= 0
    assert again.history_["validation_error"].min() == pytest.approx(
        1.0 - again.score(X[600:900][known], y[600:900][known])
    )
    impatient = plain_classifier("hybrid", generalisation_loss=0.0, **options)
    impatient.fit(X[:600], y[:600], X_val=X[600:900], y_val=y[600:900])
    assert impatient.n_iter_ <= model.n_iter_


@pytest.mark.parametrize(
    ("X_val", "y_val", "message"),
    [
        (None, [0], "must be passed together"),
        ([[5.0, 3.0, 1.0, 0.2]], [7], "label 7 in row 0"),
        ([[5.0, 3.0, 1.0, 0.2]], [-1], "y_val has no label"),
        ([[5.0, 3.0]], [0], "2 features"),
    ],
)
def test_wrong_validation_rows_are_named(X_val, y_val, message, iris):
    with pytest.raises(ValueError, match=message):
        plain_classifier("hybrid").fit(*iris, X_val=X_val, y_val=y_val)


def test_training_goes_on_from_a_fitted_model(iris):
    X, y = iris
    options = {"tradeoff": 30.0, "covariance_type": "diag"}
    short = plain_classifier("hybrid", n_steps=10, **options).fit(X, y)
    longer = plain_classifier("hybrid", n_steps=10, init=short, **options)
    longer.fit(X, y)
    assert longer.trace_[0] == pytest.approx(short.trace_[-1])
    assert longer.trace_[-1] > short.trace_[-1]


def test_calibration_lowers_the_log_loss_and_keeps_the_labels():
    X, y = load_digits(return_X_y=True)
    options = {"tradeoff": 100.0, "covariance_type": "diag", "random_state": 0}
    plain = plain_classifier("hybrid", **options).fit(X[:900], y[:900])
    calibrated = plain_classifier("hybrid", calibrate=True, **options)
    calibrated.fit(X[:900], y[:900])
    assert plain.temperature_ == 1.0
    assert calibrated.temperature_ > 1.5
    np.testing.assert_array_equal(plain.predict(X), calibrated.predict(X))
    np.testing.assert_array_equal(plain.score_samples(X), calibrated.score_samples(X))
    losses = [log_loss(y[900:], m.predict_proba(X[900:])) for m in (plain, calibrated)]
    assert losses[1] < 0.8 * losses[0]
    by_validation = plain_classifier("hybrid", calibrate=True, **options)
    by_validation.fit(X[:700], y[:700], X_val=X[700:900], y_val=y[700:900])
    assert by_validation.temperature_ > 1.5


def test_calibration_by_few_rows_stays_near_what_it_was():
    rng = np.random.default_rng(0)
    y = np.arange(220) % 2
    X = rng.normal(size=(220, 2)) + y[:, None]
    for seed in range(5):
        held = np.random.default_rng(seed).permutation(np.arange(200, 220))[:6]
        model = plain_classifier(calibrate=True)
        model.fit(X[:200], y[:200], X_val=X[held], y_val=y[held])
        assert 0.2 < model.temperature_ < 6.0


def test_a_single_label_per_class_is_enough_to_begin():
    """The variance within classes is then unknown, and must not be taken for zero."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 4)) + 4.0 * np.eye(3, 4)[y] * 2.0
    few = np.full(300, -1)
    few[:3] = y[:3]
    model = plain_classifier(random_state=0).fit(X, few)
    assert model.score(X, y) > 0.9


def test_going_on_from_a_model_obeys_the_options(iris):
    X, y = iris[0][:120], iris[1][:120]
    start = plain_classifier("likelihood").fit(X, y)
    for objective in ("likelihood", "hybrid"):
        model = plain_classifier(objective, init=start, class_prior="uniform")
        np.testing.assert_allclose(model.fit(X, y).class_prior_, 1.0 / 3.0)
    strong = plain_classifier("likelihood", init=start, covariance_prior=1e4)
    assert not np.allclose(strong.fit(X, y).covariances_, start.covariances_, rtol=0.1)


def test_calibration_needs_rows_to_hold_out(iris):
    few = [0, 50, 100]
    with pytest.raises(ValueError, match="two labelled rows"):
        plain_classifier(calibrate=True).fit(iris[0][few], iris[1][few])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "square"}, "loss='square'"),
        ({"loss": object()}, "lacks values_and_weights, needs_rivals, signed, parts of"),
        ({"loss": Margin}, "loss=Margin is a class"),
        ({"solver": object()}, "lacks solve of hybridmix.solvers.Solver"),
        ({"solver": "adam"}, "solver='adam'"),
        ({"generalisation_loss": -0.1}, "generalisation_loss=-0.1"),
        ({"objective": "margin", "loss": "log"}, "objective='conditional'"),
        ({"tradeoff": -1.0}, "tradeoff=-1.0"),
        ({"tradeoff": np.inf}, "tradeoff=inf"),
        ({"margin": 0.0}, "margin=0.0"),
        ({"margin": "wide"}, "margin='wide'"),
        ({"margin": "wide"}, "'wide' is neither a number nor 'auto'"),
        ({"margin": True}, "margin=True is not valid"),
        ({"n_steps": 0}, "n_steps=0"),
        ({"validation_fraction": 0.9}, "validation_fraction=0.9"),
        ({"patience": 0}, "patience=0"),
        ({"calibrate": "x"}, "calibrate='x' is not valid: it must be True or False"),
        ({"refine_subspace": 1.5}, "refine_subspace=1.5 is not valid"),
        ({"unlabelled": (1, 2)}, r"unlabelled=\(1, 2\) is not valid"),
        ({"unlabelled": np.arange(2)}, "unlabelled=.* is not valid"),
    ],
)
def test_wrong_options_of_discriminative_training_are_named(options, message, iris):
    with pytest.raises(ValueError, match=message):
        plain_classifier(**{"objective": "hybrid", **options}).fit(*iris)


# Imputer -------------------------------------------------------------------------------


def test_imputation_beats_the_mean():
    X = load_wine().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    holes = punched(X, 0.2)
    missing = np.isnan(holes)
    filled = MixtureImputer(
        random_state=0,
        n_components=(1, 2, 4, 8),
        covariance_type="full",
        covariance_prior=1.0,
    ).fit_transform(holes)
    np.testing.assert_array_equal(filled[~missing], X[~missing])
    ours = np.sqrt(np.mean((filled - X)[missing] ** 2))
    means = np.broadcast_to(np.nanmean(holes, axis=0), X.shape)
    theirs = np.sqrt(np.mean((means - X)[missing] ** 2))
    assert ours < 0.8 * theirs


def test_multiple_imputation_covers_the_truth():
    """Intervals from the draws hold the hidden values about as often as they claim."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0, 0], 0.7 * np.ones((3, 3)) + 0.3 * np.eye(3), 600)
    holes = punched(X, 0.2)
    missing = np.isnan(holes)
    imputer = MixtureImputer(
        1, n_draws=40, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(holes)
    tables = np.array(imputer.draw(holes))
    assert tables.shape == (40, 600, 3)
    low, high = np.quantile(tables, [0.05, 0.95], axis=0)
    covered = np.mean(((low <= X) & (high >= X))[missing])
    assert 0.82 < covered < 0.96
    mean = imputer.transform(holes)
    np.testing.assert_allclose(tables.mean(axis=0)[missing], mean[missing], atol=0.6)
    np.testing.assert_array_equal(imputer.draw(holes)[3], tables[3])
    assert not np.array_equal(tables[0][missing], tables[1][missing])


def test_models_behind_the_draws_differ():
    X = punched(load_iris().data, 0.2)
    imputer = MixtureImputer(
        1, n_draws=3, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    means = np.array([model.components.means for model in imputer.draw_models_])
    assert np.ptp(means, axis=0).max() > 0.01


def test_draw_needs_n_draws(iris):
    with pytest.raises(ValueError, match="n_draws"):
        MixtureImputer(
            n_components=(1, 2, 4, 8), covariance_type="full", covariance_prior=1.0
        ).fit(iris[0]).draw(iris[0])
    with pytest.raises(ValueError, match="n_draws=0"):
        MixtureImputer(
            n_draws=0,
            n_components=(1, 2, 4, 8),
            covariance_type="full",
            covariance_prior=1.0,
        ).fit(iris[0])


@pytest.mark.parametrize("container", ["pandas", "polars", "default"])
@pytest.mark.parametrize("as_frame", [True, False])
def test_set_output(container, as_frame):
    data = load_iris(as_frame=True).data
    data.iloc[3, 1] = np.nan
    imputer = MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).set_output(transform=container)
    result = imputer.fit_transform(data if as_frame else data.to_numpy())
    if container != "default":
        assert type(result).__module__.split(".")[0] == container
        assert list(result.columns) == list(imputer.get_feature_names_out())
    assert not np.isnan(np.asarray(result)).any()


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_with_categories(container):
    frame = pd.DataFrame(
        {"x": [1.0, np.nan, 3.0, 4.0], "c": pd.Categorical(["a", "b", None, "b"])}
    )
    imputer = MixtureImputer(1, covariance_type="full", covariance_prior=1.0).set_output(
        transform=container
    )
    result = imputer.fit_transform(frame)
    assert list(result["c"]) == ["a", "b", imputer.transform(frame)["c"][2], "b"]
    if container == "pandas":
        assert result["c"].dtype == frame["c"].dtype


# Outliers ------------------------------------------------------------------------------


def outlier_table(seed=0, n_rows=500, n_outliers=25):
    rng = np.random.default_rng(seed)
    factor = np.tril(rng.normal(size=(6, 6)))
    X = rng.normal(size=(n_rows, 6)) @ factor.T
    X[:n_outliers] = rng.normal(size=(n_outliers, 6)) * np.diag(factor @ factor.T) ** 0.5
    y = np.r_[np.full(n_outliers, -1), np.ones(n_rows - n_outliers, int)]
    return X, y


def test_contamination_is_met():
    X, _ = outlier_table()
    detector = MixtureOutlierDetector(
        1, contamination=0.1, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    assert np.mean(detector.predict(X) == -1) == pytest.approx(0.1, abs=0.003)
    weights = np.r_[np.full(250, 3.0), np.ones(250)]
    weighted = MixtureOutlierDetector(
        1, contamination=0.1, covariance_type="full", covariance_prior=1.0
    ).fit(X, sample_weight=weights)
    flagged = weighted.predict(X) == -1
    assert weights[flagged].sum() / weights.sum() == pytest.approx(0.1, abs=0.01)


def test_scores_are_calibrated_whatever_is_observed():
    """One row in a hundred of the model itself is flagged, with or without holes."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(np.zeros(5), 0.6 + 0.4 * np.eye(5), size=20_000)
    detector = MixtureOutlierDetector(
        1, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    for share in (0.0, 0.3, 0.7):
        scores = detector.score_samples(punched(X, share))
        has_values = ~np.isnan(punched(X, share)).all(axis=1)
        for level in (0.01, 0.1):
            flagged = np.mean(scores[has_values] < np.log(level))
            assert flagged == pytest.approx(level, rel=0.15)


def test_scores_order_complete_rows_by_density():
    X, _ = outlier_table()
    detector = MixtureOutlierDetector(
        3, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    density = MixtureDensity(
        3, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    order = np.argsort(density.score_samples(X))
    assert np.all(np.diff(detector.score_samples(X)[order]) >= 0)


def test_scores_of_a_mixture_are_calibrated():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(9000, 3)), rng.normal(8.0, 0.1, size=(1000, 3))])
    scores = (
        MixtureOutlierDetector(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        )
        .fit(X)
        .score_samples(punched(X, 0.2))
    )
    for level in (0.01, 0.1):
        assert np.mean(scores < np.log(level)) == pytest.approx(level, rel=0.2)


def test_a_small_cluster_of_anomalies_is_found():
    """They have a component of their own, but a thin one."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(950, 2)), rng.normal(6.0, 3.0, size=(50, 2))])
    scores = (
        MixtureOutlierDetector(
            2, random_state=0, covariance_type="full", covariance_prior=1.0
        )
        .fit(X)
        .score_samples(X)
    )
    assert roc_auc_score(np.r_[np.zeros(950), np.ones(50)], -scores) > 0.95


def test_scores_are_calibrated_with_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(4, size=(5000, 6))).astype(str)
    frame.columns = list("abcdef")
    frame["x"] = rng.normal(size=5000)
    scores = (
        MixtureOutlierDetector(1, covariance_type="full", covariance_prior=1.0)
        .fit(frame)
        .score_samples(frame)
    )
    assert np.mean(scores < np.log(0.05)) == pytest.approx(0.05, abs=0.02)


def test_uniform_categories_are_no_trouble():
    X = np.array([["a"], ["b"]] * 50, dtype=object)
    scores = (
        MixtureOutlierDetector(1, covariance_type="full", covariance_prior=1.0)
        .fit(X)
        .score_samples(X)
    )
    assert np.isfinite(scores).all()
    assert (scores > np.log(0.3)).all()


def test_far_rows_keep_their_order():
    X, _ = outlier_table()
    detector = MixtureOutlierDetector(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    far = np.zeros((4, 6))
    far[:, 0] = [1e2, 1e4, 1e8, 1e16]
    scores = detector.score_samples(far)
    assert np.isfinite(scores).all()
    assert np.all(np.diff(scores) < 0)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_thresholds_from_labelled_anomalies(share):
    X, y = outlier_table(n_rows=800, n_outliers=80)
    X = punched(X, share)
    by_f1 = MixtureOutlierDetector(
        1, threshold="f1", random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X, y)
    guessed = MixtureOutlierDetector(
        1, contamination=0.4, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit(X)
    is_anomaly = y == -1
    f1 = f1_score(is_anomaly, by_f1.predict(X) == -1)
    assert f1 > f1_score(is_anomaly, guessed.predict(X) == -1)
    by_fpr = MixtureOutlierDetector(
        1, threshold="fpr", target=0.02, covariance_type="full", covariance_prior=1.0
    ).fit(X, y)
    assert np.mean(by_fpr.predict(X)[~is_anomaly] == -1) < 0.04
    by_recall = MixtureOutlierDetector(
        1, threshold="recall", target=0.9, covariance_type="full", covariance_prior=1.0
    ).fit(X, y)
    assert np.mean(by_recall.predict(X)[is_anomaly] == -1) > 0.85
    curve = by_f1.precision_recall_curve_
    assert len(curve["precision"]) == len(curve["recall"])
    area = auc(by_f1.roc_curve_["fpr"], by_f1.roc_curve_["tpr"])
    assert area == pytest.approx(
        roc_auc_score(is_anomaly, -by_f1.score_samples(X)), abs=0.05
    )


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"threshold": "f1"}, None, "needs y"),
        ({"threshold": "f1"}, [0, 1] * 10, "must hold -1"),
        ({"threshold": "f1"}, [-1] + [1] * 19, "Lower cv"),
        ({"threshold": "best"}, None, "threshold='best' is not one of"),
        ({"contamination": 0.9}, None, "contamination=0.9"),
        ({"contamination": "some"}, None, "neither a number nor 'auto'"),
        ({"target": 2.0}, None, "target=2.0"),
        ({"threshold": "f1", "cv": 0}, [-1, 1] * 10, "cv=0 is not valid"),
        ({"threshold": "f1", "cv": True}, [-1, 1] * 10, "cv=True is not valid"),
        ({"cv": "five"}, None, "cv='five' is not valid"),
    ],
)
def test_wrong_threshold_options_are_named(options, y, message):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=message):
        MixtureOutlierDetector(**options).fit(X, y)


# scikit-learn around them --------------------------------------------------------------


def test_pipeline_grid_search_clone_and_pickle(iris):
    X, y = punched(iris[0], 0.1), iris[1]
    pipeline = make_pipeline(
        MixtureImputer(2, random_state=0, covariance_type="full", covariance_prior=1.0),
        StandardScaler(),
        LogisticRegression(),
    )
    assert cross_val_score(pipeline, X, y).mean() > 0.9
    search = GridSearchCV(
        plain_classifier(random_state=0),
        {"covariance_type": ["full", "tied"], "n_components": [1, 2]},
        n_jobs=2,
    ).fit(X, y)
    assert search.best_score_ > 0.9
    model = search.best_estimator_
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == model.get_params()


def test_metadata_routing(iris):
    X, y = iris
    weights = np.linspace(0.5, 2.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = plain_classifier().set_fit_request(sample_weight=True)
        scores = cross_val_score(
            model.set_score_request(sample_weight=True),
            X,
            y,
            params={"sample_weight": weights},
        )
    assert scores.mean() > 0.9


def test_arguments_are_left_as_they_are(iris):
    candidates = range(1, 4)
    model = plain_classifier(n_components=candidates, random_state=0)
    model.fit(*iris)
    assert model.n_components is candidates
    X = punched(iris[0], 0.2)
    before = X.copy()
    MixtureImputer(
        2, random_state=0, covariance_type="full", covariance_prior=1.0
    ).fit_transform(X)
    np.testing.assert_array_equal(X, before)


def test_same_seed_same_model(iris):
    options = {"n_components": 3, "n_init": 2, "random_state": 7}
    one, other = (MixtureDensity(**options).fit(punched(iris[0], 0.2)) for _ in range(2))
    np.testing.assert_array_equal(one.means_, other.means_)


def test_html_repr_and_tags(iris):
    model = plain_classifier().fit(*iris)
    assert "HybridMixtureClassifier" in model._repr_html_()
    tags = model.__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical


def test_digits_with_constant_pixels_and_holes():
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 700), slice(700, 1200)
    model = plain_classifier(covariance_type="tied").fit(punched(X, 0.2)[train], y[train])
    assert model.score(punched(X, 0.2, seed=1)[test], y[test]) > 0.8
