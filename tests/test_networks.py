"""The network classifier and the embedding: options, rows of all kinds, files."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from hybridmix import (
    HybridMixtureClassifier,
    MixtureEmbedding,
    MixtureNetworkClassifier,
    load,
    report,
    save,
)
from hybridmix._parallel import Workers
from hybridmix.cli import main
from hybridmix.data import Dataset
from hybridmix.estimators.fitted_network import layer_attributes
from hybridmix.models.network import Network
from hybridmix.objectives import Blend, ConditionalLikelihood, Likelihood
from hybridmix.problem import Problem
from hybridmix.training import annihilation
from hybridmix.training.annihilation import component_weights, reduced
from hybridmix.training.network_options import usual_temperature

IRIS, LABELS = load_iris(return_X_y=True)
FIXED = {"n_components": 2, "covariance_type": "full", "random_state": 0}
KINDS = ("posterior", "log_joint", "linear", "experts")


def network(training="joint", **options):
    """Return a network that chooses nothing by itself, except for what is given."""
    return MixtureNetworkClassifier(training, **{**FIXED, "n_steps": 8, **options})


def mixed_table(n_rows=120, seed=0):
    """Return numbers and words, with holes in both, and two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_rows)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)) + y[:, None], columns=list("abc"))
    frame["word"] = np.where(rng.random(n_rows) < 0.2 + 0.6 * y, "yes", "no")
    frame = frame.mask(rng.random(frame.shape) < 0.15)
    return frame, y


def every_training():
    return {
        "stages": network("stages"),
        "joint": network("joint"),
        "joint, pool": network("joint", mixtures="pool", n_components=4),
        "joint, linked": network("joint", mixtures="linked"),
        "joint, all features": network("joint", features=KINDS),
        "joint, sparse": network("joint", l1=1.0),
        "joint, margin": network("joint", objective="margin"),
        "alternating": network("alternating", link=10.0, l1=0.01),
        "annihilation": network("stages", n_components=4, annihilate="bic"),
        "automatic": MixtureNetworkClassifier(random_state=0, n_steps=5),
        "fast": MixtureNetworkClassifier(random_state=0, effort="fast"),
    }


@pytest.mark.parametrize("name", every_training())
def test_iris_is_learned(name):
    model = every_training()[name].fit(IRIS[::2], LABELS[::2])
    assert model.score(IRIS[1::2], LABELS[1::2]) > 0.9
    np.testing.assert_allclose(model.predict_proba(IRIS).sum(axis=1), 1.0)
    log_density = np.logaddexp.reduce(model.predict_joint_log_proba(IRIS), axis=1)
    np.testing.assert_allclose(log_density, model.score_samples(IRIS), atol=1e-8)


@pytest.mark.parametrize("name", ["joint, all features", "alternating", "automatic"])
def test_mixed_tables_with_holes_and_unlabelled_rows(name):
    X, y = mixed_table()
    y = y.astype(object)
    y[::3] = None
    model = every_training()[name].fit(X, y)
    assert set(model.predict(X)) <= {0, 1}
    expected = model.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(pl.from_pandas(X)), expected)
    assert np.isfinite(model.typicality(X)).all()
    assert not model.impute(X).isna().any(axis=None)
    rows, labels = model.sample(5, random_state=0)
    assert list(rows.columns) == list(X.columns)
    assert set(labels) <= {0, 1}


