"""Classifiers that choose their structure by themselves, and vote."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from model_files import array_of, refused, set_array
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit
from sklearn.utils.class_weight import compute_sample_weight

import hybridmix
from hybridmix import HybridMixtureClassifier
from hybridmix._parallel import Workers
from hybridmix.data import Dataset
from hybridmix.data.columns import read_columns
from hybridmix.data.rows import Rows
from hybridmix.estimators.chosen import described_members
from hybridmix.estimators.components import Marginal
from hybridmix.evaluation import log_joint
from hybridmix.exceptions import UnsupportedError
from hybridmix.models import Mixture
from hybridmix.models.committee import Committee
from hybridmix.training import affordable
from hybridmix.training import committee as committee_module
from hybridmix.training import plan as plan_module
from hybridmix.training.budget import Budget
from hybridmix.training.covariances import covariance_type_of
from hybridmix.training.run import ClassifierRun
from hybridmix.training.selftraining import with_pseudo_labels
from hybridmix.training.trials import Search
from hybridmix.training.votes import fitted_shares


def with_holes(X, share=0.2, seed=0):
    X = np.array(X, dtype=float)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def crossed(n_rows=120, seed=0):
    """Two classes along the two diagonals: one Gaussian each, of opposite slopes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = rng.normal(size=(n_rows, 2))
    X[:, 1] = np.where(y, 1, -1) * X[:, 0] + 0.3 * X[:, 1]
    return X, y


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return with_holes(X), y


@pytest.fixture(scope="module")
def model(iris):
    fitted = HybridMixtureClassifier(random_state=0).fit(*iris)
    assert len(fitted.committee_.members) > 1
    return fitted


def corrected(log_joint, temperature, uniform_share):
    """Return calibrated class probabilities (n, C), straight from the formula."""
    posterior = softmax(log_joint / temperature, axis=1)
    return (1.0 - uniform_share) * posterior + uniform_share / posterior.shape[1]


def voted(model, X):
    """Return the class probabilities of a committee, member by member."""
    committee = model.committee_
    votes = [
        share * corrected(member.predict_joint_log_proba(X), temperature, uniform_share)
        for member, share, temperature, uniform_share in zip(
            [replaced(model, member) for member in committee.members],
            committee.shares,
            committee.temperatures,
            committee.uniform_shares,
            strict=True,
        )
    ]
    mean = sum(votes)
    return corrected(np.log(mean), model.temperature_, model.uniform_share_)


def replaced(model, mixture):
    """Return a plain classifier of the same classes and columns around a mixture."""
    single = clone(model)
    learned = {k: v for k, v in vars(model).items() if k.endswith("_")}
    for name in ("committee_", "members_", "leaderboard_"):
        learned.pop(name, None)
    vars(single).update(learned, model_=mixture)
    return single


# What it predicts -----------------------------------------------------------------------


def test_probabilities_are_the_weighted_mean_of_the_members(model, iris):
    X, _ = iris
    complete = load_iris().data
    nothing = np.full((1, 4), np.nan)
    for table in (X, complete, nothing, 1e3 * complete[:3]):
        found = model.predict_proba(table)
        np.testing.assert_allclose(found, voted(model, table), atol=1e-12)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(table)), found)


def test_members_are_classifiers_with_explicit_options(model, iris):
    X, y = iris
    committee = model.committee_
    for member, mixture, temperature in zip(
        model.members_, committee.members, committee.temperatures, strict=True
    ):
        assert member.model_ is mixture
        assert member.temperature_ == temperature
        assert not hasattr(member, "committee_")
        assert "auto" not in (
            member.covariance_type,
            member.n_components,
            member.tradeoff,
            member.calibrate,
        )
        np.testing.assert_allclose(
            member.predict_proba(X),
            corrected(
                member.predict_joint_log_proba(X),
                member.temperature_,
                member.uniform_share_,
            ),
        )
        again = plain_classifier(init=member, n_steps=2, column_shapes="auto")
        assert clone(member).set_params(init="kmeans").fit(X, y).score(X, y) > 0.85
        again.set_params(covariance_type=member.covariance_type)
        assert again.fit(X, y).score(X, y) > 0.85


def test_the_density_is_that_of_the_model(model, iris):
    X, _ = iris
    density = replaced(model, model.model_)
    np.testing.assert_array_equal(model.score_samples(X), density.score_samples(X))
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(
        np.logaddexp.reduce(joint, axis=1), model.score_samples(X), atol=1e-10
    )
    # The joint density is p(x) times the mean of the votes before the last calibration.
    np.testing.assert_allclose(
        corrected(joint, model.temperature_, model.uniform_share_),
        model.predict_proba(X),
        atol=1e-12,
    )
    np.testing.assert_array_equal(model.means_, density.means_)
    np.testing.assert_allclose(model.impute(X), density.impute(X))
    assert model.component_classes_.tolist() == model.model_.class_of.tolist()
    assert len(model.mixing_) == len(model.means_) == model.model_.n_components


