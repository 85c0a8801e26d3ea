"""Learning from streams: `partial_fit` converges, follows, refuses and goes on."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from hybridmix import (
    HybridMixtureClassifier,
    MEDClassifier,
    MixtureDensity,
    MixtureOutlierDetector,
    MixtureRegressor,
    load,
    report,
    save,
)
from hybridmix.metrics import drift_score
from hybridmix.solvers import Memory

MEANS = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 1.0], [0.0, 4.0, 3.0]])


def source(n_rows, seed=0, shift=0.0, holes=0.0):
    rng = np.random.default_rng(seed)
    component = rng.choice(3, n_rows, p=[0.5, 0.3, 0.2])
    X = MEANS[component] + shift + rng.normal(size=(n_rows, 3))
    X[rng.random(X.shape) < holes] = np.nan
    return X, component


def mixed_frame(n_rows, seed=0):
    X, component = source(n_rows, seed, holes=0.1)
    rng = np.random.default_rng([seed, 1])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    colours = np.array(["red", "green", "blue"], dtype=object)
    frame["colour"] = np.where(
        rng.random(n_rows) < 0.8,
        colours[component],
        colours[rng.integers(3, size=n_rows)],
    )
    frame.loc[rng.random(n_rows) < 0.1, "colour"] = None
    return frame, component


def fed(estimator, X, *y, size=1000, n_passes=1, **options):
    for _ in range(n_passes):
        for first in range(0, len(X), size):
            part = slice(first, first + size)
            estimator.partial_fit(X[part], *(values[part] for values in y), **options)
    return estimator


def density(**options):
    return MixtureDensity(3, random_state=0, **options)


def generative(**options):
    return HybridMixtureClassifier("likelihood", random_state=0, **options)


# Convergence ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "subspace"])
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_two_passes_come_near_the_batch_optimum(kind, holes):
    X, _ = source(10_000, holes=holes)
    options = {"covariance_type": kind, "column_shapes": "plain"}
    streamed = fed(density(**options), X, n_passes=2)
    best = density(**options, tol=1e-6, init=streamed).fit(X)
    assert streamed.score(X) > best.score(X) - 0.01
    assert streamed.n_iter_ == 20


def test_mixed_columns_come_near_the_batch_optimum():
    frame, _ = mixed_frame(8000)
    streamed = fed(density(covariance_type="full"), frame, n_passes=2)
    best = density(covariance_type="full", tol=1e-6, init=streamed).fit(frame)
    assert streamed.score(frame) > best.score(frame) - 0.01
    assert len(streamed.category_probabilities_) == 1


def test_one_component_without_forgetting_counts_all_rows_alike():
    X, _ = source(3000)
    model = MixtureDensity(
        1, covariance_type="diag", covariance_prior=0.0, forgetting=0.0, random_state=0
    )
    fed(model, X, size=700)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(model.covariances_[0], X.var(axis=0), rtol=1e-10)


def test_small_batches_and_single_rows():
    X, _ = source(600)
    model = density(covariance_type="diag").partial_fit(X[:200])
    fed(model, X[200:400], size=1)
    fed(model, X[400:], size=7)
    assert np.isfinite(model.score(X))
    assert model.stream_.seen == pytest.approx(600.0)


def test_classes_and_unlabelled_rows():
    X, y = source(9000, holes=0.1)
    known = np.where(np.arange(9000) % 3 == 0, y, -1)
    streamed = fed(generative(), X, known, classes=[0, 1, 2], n_passes=2)
    batch = generative(n_components=1, covariance_type="full").fit(X, known)
    assert streamed.score(X, y) > batch.score(X, y) - 0.005
    assert streamed.unlabelled_weight_ == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(streamed.class_prior_, [0.5, 0.3, 0.2], atol=0.05)


def test_regression_comes_near_the_batch_optimum():
    X, _ = source(8000, holes=0.1)
    y = np.where(np.isnan(X[:, 2]), np.nan, X[:, 2] + 0.5)
    options = {"n_components": 3, "covariance_type": "full", "random_state": 0}
    streamed = fed(MixtureRegressor(**options), X[:, :2], y, n_passes=2)
    batch = MixtureRegressor(tradeoff=0.0, **options).fit(X[:, :2], y)
    known = ~np.isnan(y)
    found, wanted = (m.score(X[known, :2], y[known]) for m in (streamed, batch))
    assert found > wanted - 0.005
    assert streamed.predict_interval(X[:5, :2]).shape == (5, 2)


def test_regression_of_several_targets():
    X, y = load_diabetes(return_X_y=True)
    targets = np.column_stack([y, X[:, 0]])
    model = MixtureRegressor(1, random_state=0)
    fed(model, X[:, 1:], targets, size=150)
    assert model.predict(X[:4, 1:]).shape == (4, 2)


# Drift ----------------------------------------------------------------------------------


def test_forgetting_follows_a_drifting_source():
    steady = density(covariance_type="full")
    following = density(covariance_type="full", forgetting=1e-3)
    for number in range(30):
        X, _ = source(500, seed=number, shift=0.1 * number)
        steady.partial_fit(X)
        following.partial_fit(X)
    X, _ = source(5000, seed=99, shift=2.9)
    true = density(covariance_type="full").fit(X)
    assert following.score(X) > true.score(X) - 0.1
    assert following.score(X) > steady.score(X) + 0.1
    assert following.stream_.weight == pytest.approx(1000.0, rel=0.3)


def test_collapsed_components_start_anew():
    """One component follows none of the rows that come; it is put to better use."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-20.0, 1.0, (200, 1)), rng.normal(20.0, 1.0, (200, 1))]
    model = MixtureDensity(
        2, covariance_type="diag", forgetting=0.05, column_shapes="plain", random_state=0
    ).partial_fit(X)
    for _ in range(10):
        moved = np.r_[rng.normal(18.0, 1.0, 300), rng.normal(26.0, 1.0, 100)]
        model.partial_fit(rng.permutation(moved)[:, None])
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), [18.0, 26.0], atol=0.5)