def test_labels_of_one_column_and_other_kinds():
    words = np.array(["setosa", "versicolor", "virginica"])[LABELS]
    model = network("stages").fit(IRIS, words)
    assert set(model.predict(IRIS)) == set(words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        column = network("stages").fit(IRIS, LABELS[:, None])
    np.testing.assert_array_equal(column.weights_, model.weights_)


@pytest.mark.parametrize("name", ["joint", "joint, pool", "alternating"])
def test_a_weight_of_two_is_two_rows(name):
    X, y = mixed_table(80)
    y = np.where(np.arange(80) % 5 == 0, -1, y)
    weights = np.where(np.arange(80) % 2, 2.0, 1.0)
    index = np.repeat(np.arange(80), weights.astype(int))
    options = {"n_components": 1, "unlabelled_weight": 0.5}
    weighted = every_training()[name].set_params(**options)
    repeated = clone(weighted).fit(X.iloc[index], y[index])
    weighted.fit(X, y, sample_weight=weights)
    found, expected = weighted.predict_proba(X), repeated.predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_class_weights_are_sample_weights():
    weights = {0: 1.0, 1: 3.0, 2: 1.0}
    by_class = network("stages", class_weight=weights).fit(IRIS, LABELS)
    by_row = network("stages").fit(IRIS, LABELS, np.where(LABELS == 1, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.weights_, by_row.weights_)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    models = [network("joint", n_jobs=n, n_steps=3).fit(X, y) for n in (1, 2)]
    found = [model.predict_proba(X[:500]) for model in models]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(*[model.weights_ for model in models])


def test_the_automatic_choice_repeats_itself():
    model = MixtureNetworkClassifier(random_state=0, n_steps=3)
    first, second = (clone(model).fit(IRIS, LABELS) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(IRIS), second.predict_proba(IRIS))
    names = [row["candidate"] for row in first.leaderboard_]
    assert any(name.endswith("stages") for name in names)
    assert any(name.endswith("joint") for name in names)
    for member in first.members_:
        assert member.training in ("stages", "joint")
        assert member.network_.n_classes == 3
    with pytest.raises(ValueError, match="members_"):
        first.embed(IRIS)


# Training -------------------------------------------------------------------------------


def problem_of(model, X, y, objective):
    table = model.schema_.encode(model._read(X))
    dataset = Dataset.arrange(table, y)
    return dataset, Problem(dataset, objective, model.network_, Workers(1))


def test_joint_training_raises_the_objective_of_stages():
    X, y = mixed_table(200)
    objective = Blend(Likelihood(1.0), ConditionalLikelihood(), 10.0)
    values = []
    for training in ("stages", "joint"):
        model = network(training, n_steps=30).fit(X, y)
        _, problem = problem_of(model, X, y, objective)
        found = problem.assess(model.network_).value
        values.append(found + model.network_.log_prior_density())
    assert values[1] > values[0] + 1.0


@pytest.mark.parametrize("training", ["stages", "joint"])
def test_the_output_layer_is_optimal_in_the_end(training):
    X, y = mixed_table(200)
    model = network(training).fit(X, y)
    objective = Blend(Likelihood(1.0), ConditionalLikelihood(), 10.0)
    dataset, problem = problem_of(model, X, y, objective)
    output = model.network_.output
    found = problem.assess(model.network_).statistics.output
    slopes = found.by_weights - output.l2 * output.weights
    assert np.abs(slopes).max() < 1e-3 * dataset.n_rows
    assert np.abs(found.by_bias).max() < 1e-3 * dataset.n_rows


def test_absolute_penalties_give_zeros():
    dense = network("joint", features=KINDS).fit(IRIS, LABELS)
    sparse = network("joint", features=KINDS, l1=1.0).fit(IRIS, LABELS)
    assert np.all(dense.weights_ != 0.0)
    assert np.mean(sparse.weights_ == 0.0) > 0.3
    assert sparse.score(IRIS, LABELS) > 0.9


def test_classes_of_linked_mixtures_look_at_their_own_components():
    model = network("joint", mixtures="linked", features="posterior").fit(IRIS, LABELS)
    own = model.component_classes_ == np.arange(3)[:, None]
    assert np.all(model.weights_[~own] == 0.0)
    assert np.all(model.weights_[own] != 0.0)


def test_temperatures_go_by_the_effective_dimension():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30)) + 2.0 * (np.arange(60) % 2)[:, None]
    y = np.arange(60) % 2
    full = network("stages", n_components=1).fit(X, y)
    assert full.embedding_temperature_ == 6.0
    subspace = network(
        "stages", n_components=1, covariance_type="subspace", n_factors=10
    ).fit(X, y)
    assert subspace.embedding_temperature_ == 2.0
    assert usual_temperature(full.model_, full.schema_) == 6.0
    given = network("stages", embedding_temperature=3.0).fit(IRIS, LABELS)
    assert given.embedding_temperature_ == 3.0


def test_annihilation_by_the_criterion_finds_two_components():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + np.repeat([[-2.0, 0.0], [2.0, 0.0]], 150, axis=0)
    y = np.repeat([0, 1], 150)
    model = network("stages", n_components=4, annihilate="bic", features="posterior")
    assert model.fit(X, y).n_components_.tolist() == [1, 1]


def test_annihilation_by_weights_leaves_fewer_components():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + np.repeat([[-2.0, 0.0], [2.0, 0.0]], 150, axis=0)
    y = np.repeat([0, 1], 150)
    options = {"n_components": 5, "features": "posterior", "l1": 0.3, "l2": 0.0}
    model = network("alternating", annihilate="weights", n_steps=30, **options).fit(X, y)
    assert model.n_components_.sum() < 10
    assert model.score(X, y) > 0.95


def test_a_reduced_network_forgets_a_component_and_its_features():
    model = network("stages", features=KINDS, n_components=3).fit(IRIS, LABELS)
    kept = np.array([0, 1, 2, 4, 5, 6, 7, 8])
    smaller = reduced(model.network_, kept)
    smaller.check_consistent()
    assert smaller.n_components == 8
    assert np.diff(smaller.density.offsets).tolist() == [3, 2, 3]
    assert smaller.embedding.n_features == 8 + 8 + 4 + 8 * 4