def test_the_most_probable_class_is_predicted(model, iris):
    X, y = iris
    best = model.predict_proba(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[best])
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("columns", [[0], [2, 3], [3, 0, 1]])
def test_marginals_vote_by_the_marginals_of_the_members(columns, model):
    X = load_iris().data
    hidden = np.full_like(X, np.nan)
    hidden[:, columns] = X[:, columns]
    expected = model.predict_joint_log_proba(hidden)
    order = np.sort(columns)
    marginal = Marginal.of(model, order.tolist())
    found = marginal.log_joint(X[:, order], np.empty((len(X), 0), np.int32))
    np.testing.assert_allclose(found.T, expected, atol=1e-8)
    np.testing.assert_allclose(
        model.predict_proba(hidden), voted(model, hidden), atol=1e-12
    )


def test_a_committee_is_the_sum_of_its_formula():
    """Two members with hand-made calibrations, evaluated on encoded rows."""
    X, y = crossed()
    members = [
        plain_classifier("likelihood", covariance_type=kind).fit(X, y).model_
        for kind in ("full", "diag")
    ]
    committee = Committee(
        tuple(members), np.array([0.3, 0.7]), np.array([2.0, 0.5]), np.array([0.0, 0.2])
    )
    committee.check_consistent()
    table = plain_classifier("likelihood").fit(X, y)._encode(with_holes(X))
    full, diag, found = (
        log_joint(model, table, Workers(1)).T for model in (*members, committee)
    )
    expected = 0.3 * corrected(full, 2.0, 0.0) + 0.7 * corrected(diag, 0.5, 0.2)
    np.testing.assert_allclose(np.exp(found), expected, atol=1e-12)
    with pytest.raises(UnsupportedError, match="trained one by one"):
        committee.coordinates(10.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": ()}, "no members"),
        ({"shares": np.array([0.5, 0.6])}, "shares do not sum to one"),
        ({"shares": np.array([-0.5, 1.5])}, "shares"),
        ({"shares": np.ones(1)}, "shares"),
        ({"temperatures": np.array([1.0, 0.0])}, "temperatures"),
        ({"temperatures": np.array([1.0, np.nan])}, "temperatures"),
        ({"uniform_shares": np.array([0.0, 1.0])}, "uniform_shares"),
        ({"uniform_shares": np.array([0.0, -0.1])}, "uniform_shares"),
    ],
)
def test_committees_check_themselves(changes, message):
    X, y = crossed()
    member = plain_classifier("likelihood").fit(X, y).model_
    committee = Committee((member, member), np.full(2, 0.5), np.ones(2), np.zeros(2))
    committee.check_consistent()
    with pytest.raises(ValueError, match=message):
        replace(committee, **changes).check_consistent()


def test_members_must_have_the_same_classes():
    X, y = load_iris(return_X_y=True)
    three = plain_classifier("likelihood").fit(X, y).model_
    two = plain_classifier("likelihood").fit(X[:100], y[:100]).model_
    committee = Committee((three, two), np.full(2, 0.5), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="different classes"):
        committee.check_consistent()


def test_labels_of_samples_follow_their_probabilities():
    model = HybridMixtureClassifier(n_steps=4, random_state=0).fit(*crossed())
    X, y = model.sample(20_000, random_state=3)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(
        np.bincount(y, minlength=2) / len(y), probabilities.mean(axis=0), atol=0.015
    )
    # Rows of which a class has some probability have it about as often.
    for label in range(2):
        doubtful = np.abs(probabilities[:, label] - 0.5) < 0.3
        assert doubtful.sum() > 100
        expected = probabilities[doubtful, label].mean()
        error = 4.0 / np.sqrt(doubtful.sum())
        assert np.mean(y[doubtful] == label) == pytest.approx(expected, abs=error)
    again, labels = model.sample(20_000, random_state=3)
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(labels, y)


# Files ----------------------------------------------------------------------------------

COMMITTEE = ("estimator", "learned", "committee_", "record", "fields")


def test_a_committee_survives_a_file(model, iris, tmp_path):
    X, _ = iris
    hybridmix.save(model, tmp_path / "model.hmx")
    loaded = hybridmix.load(tmp_path / "model.hmx")
    for name in ("predict_proba", "predict_joint_log_proba", "score_samples", "impute"):
        np.testing.assert_array_equal(getattr(loaded, name)(X), getattr(model, name)(X))
    assert loaded.leaderboard_ == model.leaderboard_
    assert loaded.get_params() == model.get_params()
    for one, other in zip(loaded.members_, model.members_, strict=True):
        assert one.get_params() == other.get_params()
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    hybridmix.save(model.members_[0], tmp_path / "member.hmx")
    member = hybridmix.load(tmp_path / "member.hmx")
    np.testing.assert_array_equal(
        member.predict_proba(X), model.members_[0].predict_proba(X)
    )


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("shares", lambda x: 2.0 * x, "shares do not sum to one"),
        ("shares", lambda x: x[:-1], "shares"),
        ("shares", lambda x: np.full_like(x, np.nan), "shares"),
        ("shares", lambda x: np.r_[-x[0], x[1:]], "shares"),
        ("temperatures", lambda x: -x, "temperatures"),
        ("uniform_shares", lambda x: x + 1.0, "uniform_shares"),
    ],
)
def test_tampered_committees_are_refused(name, change, message, model, tmp_path):
    path = tmp_path / "model.hmx"
    hybridmix.save(model, path)
    where = (*COMMITTEE, name)
    set_array(path, where, change(array_of(path, where)))
    refused(path, message)


