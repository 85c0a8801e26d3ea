"""Tables of many classes or many columns: what is refused, what is warned of."""

import time
import warnings

import numpy as np
import pytest
from helpers import make_dataset, plain_classifier

from hybridmix import HybridMixtureClassifier, MixtureDensity
from hybridmix._parallel import Workers
from hybridmix.data import Rows
from hybridmix.families import DiagonalGaussian, VariancePrior
from hybridmix.families.moments import DiagonalParameters
from hybridmix.models import Mixture
from hybridmix.objectives import Blend, ConditionalLikelihood, Likelihood
from hybridmix.problem import Problem
from hybridmix.training import effort


@pytest.fixture
def many_classes():
    """150 classes of four rows each, in six columns, some of them without a label."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(150), 4)
    X = 2.0 * rng.normal(size=(150, 6))[y] + rng.normal(size=(600, 6))
    return X, y


def hybrid_problem(X, labels):
    rng = np.random.default_rng(1)
    rows = Rows(X.T.copy(), None, np.empty((0, len(X)), np.int32))
    dataset = make_dataset(rows, labels, rng.uniform(0.5, 2.0, size=len(X)))
    n_classes = labels.max() + 1
    model = Mixture(
        DiagonalGaussian(VariancePrior(np.ones(X.shape[1]))),
        DiagonalParameters(
            rng.normal(size=(n_classes, X.shape[1])), np.ones((n_classes, X.shape[1]))
        ),
        np.zeros(n_classes),
        np.full(n_classes, -np.log(n_classes)),
        tuple(range(n_classes + 1)),
    )
    objective = Blend(Likelihood(0.5), ConditionalLikelihood(), 3.0)
    return Problem(dataset, objective, model, Workers(1)), dataset, objective, model


def test_small_classes_share_chunks_and_change_nothing(many_classes):
    X, y = many_classes
    y = np.where(np.arange(len(y)) % 7 == 0, -1, y)
    problem, dataset, objective, model = hybrid_problem(X, y)
    assert len(problem._rows.chunks) < 15
    assessment = problem.assess(model)
    evaluation = model.evaluate(model.prepare(dataset.rows))
    values, weights = objective.values_and_weights(evaluation.log_joint, dataset.labels)
    values, weights = values * dataset.weights, weights * dataset.weights
    np.testing.assert_allclose(assessment.parts, values.sum(axis=1), rtol=1e-12)
    by_class = [values[:, dataset.labels == c].sum() for c in [*range(150), -1]]
    np.testing.assert_allclose(assessment.by_class, by_class, rtol=1e-10, atol=1e-10)
    wrong = evaluation.log_joint.argmax(axis=0) != dataset.labels
    wrong &= dataset.labels >= 0
    assert assessment.wrong == pytest.approx(dataset.weights[wrong].sum())
    counts = assessment.statistics.counts
    np.testing.assert_allclose(counts, weights.sum(axis=1), atol=1e-10)


def test_long_training_of_many_classes_is_announced(many_classes, monkeypatch):
    monkeypatch.setattr(effort, "_LONG_SECONDS", 0.0)
    model = plain_classifier(covariance_type="diag", n_steps=2)
    with pytest.warns(UserWarning, match=r"150 classes.*objective='likelihood'"):
        model.fit(*many_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(objective="likelihood").fit(*many_classes)


def test_short_training_is_not_announced(many_classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain_classifier(covariance_type="diag", n_steps=2).fit(*many_classes)


@pytest.mark.parametrize(
    ("seconds", "words"), [(100.0, "2 minutes"), (7200.0, "2 hours")]
)
def test_durations_are_in_words(seconds, words):
    assert effort._duration(seconds) == words


@pytest.mark.parametrize("estimator", [HybridMixtureClassifier, MixtureDensity])
def test_covariances_beyond_the_memory_are_refused_at_once(estimator, monkeypatch):
    monkeypatch.setattr("hybridmix.training.memory.physical_memory", lambda: 2.0**34)
    X = np.random.default_rng(0).normal(size=(50, 20_000))
    before = time.process_time()
    with pytest.raises(ValueError, match=r"20000 real columns.*'diag'.*'subspace'"):
        estimator(covariance_type="full").fit(X, np.arange(50) % 2)
    assert time.process_time() - before < 2.0
