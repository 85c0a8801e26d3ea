"""Methods of fitted hidden Markov models, compared with sums over all paths."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from hybridmix import HMMDensity, HybridHMMClassifier, Sequences
from hybridmix.estimators import chain_typicality
from hybridmix.models.chain_sampling import (
    Ends,
    drawn_frames,
    drawn_numbers,
    drawn_sequences,
)

LONGEST = 5


def numeric(rng, label, length):
    """Frames of two columns whose mean moves from state to state."""
    centres = np.array([[0.0, 0.0], [2.0, 1.0], [1.0, -2.0]]) + label
    states = np.sort(rng.integers(0, 3, length))
    return 10.0 * (centres[states] + rng.normal(size=(length, 2)))


def mixed(rng, label, length):
    """A data frame with a real column, categories and a column of two categories."""
    values = numeric(rng, label, length)
    return pd.DataFrame(
        {
            "level": values[:, 0],
            "kind": pd.Categorical(np.where(values[:, 1] > 0, "up", "down")),
            "flag": rng.random(length) < 0.2 + 0.6 * label,
        }
    )


def smooth(rng, label, length):
    """Frames that depend on the frame before."""
    values = np.zeros((length, 2))
    turn = np.array([[0.9, 0.3], [-0.3, 0.9]])
    for time in range(1, length):
        noise = rng.normal(size=2) * 0.3
        values[time] = (turn if label else turn.T) @ values[time - 1] + 0.2 + noise
    return values


def with_holes(rng, sequences, share=0.15):
    for frames in sequences[::2]:
        hole = rng.random(frames.shape) < share
        if isinstance(frames, pd.DataFrame):
            frames["level"] = frames["level"].mask(hole[:, 0])
            frames["kind"] = frames["kind"].mask(hole[:, 1])
        else:
            frames[hole] = np.nan
    return sequences


KINDS = {
    "plain": (numeric, {"topology": "left-right", "covariance_type": "full"}),
    "exits": (numeric, {"exits": True, "n_components": 2, "topology": "ergodic"}),
    "mixed": (mixed, {"topology": "ergodic", "exits": True}),
    "autoregressive": (smooth, {"autoregressive": True, "covariance_type": "full"}),
}


def data_of(kind, n=24):
    rng = np.random.default_rng(5)
    make, options = KINDS[kind]
    y = np.arange(n) % 2
    X = [make(rng, label, int(rng.integers(2, LONGEST + 1))) for label in y]
    options = {"topology": "left-right", "covariance_type": "diag", **options}
    return with_holes(rng, X), y, options


@pytest.fixture(scope="module", params=KINDS)
def classifier(request):
    X, y, options = data_of(request.param)
    # The committee is of one, but calibrated, and divides by a power of the length.
    model = HybridHMMClassifier(
        2, tradeoff=1.0, n_steps=5, calibrate=True, random_state=0, **options
    )
    return model.fit(X, np.array(["no", "yes"])[y]), X


@pytest.fixture(scope="module", params=KINDS)
def density(request):
    X, _, options = data_of(request.param)
    return HMMDensity(2, random_state=0, **options).fit(X), X


@pytest.fixture(scope="module")
def committee():
    X, y, _ = data_of("plain", 40)
    return HybridHMMClassifier(random_state=0, n_steps=10).fit(X, y), X


def path_log_densities(model, X, label=0):
    """Yield all paths of sequences, and log p(x, path | class) in units of columns."""
    read = model._encode(X, None)
    chains, volumes = model.model_, read.log_volume()
    for number in range(len(X)):
        rows = read.rows[np.array([number])]
        [piece] = chains.prepare(rows).all_classes.pieces
        logs, _ = chains.family.evaluate(piece.frames(), chains.components)
        logs = logs.reshape(*chains.log_mixing.shape, -1) + chains.log_mixing[..., None]
        emission = logsumexp(logs, axis=2)[label]
        paths = list(itertools.product(range(chains.n_states), repeat=rows.lengths[0]))
        scores = []
        for path in paths:
            score = chains.log_start[label, path[0]] - volumes[number]
            score += sum(chains.log_transition[label, a, b] for a, b in _pairs(path))
            score += sum(emission[state, time] for time, state in enumerate(path))
            if chains.models_ends:
                score += chains.log_exit[label, path[-1]]
            scores.append(score)
        yield np.array(paths), np.array(scores)


def _pairs(path):
    return itertools.pairwise(path)


# States ---------------------------------------------------------------------------------


def test_decode_finds_the_best_of_all_paths(density):
    model, X = density
    scores, states = model.decode(X)
    expected = path_log_densities(model, X)
    for score, path, (paths, logs) in zip(scores, states, expected, strict=True):
        np.testing.assert_allclose(score, logs.max())
        np.testing.assert_array_equal(path, paths[logs.argmax()])


def test_states_have_the_posterior_of_all_paths(density):
    model, X = density
    found = model.state_proba(X)
    for own, (paths, logs) in zip(found, path_log_densities(model, X), strict=True):
        weights = np.exp(logs - logsumexp(logs))
        expected = [[weights[states == k].sum() for k in (0, 1)] for states in paths.T]
        np.testing.assert_allclose(own, expected, atol=1e-10)


def test_densities_are_sums_over_all_paths(density):
    model, X = density
    expected = [logsumexp(logs) for _, logs in path_log_densities(model, X)]
    np.testing.assert_allclose(model.score_samples(X), expected)
    assert model.score(X) == pytest.approx(np.mean(expected))


def test_states_of_a_classifier_are_those_of_the_class_that_is_asked_for(classifier):
    model, X = classifier
    for number, label in enumerate(model.classes_):
        scores, states = model.decode(X, y=np.full(len(X), label))
        posterior = model.state_proba(X, y=np.full(len(X), label))
        log_prior = model.model_.log_class_prior[number]
        for k, (paths, logs) in enumerate(path_log_densities(model, X, number)):
            assert scores[k] == pytest.approx(logs.max() + log_prior)
            np.testing.assert_array_equal(states[k], paths[logs.argmax()])
            np.testing.assert_allclose(posterior[k].sum(axis=1), 1.0)


def test_the_class_whose_states_are_shown_is_the_predicted_one(classifier):
    model, X = classifier
    found, given = model.decode(X), model.decode(X, y=model.predict(X))
    np.testing.assert_array_equal(found[0], given[0])
    for own, other in zip(found[1], given[1], strict=True):
        np.testing.assert_array_equal(own, other)


def test_one_class_may_be_asked_for_of_all_sequences(classifier):
    model, X = classifier
    for method in (
        lambda y: model.decode(X, y=y)[1],
        lambda y: model.state_proba(X, y=y),
    ):
        for one, other in zip(method("no"), method(["no"] * len(X)), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("y", [["no"], ["other"] * 2, ["no", None]])
def test_classes_to_decode_must_be_known(classifier, y):
    model, X = classifier
    with pytest.raises(ValueError, match=r"inconsistent|'other'|sequence 1"):
        model.decode(X[:2], y=y)


def test_joint_densities_have_the_density_and_the_classes_of_the_others(classifier):
    model, X = classifier
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(logsumexp(joint, axis=1), model.score_samples(X))
    own = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(own, model.predict_proba(X), atol=1e-9)


# Filtering ------------------------------------------------------------------------------


def frames_of(sequence):
    if isinstance(sequence, pd.DataFrame):
        return list(sequence.itertuples(index=False, name=None))
    return list(sequence)


def test_a_filter_says_what_the_frames_so_far_say(classifier):
    model, X = classifier
    stream = model.filter()
    for sequence in X[:6]:
        stream.reset()
        for time, frame in enumerate(frames_of(sequence), 1):
            prefix = [sequence[:time]]
            found = stream.update(frame)
            np.testing.assert_allclose(found, model.predict_proba(prefix)[0])
            np.testing.assert_allclose(stream.log_density, model.score_samples(prefix)[0])
            own = model.state_proba(prefix)[0][-1]
            np.testing.assert_allclose(stream.state_proba, own, atol=1e-12)
            assert stream.n_frames == time


def test_a_filter_asks_all_members_of_a_committee(committee):
    model, X = committee
    assert len(model.committee_.members) > 1
    stream = model.filter()
    np.testing.assert_allclose(stream.proba, model.class_prior_)
    for time, frame in enumerate(X[1], 1):
        found = stream.update(frame)
        np.testing.assert_allclose(found, model.predict_proba([X[1][:time]])[0])


def test_increments_of_a_filter_sum_to_the_density(density):
    model, X = density
    for sequence in X[:6]:
        stream = model.filter()
        total = sum(stream.update(frame) for frame in frames_of(sequence))
        np.testing.assert_allclose(total, model.score_samples([sequence])[0])
        own = model.state_proba([sequence])[0][-1]
        np.testing.assert_allclose(stream.state_proba, own, atol=1e-12)


def test_long_streams_do_not_underflow():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    model = HMMDensity(2, topology="ergodic", covariance_type="diag", random_state=0)
    model.fit([x])
    stream = model.filter()
    # A frame of density zero in floats, far from all states.
    for frame in [*x, [1e3]]:
        stream.update(frame)
    whole = model.score_samples([np.vstack([x, [[1e3]]])])[0]
    np.testing.assert_allclose(stream.log_density, whole)


def test_a_filter_takes_one_frame_of_the_right_columns(classifier):
    model, X = classifier
    stream = model.filter()
    with pytest.raises(ValueError, match="one frame at a time"):
        stream.update(X[0][:2])
    with pytest.raises(ValueError, match="7 value"):
        stream.update([0.0] * 7)
    with pytest.raises(ValueError, match="1 value"):
        stream.update(0.0)
    assert stream.n_frames == 0
    stream.update(X[0][:1])
    assert stream.n_frames == 1


def test_values_with_names_are_filtered_by_their_names():
    X, y, options = data_of("mixed")
    model = HybridHMMClassifier(2, tradeoff=1.0, **options).fit(X, y)
    row, expected = X[1].iloc[0], model.predict_proba([X[1][:1]])[0]
    turned = row[["flag", "kind", "level"]]
    frames = [row, row.tolist(), row.to_dict(), turned, turned.to_dict()]
    for frame in frames:
        np.testing.assert_allclose(model.filter().update(frame), expected)
    with pytest.raises(ValueError, match=r"Absent: 'kind'\. Unknown: none"):
        model.filter().update(row.drop("kind"))
    with pytest.raises(ValueError, match=r"Absent: none\. Unknown: 'sort'"):
        model.filter().update({**row.to_dict(), "sort": 1})


def test_values_with_names_are_in_order_where_columns_have_none():
    X, y, options = data_of("plain")
    model = HybridHMMClassifier(2, tradeoff=1.0, **options).fit(X, y)
    row = pd.Series(X[1][0], index=["a", "b"])
    np.testing.assert_array_equal(
        model.filter().update(row), model.filter().update(X[1][0])
    )
    with pytest.raises(ValueError, match="columns of training have no names"):
        model.filter().update(row.to_dict())


def test_a_filter_of_one_column_takes_numbers():
    X = [np.arange(6.0), np.arange(3.0)]
    model = HMMDensity(2, topology="left-right", random_state=0).fit(X)
    assert model.filter().update(1.0) == model.filter().update([1.0])


# Forecasts ------------------------------------------------------------------------------


def drawn_next(model, X, n_steps, n=40_000):
    """Draw what follows the first sequence, step by step, in the units of the columns."""
    chains, generator = model.model_, np.random.default_rng(0)
    rows = model._encode(X[:1], None).rows
    classes = next(model._next_classes(rows, 1))
    last = model._last_belief(rows, chains)
    joint = np.exp(last.log_states + classes[:, None])[..., 0]
    number = drawn_numbers(np.repeat(joint.reshape(1, -1), n, axis=0), generator)
    labels, states = np.divmod(number, chains.n_states)
    frames = rows.frames[np.full(n, rows.lengths[0] - 1)]
    moves = np.exp(chains.log_transition)
    for _ in range(n_steps):
        states = drawn_numbers(moves[labels, states], generator)
        mixed = drawn_numbers(np.exp(chains.log_mixing)[labels, states], generator)
        components = (labels * chains.n_states + states) * chains.n_mixed + mixed
        frames = drawn_frames(chains, components, frames, generator)
        yield model.schema_.restored(frames), frames.codes


@pytest.mark.parametrize("kind", ["plain", "mixed", "autoregressive"])
def test_forecasts_are_the_moments_of_what_follows(kind):
    X, _, options = data_of(kind)
    model = HMMDensity(3, random_state=0, **{**options, "exits": False}).fit(X)
    complete = [frames.dropna() if kind == "mixed" else frames for frames in X[1:2]]
    found, std = model.predict_next(complete, n_steps=3, return_std=True)
    real = list(model.schema_.real)
    for step, (values, codes) in enumerate(drawn_next(model, complete, 3)):
        frame = np.asarray(found[0])[step]
        error = values.std(axis=1) / 200.0
        means = frame[real].astype(float)
        np.testing.assert_array_less(np.abs(means - values.mean(axis=1)), 5.0 * error)
        np.testing.assert_allclose(std[0, step, real], values.std(axis=1), rtol=0.03)
        for j, own in zip(model.schema_.categorical, codes, strict=False):
            place = model.schema_.categorical.index(j)
            counts = np.bincount(own)
            if np.ptp(counts) > 1000:
                assert frame[j] == model.schema_.categories[place][counts.argmax()]
            assert np.isnan(std[0, step, j])


@pytest.mark.parametrize("classifier", ["plain", "exits"], indirect=True)
def test_forecasts_sum_over_classes_and_paths(classifier):
    """Where ends are modelled, all of it is given that the sequence goes on."""
    model, X = classifier
    chains = model.model_
    joint = []
    for number in range(2):
        paths, logs = next(path_log_densities(model, X[:1], number))
        if chains.models_ends:
            logs = logs - chains.log_exit[number, paths[:, -1]]
        last = [logsumexp(logs[paths[:, -1] == k]) for k in range(2)]
        moved = logsumexp(np.array(last)[:, None] + chains.log_transition[number], axis=0)
        joint.append(moved + chains.log_class_prior[number])
    joint = np.array(joint)
    committee = model.committee_
    evidence = logsumexp(joint, axis=1) / len(X[0]) / committee.temperatures[0]
    classes = np.exp(evidence - logsumexp(evidence))
    classes = (
        classes * (1 - committee.uniform_shares[0]) + committee.uniform_shares[0] / 2
    )
    states = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    by_state = np.einsum("ckm,ckmd->ckd", model.mixing_, model.means_)
    expected = np.einsum("c,ck,ckd->d", classes, states, by_state)
    np.testing.assert_allclose(model.predict_next(X[:1])[0, 0], expected)


def test_forecasts_look_like_the_frames_of_training():
    X, _, options = data_of("mixed")
    model = HMMDensity(2, random_state=0, **options).fit(X)
    found = model.predict_next(X, n_steps=2)
    assert len(found) == len(X)
    assert list(found[0].columns) == list(X[0].columns)
    assert found[0].dtypes.equals(X[0].dtypes)
    with pytest.raises(ValueError, match="n_steps"):
        model.predict_next(X, n_steps=0)


# Samples --------------------------------------------------------------------------------


def test_samples_have_the_statistics_of_the_model(density):
    model, _ = density
    sequences, states = model.sample(2000, lengths=4, random_state=0)
    assert set(sequences.lengths.tolist()) == {4}
    states = np.array(states)
    # Paths given the length are those of the chain, times the end.
    paths = np.array(list(itertools.product((0, 1), repeat=4)))
    logs = [_log_path(model.model_, path) for path in paths]
    expected = np.exp(logs - logsumexp(logs))
    codes = states @ [8, 4, 2, 1]
    shares = np.bincount(codes, minlength=16) / len(codes)
    np.testing.assert_allclose(shares, expected, atol=0.045)
    # Mean log densities of new samples agree with each other.
    log_densities = model.score_samples(sequences)
    other = model.score_samples(model.sample(2000, lengths=4, random_state=1)[0])
    spread = np.hypot(log_densities.std(), other.std()) / np.sqrt(2000)
    assert abs(log_densities.mean() - other.mean()) < 4.5 * spread


def _log_path(chains, path):
    score = chains.log_start[0, path[0]]
    score += sum(chains.log_transition[0, a, b] for a, b in _pairs(path))
    return score + (chains.log_exit[0, path[-1]] if chains.models_ends else 0.0)


def test_frames_of_samples_have_the_moments_of_their_states():
    X, _, options = data_of("plain")
    model = HMMDensity(2, random_state=0, **options).fit(X)
    sequences, states = model.sample(3000, lengths=5, random_state=0)
    labels = np.concatenate(states)
    for state in range(2):
        own = sequences.frames[labels == state]
        error = own.std(axis=0) / np.sqrt(len(own))
        difference = np.abs(own.mean(axis=0) - model.means_[state, 0])
        np.testing.assert_array_less(difference, 4.5 * error)
        covariance = np.cov(own.T)
        np.testing.assert_allclose(
            covariance, model.covariances_[state, 0], atol=0.1 * covariance.max()
        )


def test_samples_of_autoregressive_models_follow_their_regressions():
    X, _, options = data_of("autoregressive")
    model = HMMDensity(1, random_state=0, **{**options, "topology": "ergodic"}).fit(X)
    sequences, _ = model.sample(2000, lengths=6, random_state=0)
    frames = sequences.frames.reshape(2000, 6, 2)
    before, after = frames[:, :-1].reshape(-1, 2), frames[:, 1:].reshape(-1, 2)
    expected = before @ model.regressions_.reshape(2, 2).T + model.intercepts_.ravel()
    left = np.cov((after - expected).T)
    np.testing.assert_allclose((after - expected).mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(left, model.covariances_.reshape(2, 2), atol=0.01)


def test_sequences_end_by_chance_where_ends_are_modelled():
    X, y, options = data_of("exits")
    model = HybridHMMClassifier(2, objective="likelihood", random_state=0, **options).fit(
        X, y
    )
    sequences, labels = model.sample(4000, y=1, random_state=0)
    assert set(labels.tolist()) == {1}
    longest = int(sequences.lengths.max())
    ends, chains = Ends.of(model.model_, longest), model.model_
    start = np.exp(chains.log_start[1])
    expected = [
        start @ ends.weights[step, 1] * np.exp(ends.logs[step, 1]) for step in range(4)
    ]
    shares = np.bincount(sequences.lengths, minlength=5)[1:5] / 4000
    np.testing.assert_allclose(shares, expected, atol=0.035)


def test_classes_of_samples_depend_on_given_lengths():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = [rng.normal(size=(2 if label else 9, 1)) for label in y]
    model = HybridHMMClassifier(
        1, objective="likelihood", topology="ergodic", covariance_type="diag",
        exits=True, random_state=0,
    ).fit(X, y)  # fmt: skip
    _, labels = model.sample(3000, lengths=1, random_state=0)
    leaving = model.exits_[:, 0]
    assert labels.mean() == pytest.approx(leaving[1] / leaving.sum(), abs=0.04)


def test_lengths_of_samples_without_ends_are_those_of_training():
    X, y, options = data_of("plain")
    model = HybridHMMClassifier(2, objective="likelihood", random_state=0, **options).fit(
        X, y
    )
    sequences, labels = model.sample(4000, random_state=0)
    for label in (0, 1):
        mean = sequences.lengths[labels == label].mean()
        assert mean == pytest.approx(model.mean_lengths_[label], abs=0.15)
    assert labels.mean() == pytest.approx(model.class_prior_[1], abs=0.04)
    again, _ = model.sample(4000, random_state=0)
    np.testing.assert_array_equal(again.frames, sequences.frames)


def test_samples_look_like_the_sequences_of_training():
    X, y, options = data_of("mixed")
    model = HybridHMMClassifier(2, objective="likelihood", random_state=0, **options).fit(
        X, y
    )
    sequences, labels = model.sample(3, lengths=[2, 4, 1], y=[0, 1, 1])
    assert isinstance(sequences, Sequences)
    assert sequences.lengths.tolist() == [2, 4, 1]
    assert labels.tolist() == [0, 1, 1]
    assert sequences[0].dtypes.equals(X[0].dtypes)
    assert model.predict(sequences).shape == (3,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": 2, "lengths": 0}, "lengths"),
        ({"n_samples": 2, "lengths": [3]}, "n_samples=2"),
        ({"n_samples": 2, "y": ["no"]}, "inconsistent"),
        ({"n_samples": 2, "y": "maybe"}, "'maybe'"),
    ],
)
def test_impossible_samples_are_refused(classifier, options, message):
    with pytest.raises(ValueError, match=message):
        classifier[0].sample(**options)


# Typicality -----------------------------------------------------------------------------


def test_sequences_of_the_model_are_typical_of_it(classifier):
    model, _ = classifier
    sequences, _ = model.sample(400, lengths=[3, 12] * 200, random_state=1)
    found = model.typicality(sequences)
    for level in (0.05, 0.5):
        share = np.mean(found <= np.log(level))
        assert share == pytest.approx(level, abs=0.06 + 0.1 * level)


def test_short_and_incomplete_sequences_are_as_typical_as_others():
    X, y, options = data_of("plain")
    model = HybridHMMClassifier(2, objective="likelihood", random_state=0, **options).fit(
        X, y
    )
    sequences, _ = model.sample(300, lengths=[2, 20] * 150, random_state=1)
    frames = sequences.frames.copy()
    holes = np.random.default_rng(0).random(frames.shape) < 0.3
    frames[holes] = np.nan
    found = model.typicality(Sequences(frames, sequences.lengths))
    for own in (found[::2], found[1::2]):
        assert np.mean(own <= np.log(0.5)) == pytest.approx(0.5, abs=0.15)
    # The same number does not depend on the other sequences.
    alone = model.typicality([frames[:2]])
    np.testing.assert_allclose(alone[0], found[0])


def test_few_long_sequences_are_drawn_for_typicality(density, monkeypatch):
    model, _ = density
    n_drawn = []

    def counting(chains, labels, lengths, generator):
        n_drawn.append(len(labels))
        return drawn_sequences(chains, labels, lengths, generator)

    monkeypatch.setattr(chain_typicality, "drawn_sequences", counting)
    monkeypatch.setattr(chain_typicality, "_N_FRAMES", 3000)
    sequences, _ = model.sample(3, lengths=[5, 30, 300], random_state=1)
    assert np.all(model.typicality(sequences) > np.log(1e-4))
    assert sorted(n_drawn) == [40, 100, 400]


def test_outliers_are_not_typical(density):
    model, X = density
    typical = model.typicality(X)
    assert np.all(typical <= 0.0)
    far = [frames.copy() for frames in X[1::2]]
    for frames in far:
        if isinstance(frames, pd.DataFrame):
            frames["level"] += 1000.0
        else:
            frames += 1000.0
    assert model.typicality(far).max() < np.log(1e-6)
    assert typical.mean() > np.log(0.1)


def test_sequences_without_values_are_typical():
    X, _, options = data_of("plain")
    model = HMMDensity(2, random_state=0, **options).fit(X)
    empty = Sequences(np.full((4, 2), np.nan), [4])
    assert model.typicality(empty)[0] == 0.0