def test_weights_of_components_do_not_depend_on_a_constant():
    model = network("alternating", features="posterior", n_components=3)
    found = model.fit(IRIS, LABELS).network_
    own = found.density.class_of == np.arange(3)[:, None]
    shifted = replace(
        found, output=replace(found.output, weights=found.output.weights + 5.0 * own)
    )
    np.testing.assert_allclose(component_weights(shifted), component_weights(found))


def test_the_link_gives_rows_to_components_that_matter():
    plain, linked = (
        network(
            "alternating", features="posterior", n_components=3, link=link, n_steps=20
        ).fit(IRIS, LABELS)
        for link in (0.0, 200.0)
    )
    assert not np.allclose(plain.mixing_, linked.mixing_, atol=0.02)
    weights = component_weights(linked.network_)
    for label in range(3):
        own = linked.component_classes_ == label
        heaviest = np.argmax(weights[own])
        assert linked.mixing_[own][heaviest] > 1.0 / 3.0


# Refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training": "both"}, "training='both' is not one of"),
        ({"mixtures": "none"}, "mixtures='none' is not one of"),
        ({"features": "square"}, "features='square' must be one or several of"),
        ({"features": ()}, "must be one or several of"),
        ({"embedding_temperature": 0.0}, "temperature=0.0 is not valid"),
        ({"l1": -1.0}, "l1=-1.0 is not valid"),
        ({"link": 1.0}, "link=1.0 is the weight of a prior of training='alternating'"),
        ({"annihilate": "weights"}, "annihilate='weights' needs training='alternating'"),
        ({"annihilate": "all"}, "annihilate='all' is not one of"),
        ({"training": "alternating", "mixtures": "pool"}, "needs mixtures='linked'"),
        (
            {"training": "alternating", "link": 1.0, "features": "linear"},
            "add 'posterior'",
        ),
        ({"objective": "likelihood"}, "objective='likelihood' is not one of"),
        ({"n_components": 0}, "n_components=0 must be a whole number"),
        ({"n_components": {0: 1}}, "n_components has no entry for the class 1"),
        ({"init": np.zeros((2, 4))}, "init must be"),
        ({"unlabelled": [1, 2]}, "must be a single mark"),
        ({"cv": "five"}, "cv='five' is not valid"),
    ],
)
def test_options_are_refused(options, message):
    model = network().set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(IRIS, LABELS)
    assert not hasattr(model, "model_")


def test_labels_are_needed():
    with pytest.raises(ValueError, match="requires y"):
        network().fit(IRIS, None)
    with pytest.raises(ValueError, match="requires y"):
        MixtureEmbedding(2, mixtures="classes").fit(IRIS)


@pytest.mark.parametrize("training", ["stages", "joint"])
def test_an_interrupt_of_em_leaves_a_classifier(training, monkeypatch):
    from hybridmix.solvers.em import ExpectationMaximisation

    solve = ExpectationMaximisation.solve

    def interrupted(self, *given, **named):
        return replace(solve(self, *given, **named), interrupted=True)

    monkeypatch.setattr(ExpectationMaximisation, "solve", interrupted)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = network(training).fit(IRIS, LABELS)
    assert model.interrupted_
    assert model.score(IRIS, LABELS) > 0.9


def test_an_interrupt_of_annihilation_keeps_the_best_network(monkeypatch):
    calls = []

    def counted(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return 100.0 - len(calls)

    monkeypatch.setattr(annihilation, "criterion", counted)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = network("stages", n_components=4, annihilate="bic").fit(IRIS, LABELS)
    assert model.n_components_.sum() == 11


# The embedding --------------------------------------------------------------------------


@pytest.mark.parametrize("mixtures", ["pool", "classes"])
@pytest.mark.parametrize("features", [*KINDS, KINDS])
def test_embeddings(mixtures, features):
    X, y = mixed_table()
    embedding = MixtureEmbedding(
        2,
        features=features,
        mixtures=mixtures,
        **{name: FIXED[name] for name in ("covariance_type", "random_state")},
    )
    found = embedding.set_output(transform="pandas").fit_transform(X, y)
    assert found.shape == (120, len(embedding.get_feature_names_out()))
    assert not found.isna().any(axis=None)
    assert len(set(found.columns)) == found.shape[1]
    plain = embedding.set_output(transform="default")
    np.testing.assert_allclose(plain.transform(pl.from_pandas(X)), found.to_numpy())


def test_posteriors_are_those_of_the_density():
    embedding = MixtureEmbedding(
        3, covariance_type="full", temperature=1.0, random_state=0
    )
    found = embedding.fit_transform(IRIS)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    labels = found.argmax(axis=1)
    np.testing.assert_array_equal(
        labels, embedding._best_component(embedding._encode(IRIS))
    )


def test_linear_features_are_filled_and_named():
    X, _ = mixed_table()
    embedding = MixtureEmbedding(
        2, covariance_type="full", features="linear", random_state=0
    )
    names = embedding.fit(X).get_feature_names_out().tolist()
    assert names == ["a", "b", "c", "word=no", "word=yes"]
    cells = embedding.transform(X)
    np.testing.assert_allclose(cells[:, 3:].sum(axis=1), 1.0)
    known = X["word"].notna().to_numpy()
    assert set(np.unique(cells[known, 3:])) == {0.0, 1.0}


def test_layers_can_be_stacked():
    X, y = mixed_table(200)
    layers = make_pipeline(
        MixtureEmbedding(
            4, covariance_type="full", features=("posterior", "linear"), random_state=0
        ),
        MixtureEmbedding(
            3, covariance_type="diag", random_state=0, column_shapes="plain"
        ),
        LogisticRegression(),
    )
    assert cross_val_score(layers, X, y, cv=3).mean() > 0.7


def test_classes_that_are_named_do_not_see_unlabelled_rows_as_one():
    y = np.where(np.arange(150) % 2, LABELS, -1)
    embedding = MixtureEmbedding(1, mixtures="classes", covariance_type="full").fit(
        IRIS, y
    )
    assert embedding.component_classes_.tolist() == [0, 1, 2]


# Files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["joint, all features", "joint, pool", "joint, linked", "automatic"]
)
def test_networks_can_be_saved(name, tmp_path):
    X, y = mixed_table()
    model = every_training()[name].fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize("mixtures", ["pool", "classes"])