def test_onnx_agrees(model, iris):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from hybridmix.onnx import to_onnx

    X = with_holes(load_iris().data, 0.4, seed=1)
    X[0] = np.nan
    session = onnxruntime.InferenceSession(
        to_onnx(model, dtype="float64").SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    labels, probabilities, log_density = session.run(None, {"X": X})
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(log_density, model.score_samples(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(labels, model.predict(X))


# How it is chosen -----------------------------------------------------------------------


def test_the_same_seed_gives_the_same_model_for_any_number_of_threads(model, iris):
    X, _ = iris
    for n_jobs in (1, 2, 3):
        other = HybridMixtureClassifier(random_state=0, n_jobs=n_jobs).fit(*iris)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.score_samples(X), model.score_samples(X))
        shown = [[row["candidate"], row["score"]] for row in other.leaderboard_]
        assert shown == [[row["candidate"], row["score"]] for row in model.leaderboard_]


@pytest.mark.parametrize("seed", range(4))
def test_shares_maximise_the_likelihood_of_the_labels(seed):
    rng = np.random.default_rng(seed)
    log_scores = np.log(rng.beta(1.0 + rng.random((4, 1)), 1.0, size=(4, 80)))
    weights = rng.uniform(0.5, 2.0, 80)

    def loss(free):
        logs = log_softmax(np.r_[free, 0.0])
        stacked = np.logaddexp.reduce(logs[:, None] + log_scores, axis=0)
        return -weights @ stacked - logs.sum()

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8})
    expected = softmax(np.r_[best.x, 0.0])
    chosen, shares = fitted_shares(log_scores, weights, 4)
    assert sorted(chosen) == [0, 1, 2, 3]
    assert (np.diff(shares) <= 0).all()
    np.testing.assert_allclose(shares, expected[chosen], atol=2e-3)
    few, shares = fitted_shares(log_scores, weights, 2)
    assert sorted(few) == sorted(np.argsort(-expected)[:2].tolist())
    assert shares.sum() == pytest.approx(1.0)


def test_rows_of_weight_two_count_twice_in_shares():
    rng = np.random.default_rng(0)
    log_scores = np.log(rng.random((3, 30)))
    counts = rng.integers(1, 4, 30)
    weighted = fitted_shares(log_scores, counts.astype(float), 3)
    repeated = fitted_shares(
        np.repeat(log_scores, counts, axis=1), np.ones(sum(counts)), 3
    )
    assert weighted.chosen == repeated.chosen
    np.testing.assert_allclose(weighted.shares, repeated.shares)


def fixed(member, options):
    """Return whether a member has the options that were given."""
    return all(getattr(member, name) == value for name, value in options.items())


@pytest.mark.parametrize(
    "options",
    [
        {"covariance_type": "diag"},
        {"covariance_type": "subspace"},
        {"n_components": 2},
        {"n_components": {0: 1, 1: 2}},
        {"n_components": [1, 2]},
        {"tradeoff": 3.0},
        {"objective": "likelihood"},
        {"objective": "margin", "loss": "ramp"},
        {"covariance_type": "tied", "n_components": 1},
        {"covariance_type": "full", "tradeoff": 1.0},
    ],
)
def test_explicit_options_fix_what_they_name(options):
    X, y = crossed()
    model = HybridMixtureClassifier(random_state=0, n_steps=6, **options).fit(X, y)
    assert model.get_params()["calibrate"] == "auto"
    numbers = options.get("n_components")
    for member in model.members_:
        assert fixed(member, options)
        if isinstance(numbers, int):
            assert np.diff(member.model_.offsets).tolist() == [numbers] * 2
        elif isinstance(numbers, dict):
            assert np.diff(member.model_.offsets).tolist() == [1, 2]
    if "covariance_type" in options:
        assert all(
            options["covariance_type"] in row["candidate"] for row in model.leaderboard_
        )
    if isinstance(numbers, int):
        assert np.unique(model.n_components_).tolist() == [numbers]


