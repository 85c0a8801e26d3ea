"""Hidden Markov models against the enumeration of all paths, and in extreme cases."""

from dataclasses import fields, is_dataclass, replace

import hmmlearn_results
import numpy as np
import pytest
from scipy.special import softmax
from sequence_helpers import (
    TOPOLOGIES,
    Enumeration,
    covering_cases,
    emissions,
    make_chains,
    make_sequences,
    read_frames,
    reference_emissions,
    reference_log_likelihood,
)

from hybridmix.data.rows import Rows
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.models.chain_committee import ChainCommittee

LENGTHS = (3, 1, 4, 2, 1, 4)
# Every test runs in NumPy and with compiled kernels.
pytestmark = pytest.mark.usefixtures("kernels")

LABELS = np.array([0, 1, 1, 0, 0, 1])
EMISSIONS = pytest.mark.parametrize("name", emissions())
# All topologies and holes for each kind of emission; exits and mixtures meet them all.
CASES = covering_cases(
    topology=TOPOLOGIES, with_exits=(False, True), n_mixed=(1, 2), missing=(0.0, 0.4)
)


def split(array, lengths=LENGTHS):
    """Split the last axis of an array by sequences."""
    return np.split(array, np.cumsum(lengths)[:-1], axis=-1)


def assert_same(found, expected):
    """Compare statistics field by field."""
    for field in fields(expected):
        a, b = getattr(found, field.name), getattr(expected, field.name)
        for own, other in zip(
            *(v if isinstance(v, tuple) else (v,) for v in (a, b)), strict=True
        ):
            if is_dataclass(other):
                assert_same(own, other)
            else:
                np.testing.assert_allclose(own, other, rtol=1e-7, atol=1e-9)


def enumerated(model, rows):
    """All paths of sequences in classes, and posteriors of components (C, K, M, F)."""
    by_state, by_component = reference_emissions(model, rows)
    parts = split(by_state, rows.lengths)
    paths = [
        [Enumeration(model, label, part[label]) for part in parts]
        for label in range(model.n_classes)
    ]
    return paths, by_component


@EMISSIONS
@pytest.mark.parametrize(("topology", "with_exits", "n_mixed", "missing"), CASES)
def test_all_paths_of_states(name, topology, with_exits, n_mixed, missing):
    model = make_chains(name, topology, with_exits, n_mixed)
    model.check_consistent()
    rows = make_sequences(LENGTHS, missing)
    paths, by_component = enumerated(model, rows)
    prepared = model.prepare(rows)

    expected = np.array([[p.log_likelihood for p in own] for own in paths])
    expected += model.log_class_prior[:, None]
    np.testing.assert_allclose(model.evaluate(prepared).log_joint, expected, rtol=1e-10)
    own = model.evaluate_own(prepared, LABELS).log_joint
    is_own = np.arange(2)[:, None] == LABELS
    np.testing.assert_allclose(own, np.where(is_own, expected, -np.inf), rtol=1e-10)

    chosen = [paths[label][n] for n, label in enumerate(LABELS)]
    states = model.state_probabilities(prepared, LABELS)
    np.testing.assert_allclose(
        states, np.concatenate([p.states for p in chosen], axis=1).T, atol=1e-10
    )
    scores, best = model.paths(prepared, LABELS)
    expected_scores = [p.best_score for p in chosen] + model.log_class_prior[LABELS]
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-10)
    np.testing.assert_array_equal(best, np.concatenate([p.best for p in chosen]))

    weights = np.random.default_rng(0).normal(size=(2, len(LENGTHS)))
    found = model.evaluate(prepared).statistics(weights)
    assert_same(found, enumerated_statistics(model, rows, paths, by_component, weights))
    # Those that look at their own class have the same statistics if others weigh nothing.
    weights = np.where(is_own, weights, 0.0)
    found = model.evaluate_own(prepared, LABELS).statistics(weights)
    assert_same(found, enumerated_statistics(model, rows, paths, by_component, weights))


