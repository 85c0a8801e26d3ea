"""Estimators of sequences: what they read, learn, save and refuse."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from test_interrupts import InterruptedSolver

import hybridmix.evaluation
from hybridmix import HMMDensity, HybridHMMClassifier, Sequences, load, save
from hybridmix.problem import Problem
from hybridmix.progress import listening
from hybridmix.solvers import ExpectationMaximisation, LimitedMemoryBFGS
from hybridmix.training import chain_search
from hybridmix.training.chain_trials import ChainSearch

N, T = 24, 7
CLASSES = ["up", "down"]
# Nothing is chosen.
PLAIN = {"n_states": 2, "topology": "left-right", "covariance_type": "diag"}
RNG = np.random.default_rng(0)
NAMES = ["height", "speed"]


def plain_classifier(**options):
    own = {"tradeoff": 5.0, "n_steps": 8, "random_state": 0}
    return HybridHMMClassifier(**{**PLAIN, **own, **options})


def plain_density(**options):
    return HMMDensity(**{**PLAIN, "random_state": 0, **options})


MAKERS = {"classifier": plain_classifier, "density": plain_density}
BOTH = pytest.mark.parametrize("kind", MAKERS)


def make_panel(n=N, seed=0):
    """Sequences that rise or fall, of equal lengths."""
    rng = np.random.default_rng(seed)
    y = np.array(CLASSES)[np.arange(n) % 2]
    slope = np.where(y == "up", 1.0, -1.0)[:, None]
    time = np.linspace(-1.0, 1.0, T)
    first = slope * time + 0.5 * rng.normal(size=(n, T))
    return np.stack([first, np.cos(2 * first) + 0.3 * rng.normal(size=(n, T))], axis=2), y


PANEL, Y = make_panel()
LENGTHS = np.where(np.arange(N) % 3, T, 4)
LIST = [frames[:length] for frames, length in zip(PANEL, LENGTHS, strict=True)]
STACKED = np.concatenate(LIST)
IDS, TIMES = np.repeat(np.arange(N), LENGTHS), np.concatenate([*map(np.arange, LENGTHS)])


def long_frame(library):
    columns = {"id": IDS, "time": TIMES, "height": STACKED[:, 0], "speed": STACKED[:, 1]}
    return library(columns)


def indexed():
    return long_frame(pd.DataFrame).set_index(["id", "time"])


FORMS = {
    "list": (LIST, None),
    "tuple of lists": (tuple(frames.tolist() for frames in LIST), None),
    "objects": (np.array([*LIST, None], dtype=object)[:-1], None),
    "table": (STACKED, LENGTHS),
    "panel": (PANEL, LENGTHS),
    "sequences": (Sequences(STACKED, LENGTHS), None),
    "pandas": ([pd.DataFrame(frames, columns=NAMES) for frames in LIST], None),
    "polars": ([pl.DataFrame(frames, schema=NAMES) for frames in LIST], None),
    "index": (indexed(), None),
    "long": (Sequences.from_long(long_frame(pl.DataFrame), "id", "time"), None),
    "channels": (Sequences.from_panel(PANEL.transpose(0, 2, 1), LENGTHS), None),
}


def results(model, X, lengths=None):
    """Everything that a fitted model says about sequences."""
    names = ["score_samples", "predict_proba", "predict_log_proba", "predict"]
    return [
        getattr(model, name)(X, lengths=lengths) for name in names if hasattr(model, name)
    ]


def assert_same(model, other, X=LIST):
    for one, another in zip(results(model, X), results(other, X), strict=True):
        np.testing.assert_array_equal(one, another)


# Input -------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_sequences_are_the_same_to_a_model(kind, form):
    X, lengths = FORMS[form]
    model = MAKERS[kind]().fit(X, Y, lengths=lengths)
    model.check_consistent()
    expected = MAKERS[kind]().fit(LIST, Y)
    found = results(model, X, lengths)
    for one, another in zip(found, results(expected, LIST), strict=True):
        np.testing.assert_array_equal(one, another)
    if kind == "classifier":
        assert model.score(X, Y, lengths=lengths) == expected.score(LIST, Y) > 0.9
    if form in ("pandas", "polars", "index", "long"):
        assert list(model.feature_names_in_) == NAMES
    assert model.n_features_in_ == 2


def test_columns_are_those_of_training():
    model = plain_classifier().fit(*FORMS["pandas"][:1], Y)
    swapped = [frame[NAMES[::-1]] for frame in FORMS["pandas"][0]]
    with pytest.raises(ValueError, match=r"feature names should match|height"):
        model.predict(swapped)
    with pytest.raises(ValueError, match=r"3 features.*2 features"):
        plain_classifier().fit(LIST, Y).predict([np.zeros((2, 3))])


def test_probabilities_are_those_of_scaled_joint_densities():
    model = plain_classifier(length_power=0.5).fit(LIST, Y)
    assert model.classes_.tolist() == sorted(CLASSES)
    probabilities = model.predict_proba(LIST)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(LIST))
    np.testing.assert_array_equal(
        model.predict(LIST), model.classes_[probabilities.argmax(axis=1)]
    )
    ratio = np.diff(model.predict_log_proba(LIST), axis=1).ravel()
    joint = model._log_joint(model._encode(LIST, None).rows)
    np.testing.assert_allclose(ratio, (joint[1] - joint[0]) / np.sqrt(LENGTHS))


def test_densities_are_in_the_units_of_the_columns():
    scaled = [frames * [10.0, 0.1] for frames in LIST]
    one, other = plain_density().fit(LIST), plain_density().fit(scaled)
    np.testing.assert_allclose(one.score_samples(LIST), other.score_samples(scaled))
    wider = [frames * [10.0, 1.0] for frames in LIST]
    lower = plain_density().fit(wider).score_samples(wider)
    np.testing.assert_allclose(lower, one.score_samples(LIST) - LENGTHS * np.log(10.0))


@pytest.mark.parametrize("exits", [False, True])
def test_densities_of_sequences_of_one_frame_and_of_many(exits):
    model = plain_density(exits=exits).fit(LIST)
    parts = [LIST[0][:1], LIST[1], np.tile(LIST[2], (40, 1))]
    together = model.score_samples(parts)
    np.testing.assert_allclose(together, [model.score_samples([p])[0] for p in parts])
    assert np.isfinite(together).all()


def test_missing_values_are_marginalised():
    rng = np.random.default_rng(1)
    holes = [np.where(rng.random(f.shape) < 0.3, np.nan, f) for f in LIST]
    holes[0][:] = np.nan  # nothing is known of this one
    model = plain_classifier().fit(holes, Y)
    assert model.score(holes[1:], Y[1:]) > 0.85
    assert model.score_samples(holes)[0] == pytest.approx(0.0)
    prior = model.class_prior_ ** (1 / LENGTHS[0])
    np.testing.assert_allclose(model.predict_proba(holes)[0], prior / prior.sum())


def mixed_sequences():
    return [
        pd.DataFrame(
            {
                "height": f[:, 0],
                "kind": np.where(f[:, 1] > 0.5, "high", "low"),
                "on": f[:, 0] > 0,
            }
        )
        for f in LIST
    ]


@BOTH
@pytest.mark.parametrize("columns", [["height", "kind"], ["kind", "on"]])
def test_categories(kind, columns, tmp_path):
    X = [frame[columns] for frame in mixed_sequences()]
    model = MAKERS[kind](n_components=2, exits=True).fit(X, Y)
    model.check_consistent()
    save(model, tmp_path / "model")
    assert_same(load(tmp_path / "model"), model, X)
    assert model.covariance_type_ == ("diag" if "height" in columns else None)
    if kind == "classifier":
        assert model.score(X, Y) > 0.75


@BOTH
@pytest.mark.parametrize(
    "covariance_type", ["spherical", "diag", "tied", "full", "subspace"]
)
@pytest.mark.parametrize(
    "topology", ["left-right", "ergodic", [[1, 1, 0], [0, 1, 1], [1, 0, 1]]]
)
def test_published_attributes(kind, covariance_type, topology, tmp_path):
    n_factors = {"n_factors": 1} if covariance_type == "subspace" else {}
    model = MAKERS[kind](
        covariance_type=covariance_type,
        topology=topology,
        n_states=3 if isinstance(topology, str) else "auto",
        exits=True,
        **n_factors,
    ).fit(LIST, Y)
    lead = (2,) if kind == "classifier" else ()
    assert model.start_.shape == (*lead, 3)
    assert model.transitions_.shape == (*lead, 3, 3)
    assert model.exits_.shape == (*lead, 3)
    assert model.means_.shape == (*lead, 3, 1, 2)
    assert np.shape(model.mean_lengths_) == lead
    np.testing.assert_allclose(model.start_.sum(axis=-1), 1.0)
    np.testing.assert_allclose(model.transitions_.sum(axis=-1) + model.exits_, 1.0)
    if not isinstance(topology, str):
        assert np.all(model.transitions_[..., np.array(topology) == 0] == 0.0)
    assert (model.n_states_, model.covariance_type_) == (3, covariance_type)
    save(model, tmp_path / "model")
    assert_same(load(tmp_path / "model"), model)


# scikit-learn ------------------------------------------------------------------------


def test_cross_validation_searches_and_pipelines():
    model = plain_classifier()
    for X in (LIST, FORMS["sequences"][0], FORMS["objects"][0]):
        assert cross_val_score(model, X, Y, cv=2).min() > 0.8
    assert np.mean(cross_val_predict(model, LIST, Y, cv=2) == Y) > 0.8
    search = GridSearchCV(model, {"n_states": [1, 2]}, cv=2).fit(LIST, Y)
    assert search.best_params_ == {"n_states": 2}
    assert search.score(LIST, Y) > 0.9
    pipeline = make_pipeline(FunctionTransformer(differences), model)
    assert cross_val_score(pipeline, LIST, Y, cv=2).min() > 0.8
    density = GridSearchCV(
        plain_density(), {"n_states": [1, 2]}, scoring=mean_density, cv=2
    ).fit(LIST)
    assert density.best_params_["n_states"] == 2


def differences(sequences):
    return [np.column_stack([f, np.gradient(f[:, 0])]) for f in sequences]


def mean_density(model, X, y=None):
    return np.mean(model.score_samples(X))


def test_lengths_are_sliced_with_their_sequences():
    padded = PANEL.copy()
    padded[np.arange(T) >= LENGTHS[:, None]] = 1e3
    expected = cross_val_score(plain_classifier(), LIST, Y, cv=2)
    with config_context(enable_metadata_routing=True):
        model = plain_classifier().set_fit_request(lengths=True)
        model.set_score_request(lengths=True)
        params = {"lengths": LENGTHS}
        scores = cross_val_score(model, padded, Y, cv=2, params=params)
        search = GridSearchCV(model, {"n_states": [2]}, cv=2)
        search.fit(padded, Y, lengths=LENGTHS)
    np.testing.assert_array_equal(scores, expected)
    assert search.best_score_ == expected.mean()


@BOTH
def test_clones_and_copies(kind):
    model = MAKERS[kind](topology=[[1, 1], [0, 1]], n_states="auto").fit(LIST, Y)
    again = clone(model)
    assert not hasattr(again, "model_")
    with pytest.raises(NotFittedError):
        again.score_samples(LIST)
    assert_same(again.fit(LIST, Y), model)
    assert_same(pickle.loads(pickle.dumps(model)), model)
    assert "topology" in repr(model)


@BOTH
@pytest.mark.parametrize(
    "check",
    [
        "check_parameters_default_constructible",
        "check_no_attributes_set_in_init",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_set_params",
        "check_mixin_order",
        "check_valid_tag_types",
    ],
)
def test_checks_of_scikit_learn_that_need_no_table(kind, check):
    estimator = MAKERS[kind]()
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


# Weights, labels and classes ---------------------------------------------------------


@BOTH
def test_a_weight_of_two_is_a_sequence_twice(kind):
    weights = 1.0 + np.arange(N) % 2
    weights[:4] = 0.0
    weighted = MAKERS[kind]().fit(LIST, Y, sample_weight=weights)
    index = np.repeat(np.arange(N), weights.astype(int))
    repeated = MAKERS[kind]().fit([LIST[i] for i in index], Y[index])
    found, expected = results(weighted, LIST)[0], results(repeated, LIST)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_score_takes_weights():
    model = plain_classifier(n_states=1).fit(LIST, Y)
    correct = model.predict(LIST) == Y
    weights = np.where(correct, 0.0, 1.0)
    weights[0] = 1.0
    expected = np.average(correct, weights=weights)
    assert model.score(LIST, Y, sample_weight=weights) == expected


@pytest.mark.parametrize("mark", [-1, None, "?"])
def test_unlabelled_sequences(mark):
    y = np.array(Y, dtype=object)
    y[6:] = mark
    model = plain_classifier(unlabelled=mark).fit(LIST, y)
    assert model.classes_.tolist() == sorted(CLASSES)
    assert model.unlabelled_weight_ >= 0.0
    assert model.score(LIST[6:], Y[6:]) > 0.8
    fixed = plain_classifier(unlabelled=mark, unlabelled_weight=0.0).fit(LIST, y)
    alone = plain_classifier().fit(LIST[:6], Y[:6])
    # The scale of the columns is learned from all sequences.
    np.testing.assert_allclose(
        fixed.predict_proba(LIST), alone.predict_proba(LIST), atol=0.2
    )


def test_class_weights_and_priors():
    index = np.r_[np.arange(0, N, 2), 1, 3, 5]
    X, y = [LIST[i] for i in index], Y[index]
    share = np.mean(y == "down")
    options = {"objective": "likelihood"}
    empirical = plain_classifier(**options).fit(X, y)
    np.testing.assert_allclose(empirical.class_prior_, [share, 1 - share])
    uniform = plain_classifier(class_prior="uniform", **options).fit(X, y)
    np.testing.assert_allclose(uniform.class_prior_, 0.5)
    given = plain_classifier(class_prior=[0.9, 0.1], **options).fit(X, y)
    np.testing.assert_allclose(given.class_prior_, [0.9, 0.1])
    balanced = plain_classifier(class_weight="balanced", **options).fit(X, y)
    np.testing.assert_allclose(balanced.class_prior_, 0.5)
    chosen = plain_classifier(class_weight={"down": 3.0, "up": 1.0}, **options).fit(X, y)
    odds = 3.0 * share / (1 - share)
    np.testing.assert_allclose(chosen.class_prior_[0], odds / (1 + odds))


def test_one_class():
    model = plain_classifier().fit(LIST[::2], Y[::2])
    np.testing.assert_array_equal(model.predict_proba(LIST), 1.0)


def test_one_class_is_searched_by_densities_alone():
    found = HybridHMMClassifier(random_state=0).fit(LIST[::2], Y[::2])
    density = HMMDensity(autoregressive="auto", random_state=0).fit(LIST[::2])
    for own, other in zip(found.leaderboard_, density.leaderboard_, strict=True):
        assert own["candidate"].endswith("likelihood")
        assert own["score"] == pytest.approx(other["score"])


def test_em_that_has_not_converged_asks_for_fewer_states():
    with pytest.warns(ConvergenceWarning, match="or use fewer states"):
        HMMDensity(2, topology="ergodic", max_iter=1, tol=0.0).fit(LIST)


@pytest.mark.parametrize("solver", ["lbfgs", "baum-welch"])
@pytest.mark.parametrize("objective", ["hybrid", "conditional", "margin", "likelihood"])
def test_every_objective_by_every_solver(objective, solver):
    model = plain_classifier(objective=objective, solver=solver).fit(LIST, Y)
    assert model.score(LIST, Y) > 0.9
    assert np.diff(model.trace_).min() > -1e-9 * np.abs(model.trace_).max()
    assert model.n_iter_ == len(model.trace_) - 1
    # Traces have the units of the columns.
    if objective == "likelihood":
        density = model.score_samples(LIST).mean()
        assert density > model.history_["likelihood"][-1]


def test_held_out_sequences_end_training():
    model = plain_classifier(validation_fraction=0.3, n_steps=30, patience=3)
    model.fit(LIST, Y)
    assert "validation_error" in model.history_
    assert model.score(LIST, Y) > 0.8


def test_calibration_by_held_out_sequences():
    plain = plain_classifier().fit(LIST, Y)
    model = plain_classifier(calibrate=True).fit(LIST, Y)
    assert plain.committee_.temperatures.tolist() == [1.0]
    assert model.committee_.temperatures[0] != 1.0
    np.testing.assert_array_equal(model.predict(LIST), plain.predict(LIST))


# Seeds, threads and searches ---------------------------------------------------------


@BOTH
def test_the_same_seed_is_the_same_model_whatever_n_jobs(kind, monkeypatch):
    monkeypatch.setattr(hybridmix.evaluation, "_SMALL", 0)
    monkeypatch.setattr(hybridmix.evaluation, "chunk_rows", lambda width: 16)
    options = {"topology": "ergodic", "n_components": 2, "n_init": 2, "n_states": 3}
    one, many = (MAKERS[kind](**options, n_jobs=n_jobs).fit(LIST, Y) for n_jobs in (1, 3))
    assert_same(one, many)
    other = MAKERS[kind](**options).set_params(random_state=7).fit(LIST, Y)
    assert not np.array_equal(results(other, LIST)[0], results(one, LIST)[0])


def small_search(kind, **options):
    """A search over few candidates."""
    own = {"n_states": "auto", "topology": "left-right", "covariance_type": "diag"}
    return MAKERS[kind](**own, **options)


@BOTH
def test_searches_choose_and_vote(kind, tmp_path):
    model = small_search(kind, n_jobs=1).fit(LIST, Y)
    model.check_consistent()
    board = model.leaderboard_
    assert sum(line["share"] for line in board) == pytest.approx(1.0)
    scores = [line["score"] for line in board]
    assert scores == sorted(scores, reverse=True)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same(loaded, model)
    assert loaded.leaderboard_ == board
    assert_same(small_search(kind, n_jobs=2).fit(LIST, Y), model)
    if kind == "classifier":
        assert model.score(LIST, Y) > 0.9
        assert model.committee_.temperatures[0] != 1.0
        plain = small_search(kind, calibrate=False).fit(LIST, Y)
        assert set(plain.committee_.temperatures) == {1.0}


def test_searches_leave_out_what_their_solver_cannot_train():
    options = {"n_states": 1, "topology": "left-right", "tradeoff": 1.0}
    regressions = {}
    for solver in ("lbfgs", "baum-welch"):
        model = HybridHMMClassifier(**options, solver=solver, n_steps=2, random_state=0)
        names = [line["candidate"] for line in model.fit(LIST, Y).leaderboard_]
        regressions[solver] = any("autoregressive" in name for name in names)
    assert regressions == {"lbfgs": True, "baum-welch": False}


@BOTH
def test_efforts(kind):
    quick = small_search(kind, effort="fast").fit(LIST, Y)
    assert quick.n_states_ == 5
    assert not hasattr(quick, "leaderboard_")
    hurried = small_search(kind, effort=1e-6).fit(LIST, Y)
    assert len({line["candidate"] for line in hurried.leaderboard_}) == 1


@BOTH
def test_too_few_sequences_for_a_search(kind):
    model = small_search(kind).fit(LIST[:2], Y[:2])
    if kind == "classifier":  # each class has one
        assert not hasattr(model, "leaderboard_")
    assert np.isfinite(results(model, LIST)[0]).all()


# Progress and interrupts -------------------------------------------------------------


@BOTH
def test_progress_is_printed_and_announced(kind, capsys):
    MAKERS[kind]().fit(LIST, Y)
    assert capsys.readouterr().out == ""
    steps = []
    with listening(steps.append):
        MAKERS[kind](verbose=1).fit(LIST, Y)
    printed = capsys.readouterr().out
    assert printed.startswith("EM 0/100")
    assert ("L-BFGS" in printed) == (kind == "classifier")
    assert {step.task for step in steps} >= {"EM"}
    small_search(kind, verbose=1).fit(LIST, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("search")


@BOTH
def test_an_interrupt_of_em_keeps_the_best_model(kind, monkeypatch):
    InterruptedSolver(monkeypatch, ExpectationMaximisation, 1)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the best model so far"):
        model = MAKERS[kind](tol=0.0).fit(LIST, Y)
    assert model.interrupted_
    assert model.n_iter_ == 1
    model.check_consistent()
    assert np.isfinite(results(model, LIST)[0]).all()


def test_an_interrupt_of_discriminative_training_keeps_the_best_model(monkeypatch):
    InterruptedSolver(monkeypatch, LimitedMemoryBFGS, 1)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the best model so far"):
        model = plain_classifier(calibrate=True).fit(LIST, Y)
    assert model.interrupted_
    assert model.committee_.temperatures.tolist() == [1.0]
    assert model.score(LIST, Y) > 0.8


def test_an_interrupt_of_the_calibration_leaves_the_model_as_trained(monkeypatch):
    plain = plain_classifier().fit(LIST, Y)
    solver = InterruptedSolver(monkeypatch, LimitedMemoryBFGS, 3)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the best model so far"):
        model = plain_classifier(calibrate=True).fit(LIST, Y)
    assert solver.n_runs == 3
    assert_same(model, plain)


@BOTH
def test_an_interrupt_of_a_search_keeps_what_was_scored(kind, monkeypatch):
    # The first candidate takes three runs, one for each fold.
    solver = InterruptedSolver(monkeypatch, ExpectationMaximisation, 2)
    with pytest.raises(KeyboardInterrupt):
        small_search(kind, tol=0.0).fit(LIST, Y)
    assert solver.n_runs == 2
    solver = InterruptedSolver(monkeypatch, ExpectationMaximisation, 5)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the best model so far"):
        model = small_search(kind).fit(LIST, Y)
    assert solver.n_runs - 5 == (kind == "density")  # which is fitted to all sequences
    assert model.interrupted_
    assert model.n_states_ == 1
    model.check_consistent()
    assert np.isfinite(results(model, LIST)[0]).all()


def test_an_interrupt_of_the_last_fits_keeps_models_of_a_part(monkeypatch):
    whole = InterruptedSolver(monkeypatch, ExpectationMaximisation, 0)
    small_search("classifier", tol=0.0).fit(LIST, Y)
    last = whole.n_runs
    monkeypatch.undo()
    InterruptedSolver(monkeypatch, ExpectationMaximisation, last)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the best model so far"):
        model = small_search("classifier", tol=0.0).fit(LIST, Y)
    assert model.interrupted_
    model.check_consistent()
    assert model.score(LIST, Y) > 0.8


# A second fit ------------------------------------------------------------------------


@BOTH
def test_a_second_fit_replaces_the_first_one(kind):
    model = MAKERS[kind](exits=True).fit(FORMS["pandas"][0], Y)
    X, y = make_panel(seed=5)
    model.set_params(exits=False).fit(X, y)
    assert not hasattr(model, "exits_")
    assert not hasattr(model, "feature_names_in_")
    assert_same(model, MAKERS[kind]().fit(X, y), X)


@BOTH
def test_a_second_fit_that_fails_leaves_the_first_one(kind, monkeypatch):
    model = MAKERS[kind]().fit(LIST, Y)
    before = {**vars(model)}
    with pytest.raises(ValueError, match="lengths"):
        model.fit(STACKED, Y)
    monkeypatch.setattr(Problem, "assess", broken)
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(LIST, Y)
    assert vars(model) == before


def broken(*args, **kwargs):
    raise RuntimeError("broken")


# Refused -----------------------------------------------------------------------------

REFUSED = [
    ({"n_states": 0}, "n_states"),
    ({"n_states": "many"}, "n_states"),
    ({"n_components": 0}, "n_components"),
    ({"topology": "circular"}, "topology='circular' is not one of"),
    ({"topology": [[1, 1]]}, r"square mask.*shape \(1, 2\)"),
    ({"topology": [["a", "b"], ["c", "d"]]}, "square mask"),
    ({"topology": np.eye(3)}, "mask of 3 states, and n_states=2"),
    ({"topology": [[1, 1], [0, 0]]}, "no transition from state 1"),
    ({"covariance_type": "round"}, "covariance_type"),
    ({"exits": "yes"}, "exits"),
    ({"autoregressive": 1}, "autoregressive"),
    ({"autoregressive": True}, "covariance_type='diag'"),
    ({"transition_prior": 0.0}, "transition_prior"),
    ({"covariance_prior": -1.0}, "covariance_prior"),
    ({"variance_floor": 0.0}, "variance_floor"),
    ({"smoothing": -1.0}, "smoothing"),
    ({"categorical_features": ["absent"]}, "absent"),
    ({"column_shapes": "round"}, "column_shapes"),
    ({"n_init": 0}, "n_init"),
    ({"max_iter": 0}, "max_iter"),
    ({"tol": -1.0}, "tol"),
    ({"effort": "none"}, "effort"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"random_state": "seed"}, "random_state"),
    ({"verbose": -1}, "verbose"),
]
REFUSED_OF_CLASSIFIERS = [
    (
        {"solver": "baum-welch", "autoregressive": True, "covariance_type": "full"},
        "use solver='lbfgs' or autoregressive=False",
    ),
    ({"objective": "best"}, "objective"),
    ({"tradeoff": -1.0}, "tradeoff"),
    ({"length_power": 3.0}, "length_power"),
    ({"margin": 0.0}, "margin"),
    ({"loss": "squared"}, "loss"),
    ({"solver": "newton"}, "solver"),
    ({"n_steps": 0}, "n_steps"),
    ({"validation_fraction": 2.0}, "validation_fraction"),
    ({"patience": 0}, "patience"),
    ({"calibrate": "yes"}, "calibrate.* True, False or 'auto'"),
    ({"autoregressive": "yes"}, "autoregressive.* True, False or 'auto'"),
    ({"class_prior": "flat"}, "class_prior"),
    ({"class_prior": [0.2, 0.3, 0.5]}, "class_prior"),
    ({"class_prior": [-1.0, 2.0]}, "class_prior"),
    ({"class_weight": {"sideways": 2.0}}, "class_weight"),
    ({"class_weight": "heavy"}, "class_weight"),
    ({"unlabelled_weight": -1.0}, "unlabelled_weight"),
]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        *((kind, *case) for kind, case in itertools.product(MAKERS, REFUSED)),
        *(("classifier", *case) for case in REFUSED_OF_CLASSIFIERS),
    ],
)
def test_wrong_options_are_named(kind, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MAKERS[kind](**options).fit(LIST, Y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": STACKED}, "lengths"),
        ({"X": []}, "no sequences|at least one"),
        ({"X": [*LIST[:-1], np.empty((0, 2))]}, "frames"),
        ({"X": [], "y": []}, "it is empty"),
        ({"X": LIST[:-1]}, "y has 24 labels, but X has 23 sequences"),
        (
            {"X": [LIST[0], np.full((4, 2), np.inf), *LIST[2:]]},
            "row 4 is frame 0 of sequence 1",
        ),
        ({"lengths": LENGTHS + 1}, "lengths"),
        ({"sample_weight": np.ones(3)}, "sample_weight has 3 weights, .* 24 sequences"),
        ({"sample_weight": -np.ones(N)}, "sample_weight"),
        ({"sample_weight": np.where(Y == "up", 1.0, 0.0)}, "'down' has no sequence"),
        ({"y": None}, "y"),
        ({"y": [np.full(len(x), "up") for x in LIST]}, "A row has one label"),
        ({"y": np.full(N, -1)}, "label"),
        ({"y": LENGTHS + 0.5}, "continuous|class"),
    ],
)
def test_wrong_sequences_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        plain_classifier().fit(**{"X": LIST, "y": Y, **arguments})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_": np.full((2, 2), 0.5)}, "start_ is not that of the model"),
        ({"class_prior_": np.array([0.9, 0.1])}, "class_prior_ is not that"),
        ({"classes_": np.array(["up", "up"])}, "classes_ has a label twice"),
        ({"classes_": np.array(["a", "b", "c"])}, "other classes than classes_"),
        ({"committee_": None}, "committee_"),
        ({"model_": 3}, "model_"),
        ({"n_features_in_": 3}, "n_features_in_ is wrong"),
        ({"n_states": 0}, "n_states"),
        ({"n_iter_": -1}, "n_iter_"),
    ],
)
def test_models_that_no_fit_leaves_are_not_saved(changes, message, tmp_path):
    model = plain_classifier().fit(LIST, Y)
    vars(model).update(changes)
    with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "model")


def test_searches_see_a_part_of_long_sequences(monkeypatch):
    monkeypatch.setattr(chain_search, "_MOST_FRAMES", 100)
    X, y = make_panel(40)
    seen = []
    whole = ChainSearch.scores

    def scores(self, plan, budget):
        seen.append(sum(len(held.labels) for _, held in self._parts))
        return whole(self, plan, budget)

    monkeypatch.setattr(ChainSearch, "scores", scores)
    HybridHMMClassifier(covariance_type="diag", random_state=0).fit(X, y)
    assert 6 <= seen[0] < 40