def test_numbers_of_components_may_be_an_array():
    X, y = crossed()
    one, other = (
        HybridMixtureClassifier(n_components=numbers, n_steps=2, random_state=0).fit(X, y)
        for numbers in (np.array([1, 2]), [1, 2])
    )
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tradeoff": "much"}, "tradeoff='much' is neither a number nor 'auto'"),
        ({"effort": "some"}, "effort='some' is not one of fast, balanced, thorough"),
        ({"effort": 0.0}, "effort=0.0"),
        ({"calibrate": "some"}, "calibrate='some'"),
        ({"cv": 1}, "cv=1 is not valid"),
        ({"class_weight": "heavy"}, "class_weight"),
        ({"class_weight": {7: 1.0}}, "class_weight"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        HybridMixtureClassifier(**options).fit(*crossed())


def test_nothing_is_chosen_if_all_options_are_given():
    X, y = crossed()
    model = plain_classifier(random_state=0).fit(X, y)
    assert isinstance(model.model_, Mixture)
    for name in ("committee_", "members_", "leaderboard_"):
        assert not hasattr(model, name)
    assert (model.temperature_, model.uniform_share_) == (1.0, 0.0)


def test_a_committee_is_not_a_start(model, iris):
    with pytest.raises(ValueError, match=r"init=model\.members_"):
        HybridMixtureClassifier(init=model).fit(*iris)
    goes_on = HybridMixtureClassifier(init=model.members_[0], n_steps=2).fit(*iris)
    assert not hasattr(goes_on, "committee_")


def test_fast_effort_is_one_calibrated_mixture(iris):
    model = HybridMixtureClassifier(effort="fast", random_state=0).fit(*iris)
    assert isinstance(model.model_, Mixture)
    assert not hasattr(model, "committee_")
    assert model.temperature_ != 1.0
    assert [row["share"] for row in model.leaderboard_] == [1.0]
    X = iris[0]
    np.testing.assert_allclose(
        model.predict_proba(X),
        corrected(
            model.predict_joint_log_proba(X), model.temperature_, model.uniform_share_
        ),
    )


def test_an_effort_in_seconds_stops_early_but_has_a_model(iris):
    X, y = iris
    short = HybridMixtureClassifier(effort=1e-3, random_state=0).fit(X, y)
    long = HybridMixtureClassifier(effort=1e3, random_state=0).fit(X, y)
    assert 0 < len(short.leaderboard_) < len(long.leaderboard_)
    assert short.score(X, y) > 0.85
    assert not short.interrupted_


def test_calibration_can_be_left_out(iris):
    X, y = iris
    for effort in ("fast", "balanced"):
        model = HybridMixtureClassifier(calibrate=False, effort=effort, random_state=0)
        model.fit(X, y)
        assert (model.temperature_, model.uniform_share_) == (1.0, 0.0)
    np.testing.assert_array_equal(model.committee_.temperatures, 1.0)
    np.testing.assert_array_equal(model.committee_.uniform_shares, 0.0)


class Recording(GroupKFold):
    """Group folds that remember what they were asked to split."""

    def __init__(self, n_splits):
        super().__init__(n_splits)
        self.calls = []

    def split(self, X, y=None, groups=None):
        self.calls.append((len(X), np.array(y), np.array(groups)))
        return super().split(X, y, groups)


def test_groups_reach_the_folds(monkeypatch):
    X, y = crossed()
    groups = np.arange(120) // 10
    y = np.where(np.arange(120) % 12 == 0, -1, y)  # a row without a label in each group
    parts = []
    whole = Search.scores

    def scores(self, plan, budget):
        parts.extend(self.parts)
        return whole(self, plan, budget)

    monkeypatch.setattr(Search, "scores", scores)
    splitter = Recording(4)
    model = HybridMixtureClassifier(cv=splitter, n_steps=2, random_state=0)
    model.fit(X, y, groups=groups)
    [(n_rows, labels, seen)] = splitter.calls
    assert n_rows == np.sum(y != -1)
    np.testing.assert_array_equal(labels, y[y != -1])
    np.testing.assert_array_equal(seen, groups[y != -1])
    assert len(parts) == 4
    for rest, held in parts:
        assert held.unlabelled().n_rows == 0
        assert rest.labelled().n_rows + held.n_rows == n_rows
        assert rest.unlabelled().n_rows == np.sum(y == -1)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, y, groups=groups[:-1])
    with pytest.raises(ValueError, match="groups"):
        model.fit(X, y)


def test_folds_of_the_user_must_leave_rows_of_every_class():
    X, y = crossed()
    with pytest.raises(ValueError, match="class 1 has no row to train on in fold 0"):
        HybridMixtureClassifier(cv=GroupKFold(2)).fit(X, y, groups=y)
    rows = np.arange(120)
    with pytest.raises(ValueError, match="Fold 1 of cv holds out no row"):
        HybridMixtureClassifier(cv=[(rows[:60], rows[60:]), (rows, rows[:0])]).fit(X, y)


def test_the_number_of_folds_may_be_given():
    X, y = crossed()
    three = HybridMixtureClassifier(cv=3, n_steps=2, random_state=0).fit(X, y)
    assert three.committee_.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{}, {"effort": "fast"}, {"covariance_type": "diag"}])