def enumerated_statistics(model, rows, paths, by_component, weights):
    """Statistics of signed weights (C, n), by what all paths say of frames."""
    total = model.zero_statistics()
    spread = by_component.copy()
    for label, own in enumerate(paths):
        for number, (path, weight) in enumerate(zip(own, weights[label], strict=True)):
            total.classes[label] += weight
            total.starts[label] += weight * path.states[:, 0]
            total.exits[label] += weight * path.states[:, -1]
            total.transitions[label] += weight * path.transitions
            split(spread)[number][label] *= weight * path.states[:, None]
    total.counts += spread.sum(axis=-1)
    prepared = model.family.prepare(read_frames(model, rows))
    _, notes = model.family.evaluate(prepared, model.components)
    total.components.add(
        model.family.accumulate(
            prepared,
            model.components,
            spread.reshape(model.n_components, -1),
            notes,
        )
    )
    return total


# Where scaled numbers are too small --------------------------------------------------


def extreme_sequences(kind):
    """Sequences whose frames no state, or not the one that can be reached, expects."""
    lengths = np.array([1, 30, 12, 30, 5])
    rows = make_sequences(lengths, seed=2)
    real = rows.frames.real.copy()
    if kind == "far away":
        real *= 1e3
    elif kind == "farther with every frame":
        real[:, :60] *= np.logspace(0, 4, 60)
    elif kind == "one frame":
        real[:, 20] = 1e5
    else:
        real[:] = np.where(np.arange(real.shape[1]) % 2, 30.0, -30.0)
    return SequenceRows(Rows(real, None, rows.frames.codes), lengths)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("with_exits", [False, True])
@pytest.mark.parametrize(
    "kind", ["far away", "farther with every frame", "one frame", "to and fro"]
)
def test_extreme_frames(kind, topology, with_exits):
    model = make_chains("diag", topology, with_exits, n_states=4)
    rows = extreme_sequences(kind)
    prepared = model.prepare(rows)
    log_emission = split(reference_emissions(model, rows)[0], rows.lengths)
    expected = [
        [reference_log_likelihood(model, label, part[label]) for part in log_emission]
        for label in range(2)
    ]
    expected += model.log_class_prior[:, None]
    evaluation = model.evaluate(prepared)
    np.testing.assert_allclose(evaluation.log_joint, expected, rtol=1e-9)
    statistics = evaluation.statistics(np.ones(expected.shape))
    n_frames, n = rows.lengths.sum(), rows.n_rows
    np.testing.assert_allclose(statistics.counts.sum(axis=(1, 2)), n_frames)
    np.testing.assert_allclose(statistics.starts.sum(axis=1), n)
    np.testing.assert_allclose(statistics.exits.sum(axis=1), n)
    np.testing.assert_allclose(statistics.transitions.sum(axis=(1, 2)), n_frames - n)
    assert np.all(statistics.transitions[np.isneginf(model.log_transition)] == 0.0)
    labels = np.arange(n) % 2
    scores, _ = model.paths(model.prepare(rows), labels)
    assert np.all(scores <= expected[labels, np.arange(n)] * (1 - 1e-12))


def test_mass_that_comes_back_from_below_the_smallest_number():
    """The state that the first frame all but excludes explains the others better."""
    model = make_chains("diag", n_classes=1, n_states=2)
    components = replace(
        model.components,
        means=np.zeros((2, 5)) + [[0.0], [10.0]] * np.eye(5)[0],
        variances=np.ones((2, 5)),
    )
    with np.errstate(divide="ignore"):
        stay = np.log(np.eye(2))[None]
    model = replace(model, components=components, log_moves=stay)
    # Log density ratios of the second state to the first, frame by frame.
    for first, later in ((-700.0, 300.0), (-2000.0, 300.0), (-2000.0, 290.0)):
        ratios = np.array([first] + [later] * 7)
        real = np.zeros((5, 8))
        real[0] = 5.0 + ratios / 10.0
        frames = Rows(real, None, np.zeros((2, 8), np.int32))
        rows = SequenceRows(frames, np.array([8]))
        [[part]] = reference_emissions(model, rows)[:1]
        expected = reference_log_likelihood(model, 0, part)
        evaluation = model.evaluate(model.prepare(rows))
        assert evaluation.log_joint.item() == pytest.approx(expected, rel=1e-12)
        share = Enumeration(model, 0, part).states
        found = model.state_probabilities(model.prepare(rows), np.zeros(1, int))
        np.testing.assert_allclose(found, share.T, atol=1e-9)