@pytest.mark.parametrize("has_reference", [False, True])
def test_drift_scores_are_uniform_without_drift(has_reference):
    model = density(covariance_type="full").fit(source(100_000, holes=0.2)[0])
    reference = source(5000, seed=1, holes=0.2)[0] if has_reference else None
    found = [
        drift_score(model, source(200, seed=10 + k, holes=0.2)[0], reference, k).p_value
        for k in range(100)
    ]
    assert kstest(found, "uniform").pvalue > 0.01


@pytest.mark.parametrize(
    "change", [lambda X: X + 0.7, lambda X: 1.4 * X, lambda X: 0.6 * X]
)
def test_drift_is_noticed(change):
    model = density(covariance_type="full").fit(source(10_000)[0])
    X, _ = source(1000, seed=1, holes=0.1)
    assert drift_score(model, change(X), random_state=0).p_value < 1e-3


def test_drift_of_mixed_tables():
    frame, component = mixed_frame(5000)
    model = density(covariance_type="full").fit(frame)
    again, _ = mixed_frame(500, seed=1)
    assert drift_score(model, again, random_state=0).p_value > 0.01
    shuffled = again.assign(
        colour=again["colour"].sample(frac=1.0, random_state=0).values
    )
    found = drift_score(model, shuffled, random_state=0)
    assert found.p_value < 1e-3
    assert found.rare_share > 0.01
    classifier = generative(n_components=1, covariance_type="full").fit(frame, component)
    assert drift_score(classifier, again, random_state=0).n_rows == 500


# What may come --------------------------------------------------------------------------