def test_balanced_class_weights_are_sample_weights(options):
    X, y = crossed()
    kept = np.flatnonzero((y == 0) | (np.arange(120) % 3 == 0))
    X, y = np.exp(X[kept]), y[kept]
    own = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    weighted = HybridMixtureClassifier(
        class_weight="balanced", n_steps=5, random_state=0, **options
    )
    plain = HybridMixtureClassifier(n_steps=5, random_state=0, **options)
    balanced = compute_sample_weight("balanced", y)
    for sample_weight in (None, own):
        expected = balanced if sample_weight is None else balanced * sample_weight
        found = weighted.fit(X, y, sample_weight=sample_weight).predict_proba(X)
        np.testing.assert_array_equal(
            found, plain.fit(X, y, sample_weight=expected).predict_proba(X)
        )
    given = clone(weighted).set_params(class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    expected = plain.fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(given.predict_proba(X), expected.predict_proba(X))


def test_unlabelled_rows_have_no_class_weight():
    X, y = crossed()
    y[::4] = -1
    model = HybridMixtureClassifier(
        class_weight={0: 1.0, 1: 3.0}, unlabelled_weight=0.1, n_steps=2, random_state=0
    )
    found = model.fit(X, y).predict_proba(X)
    model.set_params(class_weight=None)
    model.fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(found, model.predict_proba(X))


def test_validation_rows_decide_the_choice():
    """Columns are independent in the validation rows of one fit, not of the other."""
    X, y = crossed(240)
    rng = np.random.default_rng(1)
    apart = rng.normal(size=(200, 2)) + 3.0 * (np.arange(200) % 2)[:, None]
    labels = np.arange(200) % 2
    both, both_y = np.r_[X, apart], np.r_[y, labels]
    options = {"n_components": 1, "tradeoff": 1.0, "random_state": 0, "n_steps": 3}
    of_types = {}
    for name, (X_val, y_val) in {
        "crossed": crossed(200, seed=2),
        "apart": (apart, labels),
    }.items():
        model = HybridMixtureClassifier(**options)
        model.fit(both, both_y, X_val=X_val, y_val=y_val)
        of_types[name] = model.leaderboard_
        best = model.leaderboard_[0]
        # The score is that of the validation rows, by the member trained on all others.
        [member] = [m for m in model.members_ if m.covariance_type in best["candidate"]]
        own = member.predict_log_proba(X_val)[np.arange(200), y_val]
        assert own.mean() == pytest.approx(best["score"], abs=1e-9)
        assert own.std(ddof=1) / np.sqrt(200) == pytest.approx(best["standard_error"])
    assert "full" in of_types["crossed"][0]["candidate"]
    assert of_types["apart"][0]["score"] != of_types["crossed"][0]["score"]


def test_a_share_of_the_rows_can_be_held_out(monkeypatch):
    X, y = crossed()
    seen = []
    whole = Search.scores

    def scores(self, plan, budget):
        seen.append([(rest.n_rows, held.n_rows) for rest, held in self.parts])
        return whole(self, plan, budget)

    monkeypatch.setattr(Search, "scores", scores)
    for fraction in (None, 0.1, 0.5):
        HybridMixtureClassifier(
            validation_fraction=fraction, n_steps=2, random_state=0
        ).fit(X, y)
    assert seen == [[(80, 40)] * 3, [(108, 12)], [(60, 60)]]


def test_unlabelled_rows_are_tried_with_several_weights():
    X, y = crossed()
    y = np.where(np.arange(120) % 3 == 0, y, -1)
    model = HybridMixtureClassifier(n_steps=4, random_state=0).fit(X, y)
    names = [row["candidate"] for row in model.leaderboard_]
    with_them = [name for name in names if "unlabelled rows 0.1" in name]
    assert 0 < len(with_them) < len(names)
    weights = {member.unlabelled_weight for member in model.members_}
    assert weights <= {0.0, 0.1}
    # The density learns from all rows alike.
    assert model.unlabelled_weight_ == 1.0
    given = HybridMixtureClassifier(n_steps=4, random_state=0, unlabelled_weight=0.3)
    given.fit(X, y)
    assert {member.unlabelled_weight for member in given.members_} == {0.3}
    assert given.unlabelled_weight_ == 0.3


def test_the_leaderboard_says_what_was_tried(model):
    rows = model.leaderboard_
    assert all(np.isfinite(row["score"]) for row in rows)
    assert all(np.isfinite(row["standard_error"]) for row in rows)
    assert all(row["seconds"] > 0.0 for row in rows)
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    shares = np.array([row["share"] for row in rows])
    assert shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        np.sort(shares[shares > 0]), np.sort(model.committee_.shares)
    )
    assert len({row["candidate"] for row in rows}) == len(rows)


def test_clones_and_options():
    model = HybridMixtureClassifier(effort="fast", class_weight="balanced", cv=4)
    options = model.get_params()
    for name in ("covariance_type", "n_components", "tradeoff", "calibrate"):
        assert options[name] == "auto"
    assert clone(model).get_params() == options
    fitted = model.fit(*crossed())
    assert fitted.get_params() == options
    assert not hasattr(clone(fitted), "model_")


# Pseudo-labels --------------------------------------------------------------------------