# Another implementation --------------------------------------------------------------


@pytest.mark.parametrize("case", hmmlearn_results.CASES)
def test_hmmlearn_agrees(case):
    """With results that were recorded, or of hmmlearn itself where it is installed."""
    model, rows = hmmlearn_results.problem(*case)
    expected = hmmlearn_results.recorded(*case)
    prepared, labels = model.prepare(rows), np.zeros(rows.n_rows, int)
    found = model.evaluate(prepared).log_joint[0]
    np.testing.assert_allclose(found, expected["log_likelihood"], rtol=1e-9)
    scores, states = model.paths(prepared, labels)
    np.testing.assert_allclose(scores, expected["score"], rtol=1e-9)
    np.testing.assert_array_equal(states, expected["states"])
    np.testing.assert_allclose(
        model.state_probabilities(prepared, labels), expected["posterior"], atol=1e-9
    )


# What does not fit together ----------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": 3}, "family"),
        ({"log_mixing": np.zeros((2, 3))}, "log_mixing is not an array of 3 axes"),
        ({"log_mixing": np.full((2, 3, 1), 0.1)}, "log_mixing"),
        ({"log_start": np.zeros((2, 2))}, "log_start"),
        ({"log_start": np.zeros((2, 3))}, "log_start"),
        ({"log_start": np.full((2, 3), np.nan)}, "log_start"),
        ({"log_moves": np.full((2, 3, 5), -np.log(5.0))}, "log_moves"),
        ({"log_moves": np.full((2, 3, 3), -np.inf)}, "log_moves"),
        ({"log_class_prior": np.zeros(2)}, "log_class_prior"),
        ({"log_class_prior": np.zeros(1)}, "log_class_prior"),
        ({"mean_lengths": np.array([1.0, 0.0])}, "mean_lengths"),
        ({"concentration": 0.0}, "concentration"),
        ({"autoregressive": 1}, "autoregressive"),
        ({"components": make_chains("diag", n_states=2).components}, "6|components"),
    ],
)
def test_parts_that_do_not_fit_together(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(make_chains("diag"), **changes).check_consistent()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": ()}, "no members"),
        ({"members": [make_chains("diag")]}, "members"),
        ({"members": (make_chains("diag"), 3)}, "member"),
        ({"members": (make_chains("diag"), make_chains("diag", n_classes=3))}, "classes"),
        ({"shares": np.array([0.5, 0.4])}, "sum to one"),
        ({"shares": np.array([1.5, -0.5])}, "shares"),
        ({"temperatures": np.array([1.0, 0.0])}, "temperatures"),
        ({"uniform_shares": np.array([0.0, 1.0])}, "uniform_shares"),
        ({"length_power": -1.0}, "length_power"),
    ],
)
def test_committees_that_do_not_fit_together(changes, message):
    members = make_chains("diag"), make_chains("tied", "left-right")
    half, ones = np.full(2, 0.5), np.ones(2)
    committee = ChainCommittee(members, half, ones, np.zeros(2), 1.0)
    committee.check_consistent()
    with pytest.raises(ValueError, match=message):
        replace(committee, **changes).check_consistent()


def test_committees_mix_calibrated_probabilities():
    rows = make_sequences([3, 1, 6])
    members = make_chains("diag"), make_chains("tied", "left-right", seed=1)
    joints = [m.evaluate(m.prepare(rows)).log_joint for m in members]
    committee = ChainCommittee(
        members, np.array([0.3, 0.7]), np.array([2.0, 0.5]), np.array([0.1, 0.0]), 0.5
    )
    found = committee.log_probabilities(
        lambda member: joints[members.index(member)], rows.lengths
    )
    expected = 0.0
    for joint, share, temperature, uniform in zip(
        joints, (0.3, 0.7), (2.0, 0.5), (0.1, 0.0), strict=True
    ):
        votes = softmax(joint / np.sqrt(rows.lengths) / temperature, axis=0)
        expected = expected + share * ((1 - uniform) * votes + uniform / 2)
    np.testing.assert_allclose(np.exp(found), expected)