def test_a_class_may_begin_later():
    X, y = source(3000)
    order = np.argsort(y == 2, kind="stable")
    X, y = X[order], y[order]
    model = generative(n_components=2, covariance_type="full")
    model.partial_fit(X[:500], y[:500], classes=[0, 1, 2])
    assert model.class_prior_[2] < 1e-100
    assert set(model.predict(X[y == 2])) <= {0, 1}
    fed(model, X[500:], y[500:], size=500)
    assert model.score(X, y) > 0.9
    np.testing.assert_array_equal(model.n_components_, [2, 2, 2])
    model.check_consistent()


def test_given_class_priors_stay():
    X, y = source(2000)
    model = generative(class_prior=[0.2, 0.2, 0.6])
    fed(model, X, y, classes=[0, 1, 2])
    np.testing.assert_allclose(model.class_prior_, [0.2, 0.2, 0.6])
    absent = generative(class_prior="uniform")
    absent.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    np.testing.assert_allclose(absent.class_prior_, 1.0 / 3.0)


def test_labels_may_be_text():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    order = np.random.default_rng(0).permutation(len(X))
    model = generative()
    fed(model, X[order], names[order], size=50, classes=np.unique(names))
    assert model.score(X, names) > 0.93


def test_weights_are_rows():
    X, _ = source(1200)
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    weighted, repeated = (
        MixtureDensity(1, covariance_type="full", random_state=0) for _ in range(2)
    )
    for first in range(0, len(X), 400):
        part = slice(first, first + 400)
        weighted.partial_fit(X[part], sample_weight=weights[part])
        repeated.partial_fit(np.repeat(X[part], weights[part], axis=0))
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-8)
    assert weighted.stream_.seen == pytest.approx(weights.sum())


def test_results_do_not_depend_on_threads():
    X, _ = source(40_000, holes=0.1)
    one, two = (
        fed(density(covariance_type="full", n_jobs=n), X, size=20_000) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.means_, two.means_)
    np.testing.assert_array_equal(one.covariances_, two.covariances_)


def test_sorted_batches_are_dealt_out():
    X, y = source(8000)
    model = density(covariance_type="full").partial_fit(X[:500])
    model.partial_fit(X[np.argsort(y, kind="stable")])
    np.testing.assert_allclose(np.sort(model.mixing_), [0.2, 0.3, 0.5], atol=0.03)


# Life of a model ------------------------------------------------------------------------


def everything():
    X, y = source(900, holes=0.05)
    return {
        "density": (density(covariance_type="full"), (X,), {}),
        "automatic": (MixtureDensity(random_state=0), (X,), {}),
        "classifier": (generative(), (X, y), {"classes": [0, 1, 2]}),
        "detector": (MixtureOutlierDetector(2, random_state=0), (X,), {}),
        "share": (MixtureOutlierDetector(2, contamination=0.1, random_state=0), (X,), {}),
        "regressor": (MixtureRegressor(2, random_state=0), (X[:, :2], X[:, 2]), {}),
    }


@pytest.mark.parametrize("name", everything())
def test_saved_models_go_on(name, tmp_path):
    model, data, options = everything()[name]
    fed(model, *data, size=300, **options)
    save(model, tmp_path / "model.hybridmix")
    again = load(tmp_path / "model.hybridmix")
    pickled = pickle.loads(pickle.dumps(model))
    for one in (model, again, pickled):
        one.partial_fit(*data)
    X = data[0]
    np.testing.assert_array_equal(model.score_samples(X), again.score_samples(X))
    np.testing.assert_array_equal(model.score_samples(X), pickled.score_samples(X))
    assert again.n_iter_ == 4
    assert len(again.trace_) == 4


@pytest.mark.parametrize("name", everything())
def test_fit_starts_anew(name):
    model, data, options = everything()[name]
    fed(model, *data, size=300, **options)
    model.set_params(effort="fast").fit(*data)
    fresh = clone(model).fit(*data)
    assert not hasattr(model, "stream_")
    np.testing.assert_array_equal(
        model.score_samples(data[0]), fresh.score_samples(data[0])
    )