def test_embeddings_can_be_saved(mixtures, tmp_path):
    X, y = mixed_table()
    model = MixtureEmbedding(2, features=KINDS, mixtures=mixtures, random_state=0).fit(
        X, y
    )
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").transform(X), model.transform(X)
    )


def tampered():
    """Return changes of a fitted network, and what the refusal says."""

    def output(**values):
        return lambda net: replace(net, output=replace(net.output, **values))

    def embedding(**values):
        return lambda net: replace(net, embedding=replace(net.embedding, **values))

    return {
        "weights": (output(weights=np.zeros((3, 2))), "weights do not fit"),
        "bias": (output(bias=np.array([0.0, np.nan, 0.0])), "bias has values"),
        "penalty": (output(l2=-np.ones(10)), "l2 has negative values"),
        "slack": (output(slack=np.zeros((3, 10))), "still split"),
        "kinds": (embedding(kinds=("linear", "posterior")), "kinds are not known"),
        "temperature": (embedding(temperature=-1.0), "temperature is not positive"),
        "spread": (embedding(spread=np.zeros(6)), "spread has values"),
        "filler": (embedding(filler=None), "filler does not fit"),
        "columns": (embedding(n_real=3), "weights do not fit"),
        "components": (
            embedding(centre=np.zeros(5), spread=np.ones(5)),
            "other components than the density",
        ),
        "other weights": (output(weights=np.ones((3, 10))), "weights_ is not that"),
    }


@pytest.mark.parametrize("name", tampered())
def test_networks_that_were_tampered_with_are_refused(name, tmp_path):
    change, message = tampered()[name]
    model = network("stages").fit(IRIS, LABELS)
    assert isinstance(model.network_, Network)
    model.network_ = change(model.network_)
    if name != "other weights":
        vars(model).update(layer_attributes(model.network_))
    with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "model")


def test_a_network_without_its_network_is_refused(tmp_path):
    model = network("stages").fit(IRIS, LABELS)
    del model.network_
    with pytest.raises(ValueError, match="there is no network_"):
        save(model, tmp_path / "model")


# Elsewhere ------------------------------------------------------------------------------


def test_a_network_can_do_what_the_classifier_cannot():
    """Two classes that share a component differ by a line within it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int)
    options = {"n_components": 1, "covariance_type": "spherical"}
    found = network("stages", **options).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    assert found > 0.95
    rival = HybridMixtureClassifier("likelihood", **options).fit(X[::2], y[::2])
    assert rival.score(X[1::2], y[1::2]) <= found


def test_reports_are_about_networks_as_well():
    X = pd.DataFrame(IRIS[::2], columns=["a", "b", "c", "d"])
    model = network("stages").fit(X, LABELS[::2])
    page = str(report(model, X, LABELS[::2]))
    assert "MixtureNetworkClassifier" in page


def test_commands_take_networks(tmp_path, capsys):
    X = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"])
    save(network("stages").fit(X[::2], LABELS[::2]), tmp_path / "model.hmx")
    X.assign(label=LABELS)[1::2].to_csv(tmp_path / "other.csv", index=False)
    files = [str(tmp_path / "model.hmx"), str(tmp_path / "other.csv")]
    for command in (["inspect", files[0]], ["evaluate", *files, "--target", "label"]):
        assert main(command) == 0
    assert "accuracy" in capsys.readouterr().out