def mostly_unlabelled(n_classes=2):
    """Classes of several clusters each, of which few labels say little."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(8, size=1800)
    angle = 2.0 * np.pi * cluster / 8
    X = np.c_[np.cos(angle), np.sin(angle)] * 6.0 + rng.normal(size=(1800, 2))
    y = np.where(np.arange(1800) < 300, cluster % n_classes, -1)
    return X, y, cluster % n_classes


@pytest.fixture(scope="module")
def self_trained():
    X, y, _ = mostly_unlabelled()
    return HybridMixtureClassifier(n_steps=10, random_state=0).fit(X, y)


def test_pseudo_labels_have_a_share_of_the_committee(self_trained):
    X, _, truth = mostly_unlabelled()
    model = self_trained
    [trained] = [row for row in model.leaderboard_ if "pseudo" in row["candidate"]]
    shares = np.array([row["share"] for row in model.leaderboard_])
    assert shares.sum() == pytest.approx(1.0)
    assert trained["share"] == pytest.approx(model.committee_.shares[0])
    np.testing.assert_allclose(
        np.sort(shares[shares > 0.0]), np.sort(model.committee_.shares)
    )
    np.testing.assert_allclose(model.predict_proba(X), voted(model, X), atol=1e-12)
    assert model.score(X, truth) > 0.9
    names = [member["candidate"] for member in described_members(model)]
    assert names[0] == trained["candidate"]


def test_an_interrupt_of_pseudo_labels_leaves_the_committee(self_trained, monkeypatch):
    X, y, _ = mostly_unlabelled()

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(committee_module, "self_training", interrupt)
    model = clone(self_trained)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model.fit(X, y)
    assert model.interrupted_
    assert len(model.members_) == len(self_trained.members_) - 1


def test_true_labels_stay_and_count_more(self_trained):
    X, y, _ = mostly_unlabelled()
    rows = self_trained.schema_.encode(read_columns(X))[:]
    dataset = Dataset.arrange(rows, y, np.full(len(y), 2.0))
    teacher, pool = self_trained.committee_, Workers(1)
    taught = with_pseudo_labels(dataset, teacher, pool)
    votes = np.bincount(log_joint(teacher, rows[y < 0], pool).argmax(axis=0))
    np.testing.assert_array_equal(
        np.bincount(taught.labels), np.bincount(y[y >= 0]) + votes
    )
    values, counts = np.unique(taught.weights, return_counts=True)
    assert dict(zip(values, counts, strict=True)) == {2.0: 1500, 10.0: 300}


def test_more_unlabelled_rows_teach_more_components(monkeypatch):
    X, y, _ = mostly_unlabelled()
    tried = []

    def refused(search, larger, members, shares, unlabelled):
        tried.append((larger.n_components, unlabelled.n_rows))

    monkeypatch.setattr(committee_module, "self_training", refused)
    monkeypatch.setattr(plan_module, "_ROWS_OF_LARGER", 40)
    HybridMixtureClassifier(n_steps=2, random_state=0).fit(X, y)
    # Of very many rows, some are enough.
    monkeypatch.setattr(committee_module, "_MOST_TAUGHT", 1200)
    HybridMixtureClassifier(n_steps=2, random_state=0).fit(X, y)
    [(many, _), (few, n_rows)] = tried
    assert (many, few) == (16, 4)
    assert n_rows <= 1201


@pytest.mark.parametrize("has_holes", [False, True])
def test_rows_that_follow_others(has_holes):
    rng = np.random.default_rng(0)
    real, codes = rng.normal(size=(2, 9)), rng.integers(3, size=(1, 9))
    observed = rng.random((2, 9)) < 0.5 if has_holes else None
    labels = np.array([-1] * 4 + [0, 0, 1, 1, 2])
    whole = Dataset(Rows(real, observed, codes), labels, None)
    both = whole.unlabelled().followed_by(whole.labelled())
    np.testing.assert_array_equal(both.rows.real, real)
    np.testing.assert_array_equal(both.rows.codes, codes)
    np.testing.assert_array_equal(both.labels, labels)
    assert both.weights is None
    if has_holes:
        np.testing.assert_array_equal(both.rows.observed, observed)
    weighed = replace(whole.labelled(), weights=np.full(5, 2.0))
    both = whole.unlabelled().followed_by(weighed)
    np.testing.assert_array_equal(both.filled_weights, [1.0] * 4 + [2.0] * 5)


def test_pseudo_labels_of_a_single_class():
    X, y, _ = mostly_unlabelled(n_classes=1)
    model = HybridMixtureClassifier(n_steps=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), 1.0)


# Numbers of components -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows_per_class", "n_real", "most"),
    [(30, 5, 1), (40, 5, 4), (320, 5, 16), (1700, 5, 128), (1700, 20, 64), (1200, 5, 16)],
)
def test_components_are_as_many_as_rows_and_columns_allow(rows_per_class, n_real, most):
    size = plan_module.TableSize(rows_per_class, n_real, 0, 2, False, False)
    tried = list(plan_module._structures(size, Budget("balanced")))
    assert max(n_components for _, n_components in tried) == most


# A committee takes the work that it may -------------------------------------------------


def test_members_that_take_too_long_are_left_out(monkeypatch):
    X, y = crossed()
    monkeypatch.setattr(affordable, "_MOST_OF_ALL", 1.0)
    model = HybridMixtureClassifier(n_steps=2, random_state=0).fit(X, y)
    assert len(model.members_) == 1
    np.testing.assert_array_equal(model.committee_.shares, [1.0])


def continued_rows(monkeypatch):
    """Note how many rows members and density are trained on in the end."""
    whole, seen = Search.continued, []

    def continued(self, entry, dataset):
        seen.append(dataset.n_rows)
        return whole(self, entry, dataset)

    monkeypatch.setattr(Search, "continued", continued)
    return seen


def test_a_part_of_very_many_rows_is_enough(monkeypatch):
    monkeypatch.setattr(committee_module, "ENOUGH_ROWS", 80)
    seen = continued_rows(monkeypatch)
    X, y = crossed(200)
    model = HybridMixtureClassifier(n_steps=5, random_state=0, n_jobs=1).fit(X, y)
    assert len(seen) == len(model.members_) + 1
    assert all(80 <= n_rows <= 82 for n_rows in seen)
    assert model.score(X, y) > 0.8
    again = clone(model).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_subspaces_of_few_rows_are_fitted_once_for_all_tradeoffs(monkeypatch, iris):
    X, y = iris
    whole, begun = Search.path, []

    def path(self, candidate, dataset):
        begun.append(dataset.n_rows)
        return whole(self, candidate, dataset)

    monkeypatch.setattr(Search, "path", path)
    model = HybridMixtureClassifier(
        covariance_type="subspace", n_components=1, n_factors=2, random_state=0
    ).fit(X, y)
    assert len(model.members_) == 2
    assert begun.count(len(X)) == 1
    low, high = (
        next(own for own in model.members_ if own.tradeoff == tradeoff)
        for tradeoff in (10.0, 100.0)
    )
    subspaces = [own.model_.components.subspace for own in (low, high)]
    np.testing.assert_array_equal(subspaces[0].loading, subspaces[1].loading)


def test_large_tables_are_split_and_thinned(monkeypatch):
    monkeypatch.setattr(committee_module, "_FEW_ROWS", 100)
    monkeypatch.setattr(committee_module, "_MOST_ROWS", 50)
    X, y = crossed(400)
    seen = []
    whole = Search.scores

    def scores(self, plan, budget):
        seen.extend((rest.n_rows, held.n_rows) for rest, held in self.parts)
        return whole(self, plan, budget)

    monkeypatch.setattr(Search, "scores", scores)
    model = HybridMixtureClassifier(n_steps=5, random_state=0).fit(X, y)
    [(rest, held)] = seen
    assert 50 <= rest <= 52
    assert 48 <= held <= 52
    assert model.score(X, y) > 0.8


# Interrupts and refusals ----------------------------------------------------------------


def interrupt_at(monkeypatch, number):
    """Let the user interrupt the search at one of its candidates."""
    whole, calls = Search.tried, []

    def tried(self, candidate, before=()):
        calls.append(candidate)
        if len(calls) == number:
            raise KeyboardInterrupt
        return whole(self, candidate, before)

    monkeypatch.setattr(Search, "tried", tried)
    return calls


def test_an_interrupt_keeps_what_was_tried(monkeypatch):
    X, y = crossed()
    calls = interrupt_at(monkeypatch, 2)
    model = HybridMixtureClassifier(n_steps=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the best model so far"):
        model.fit(X, y)
    assert len(calls) == 2
    assert model.interrupted_
    first = calls[0].options.structure.covariance_type
    assert {member.covariance_type for member in model.members_} == {first}
    assert np.isfinite(model.predict_proba(X)).all()


def test_an_interrupt_before_the_first_candidate_leaves_the_old_model(
    monkeypatch, tmp_path
):
    X, y = crossed()
    model = HybridMixtureClassifier(n_steps=3, random_state=0).fit(X, y)
    before = dict(vars(model))
    interrupt_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*load_wine(return_X_y=True))
    assert vars(model) == before
    fresh = HybridMixtureClassifier()
    interrupt_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert not hasattr(fresh, "model_")


def test_an_interrupt_of_the_last_fits_keeps_the_models_of_the_search(monkeypatch):
    X, y = crossed()
    whole, calls = Search.continued, []

    def continued(self, entry, dataset):
        calls.append(entry)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(self, entry, dataset)

    monkeypatch.setattr(Search, "continued", continued)
    model = HybridMixtureClassifier(n_steps=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model.fit(X, y)
    assert len(calls) == 2
    assert model.interrupted_
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"effort": "much"}, {}, "effort"),
        ({"tradeoff": -1.0}, {}, "tradeoff"),
        ({"class_weight": {7: 1.0}}, {}, "class_weight"),
        ({"cv": GroupKFold(2)}, {}, "groups"),
        ({"validation_fraction": 0.001}, {}, "holds out no row"),
        ({}, {"sample_weight": np.zeros(120)}, "zero"),
    ],
)
def test_a_refused_refit_leaves_the_old_committee(options, arguments, message):
    X, y = crossed()
    model = HybridMixtureClassifier(n_steps=2, random_state=0).fit(X, y)
    before = {k: v for k, v in vars(model).items() if k.endswith("_")}
    probabilities = model.predict_proba(X)
    with pytest.raises(ValueError, match=message):
        model.set_params(**options).fit(X, y, **arguments)
    assert {k: v for k, v in vars(model).items() if k.endswith("_")} == before
    np.testing.assert_array_equal(model.predict_proba(X), probabilities)


def test_another_fit_leaves_nothing_of_the_committee():
    X, y = crossed()
    model = HybridMixtureClassifier(n_steps=2, random_state=0).fit(X, y)
    model.set_params(effort="fast").fit(X, y)
    assert not hasattr(model, "committee_")
    assert not hasattr(model, "members_")
    model.set_params(covariance_type="diag", n_components=1, tradeoff=1.0).fit(X, y)
    assert not hasattr(model, "leaderboard_")


# Tables of all kinds --------------------------------------------------------------------


def odd_tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    words = pd.DataFrame(rng.integers(3, size=(40, 3)).astype(str), columns=list("abc"))
    y = np.arange(40) % 2
    return {
        "a single class": (X, np.full(40, "only")),
        "a class of one row": (X, np.r_[y[:-1], 2]),
        "classes of one row": (X[:5], np.arange(5)),
        "classes of one row and of two": (X[:5], np.array([0, 0, 1, 2, 3])),
        "two rows": (X[:2], np.array([0, 1])),
        "two rows of a class": (X[:2], np.array([0, 0])),
        "one row": (X[:1], np.array([0])),
        "two labels": (X, np.r_[0, 1, np.full(38, -1)]),
        "categorical columns": (words, y),
        "constant columns": (np.column_stack([X, np.full(40, 9.0), np.zeros(40)]), y),
        "constant columns only": (np.full((40, 2), 9.0), y),
        "a single column": (X[:, :1], y),
        "more columns than rows": (rng.normal(size=(12, 40)), np.arange(12) % 3),
        "many columns": (rng.normal(size=(40, 70)), y),
        "rows without a value": (with_holes(X, 0.7), y),
    }


@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize("name", odd_tables())
def test_every_table_has_a_model(name, effort):
    X, y = odd_tables()[name]
    model = HybridMixtureClassifier(effort=effort, n_steps=5, random_state=0).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), len(model.classes_))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.isin(model.predict(X), y).all()
    assert np.isfinite(model.score_samples(X)).all()
    sampled, labels = model.sample(5, random_state=0)
    assert sampled.shape == (5, X.shape[1])
    assert np.isin(labels, y).all()
    for row in getattr(model, "leaderboard_", []):
        assert np.isfinite(row["score"])


def test_a_table_without_rows_to_hold_out_has_a_plain_model():
    X, y = odd_tables()["classes of one row"]
    found = HybridMixtureClassifier(random_state=0, column_shapes="plain").fit(X, y)
    assert not hasattr(found, "leaderboard_")
    assert (found.temperature_, found.uniform_share_) == (1.0, 0.0)
    np.testing.assert_array_equal(found.predict(X), y)


def test_groups_are_kept_together_without_a_splitter():
    generator = np.random.default_rng(0)
    X, y = load_iris(return_X_y=True)
    X = np.repeat(X, 2, axis=0) + 1e-9 * generator.normal(size=(300, 4))
    y, groups = np.repeat(y, 2), np.repeat(np.arange(150), 2)
    together = HybridMixtureClassifier(random_state=0).fit(X, y, groups=groups)
    best = together.leaderboard_[0]["score"]
    apart = HybridMixtureClassifier(random_state=0).fit(X, y).leaderboard_[0]["score"]
    assert best < apart  # a copy of every held-out row was in training


def test_far_rows_keep_their_class():
    generator = np.random.default_rng(0)
    X = np.vstack([generator.normal(size=(60, 2)), generator.normal(size=(60, 2)) + 6.0])
    model = HybridMixtureClassifier(random_state=0).fit(X, np.repeat([0, 1], 60))
    far = np.array([[1e6, 1e6], [1e9, 1e9], [1e12, 1e12]])
    probabilities = model.predict_proba(far)
    assert (probabilities.max(axis=1) > 0.5 + 1e-6).all()
    np.testing.assert_array_equal(model.predict(far), probabilities.argmax(axis=1))


def test_an_interrupted_path_of_a_subspace_keeps_the_committee(monkeypatch):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(90, 65)) + 0.3 * np.arange(90)[:, None] % 2
    y = np.arange(90) % 2
    refitted = committee_module._refitted

    def interrupted_later(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(ClassifierRun, "solve_likelihood", interrupted_solve)
            return refitted(*arguments)

    solve = ClassifierRun.solve_likelihood

    def interrupted_solve(self, *arguments):
        outcome = solve(self, *arguments)
        return outcome._replace(solution=replace(outcome.solution, interrupted=True))

    monkeypatch.setattr(committee_module, "_refitted", interrupted_later)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = HybridMixtureClassifier(random_state=0).fit(X, y)
    assert model.interrupted_
    assert model.predict(X).shape == (90,)


def test_validation_rows_leave_the_weight_of_the_density():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 2))
    y = np.where(np.arange(200) < 20, np.arange(200) % 2, -1)
    X[y != 0] += 1.0
    model = HybridMixtureClassifier(random_state=0).fit(X, y, X_val=X[:20], y_val=y[:20])
    density = HybridMixtureClassifier(
        "likelihood",
        covariance_type=covariance_type_of(model.model_.family),
        n_components=1,
        unlabelled_weight=model.unlabelled_weight_,
        max_iter=1000,
        tol=1e-9,
    ).fit(X, y)
    assert model.unlabelled_weight_ == 1.0
    np.testing.assert_allclose(
        model.score_samples(X).mean(), density.score_samples(X).mean(), atol=0.02
    )


def test_lists_of_splits_number_all_rows():
    X, y = load_iris(return_X_y=True)
    y[::2] = -1
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    listed = HybridMixtureClassifier(cv=splits, random_state=0).fit(X, y)
    fold = np.empty(len(X), dtype=int)
    for number, (_, held) in enumerate(splits):
        fold[held] = number
    predefined = HybridMixtureClassifier(cv=PredefinedSplit(fold), random_state=0)
    assert (
        predefined.fit(X, y).leaderboard_[0]["score"] == listed.leaderboard_[0]["score"]
    )