@pytest.mark.parametrize("name", ["density", "classifier", "detector", "regressor"])
def test_fitted_models_go_on(name):
    model, data, _ = everything()[name]
    if name == "classifier":
        model.set_params(n_components=1, covariance_type="full")
    elif name == "regressor":
        model.set_params(tradeoff=0.0, covariance_type="full", n_starts=1)
    model.fit(*data)
    before = model.score_samples(data[0]).mean()
    model.partial_fit(*data)
    assert model.score_samples(data[0]).mean() > before - 0.05
    assert model.stream_.seen == pytest.approx(1800.0)


def test_one_model_of_several_goes_on():
    X, y = source(900)
    committee = generative().fit(X, y)
    assert len(committee.members_) > 1
    committee.partial_fit(X, y)
    assert not hasattr(committee, "members_")
    assert committee.score(X, y) > 0.9
    average = MixtureRegressor(2, tradeoff=0.0, n_starts=3, random_state=0)
    average.fit(X[:, :2], X[:, 2])
    average.set_params(n_starts=1).partial_fit(X[:, :2], X[:, 2])
    assert len(average.predictive_.members) == 1


def test_streamed_models_do_everything(tmp_path):
    frame, y = mixed_frame(900)
    model = density()
    fed(model, frame, size=300)
    assert not model.impute(frame).isna().any().any()
    assert model.sample(5)[0].shape == (5, 4)
    assert model.marginal(["a", "colour"]).score(frame[["a", "colour"]]) < 0.0
    assert np.all(model.typicality(frame) <= 0.0)
    classifier = generative()
    fed(classifier, frame, y, size=300, classes=[0, 1, 2])
    path = tmp_path / "report.html"
    report(classifier, frame[:60], y[:60]).save(path)
    assert "3 batches" in path.read_text(encoding="utf-8")


def test_trace_is_that_of_rows_to_come():
    X, _ = source(3000)
    model = density(covariance_type="full", column_shapes="plain").partial_fit(X[:1000])
    expected = model.score(X[1000:1900])
    model.partial_fit(X[1000:1900])
    assert model.trace_[-1] == pytest.approx(expected)


def test_detector_flags_the_share():
    X, _ = source(8000)
    detector = fed(MixtureOutlierDetector(3, contamination=0.05, random_state=0), X)
    assert np.mean(detector.predict(X) == -1) == pytest.approx(0.05, abs=0.01)


def test_a_schema_may_be_given():
    frame, _ = mixed_frame(2000)
    known = MixtureDensity(1, covariance_type="diag").fit(frame)
    few = frame[frame["colour"] != "red"]
    model = density(covariance_type="diag")
    model.partial_fit(few[:500], schema=known.schema_)
    model.partial_fit(frame)
    assert model.schema_ is known.schema_


# Refusals -------------------------------------------------------------------------------


def test_batches_must_have_the_same_columns():
    X, _ = source(300)
    model = density().partial_fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="2 features, but MixtureDensity is expecting 3"):
        model.partial_fit(X[:, :2])
    frame, _ = mixed_frame(300)
    named = density().partial_fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        named.partial_fit(frame.rename(columns={"a": "z"}))
    assert vars(model) == before


def test_unknown_categories_are_refused():
    frame, _ = mixed_frame(300)
    model = density().partial_fit(frame)
    frame.loc[3, "colour"] = "mauve"
    with pytest.raises(ValueError, match=r"'mauve' in .*colour.*Begin with rows"):
        model.partial_fit(frame)


def test_unknown_classes_are_refused():
    X, y = source(300)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        generative().partial_fit(X, y)
    with pytest.raises(ValueError, match="label 2 in row"):
        generative().partial_fit(X, y, classes=[0, 1])
    model = generative().partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="not those of the calls before"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="label 7 in row 0"):
        model.partial_fit(X, np.full(300, 7))
    with pytest.raises(ValueError, match="no row with a label"):
        generative().partial_fit(X, np.full(300, -1), classes=[0, 1, 2])


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (HybridMixtureClassifier(), "objective='likelihood'"),
        (generative(calibrate=True), "calibrate=True"),
        (generative(class_weight="balanced"), "class_weight='balanced'"),
        (MixtureRegressor(tradeoff=1.0), "tradeoff=0"),
        (MixtureRegressor(calibrate=True), "calibrate=True"),
        (MixtureRegressor(n_starts=3), "n_starts=3"),
        (MixtureOutlierDetector(threshold="f1"), "threshold='contamination'"),
    ],
)
def test_what_needs_all_rows_has_no_partial_fit(estimator, reason):
    assert not hasattr(estimator, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        estimator.partial_fit([[1.0]], [1])
    assert reason in str(caught.value.__cause__)


@pytest.mark.parametrize("forgetting", [-0.1, 1.5, "often", np.nan])
def test_forgetting_is_checked(forgetting):
    with pytest.raises(ValueError, match="forgetting"):
        density(forgetting=forgetting).partial_fit(source(50)[0])


def test_schemas_are_checked():
    X, _ = source(300)
    other = MixtureDensity(1, covariance_type="diag").fit(X[:, :2])
    with pytest.raises(ValueError, match="schema has the 2 columns"):
        density().partial_fit(X, schema=other.schema_)
    with pytest.raises(TypeError, match="must be a Schema"):
        density().partial_fit(X, schema="plain")
    model = density().partial_fit(X)
    with pytest.raises(ValueError, match="first call of partial_fit only"):
        model.partial_fit(X, schema=other.schema_)
    with pytest.raises(ValueError, match="does not know how many rows"):
        model.marginal([0, 1]).partial_fit(X[:, :2])


def test_memories_are_checked():
    model = density(covariance_type="full").partial_fit(source(300)[0])
    other = MixtureDensity(2, covariance_type="full").partial_fit(source(300)[0])
    model.stream_ = other.stream_
    with pytest.raises(ValueError, match="counts does not have the shape"):
        model.check_consistent()
    other.stream_.statistics.counts[0] *= -1.0
    with pytest.raises(ValueError, match="counts that are negative"):
        other.check_consistent()
    other.stream_.statistics.counts[0] *= -1.0
    with pytest.raises(ValueError, match="weight of the statistics"):
        Memory(other.stream_.statistics, 0.0, 1.0, 1.0, 0.0).check_consistent()


def test_unfitted_models_have_no_drift():
    with pytest.raises(NotFittedError):
        drift_score(density(), source(50)[0])


def test_whole_tables_are_refused(tmp_path):
    for estimator, y in (
        (MixtureDensity(1), ()),
        (HybridMixtureClassifier("likelihood"), ("y",)),
        (MixtureRegressor(1), ("y",)),
    ):
        with pytest.raises(TypeError, match="Pass one batch after the other"):
            estimator.partial_fit(tmp_path, *y)


def test_drift_needs_a_density():
    X = np.arange(20.0).reshape(10, 2) % 7
    model = MEDClassifier().fit(X, np.arange(10) % 2)
    with pytest.raises(TypeError, match="MEDClassifier has no density of rows"):
        drift_score(model, X)


def test_classes_of_two_kinds_are_refused():
    with pytest.raises(TypeError, match="text"):
        HybridMixtureClassifier("likelihood").partial_fit(
            np.zeros((2, 1)), ["a", "b"], classes=["a", 1]
        )


def test_rows_without_any_value_are_silent(capfd):
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = MixtureDensity(1, covariance_type="full").partial_fit(X)
    before = model.means_.copy()
    np.testing.assert_allclose(model.partial_fit(np.full((5, 2), np.nan)).means_, before)
    assert capfd.readouterr() == ("", "")
