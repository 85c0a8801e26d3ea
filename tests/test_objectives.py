"""The contract of objectives: values, derivatives, limits."""

import numpy as np
import pytest

from hybridmix.objectives import (
    Blend,
    ConditionalLikelihood,
    Likelihood,
    Margin,
    PerFrame,
    PredictiveLikelihood,
    ScaledMargin,
)
from hybridmix.objectives.margin import soft_hinge

OBJECTIVES = {
    "likelihood": Likelihood(0.3),
    "conditional": ConditionalLikelihood(),
    "margin": Margin(sharpness=3.0, margin=1.5, width=0.7),
    "ramp": Margin(sharpness=3.0, margin=1.5, width=0.7, largest_loss=2.0),
    "scaled margin": ScaledMargin(sharpness=2.0, power=0.4),
    "hybrid": Blend(Likelihood(0.3), Margin(), 5.0),
    "likelihood + conditional": Blend(Likelihood(), ConditionalLikelihood(), 2.0),
    "per frame": PerFrame(Margin(3.0, 1.5, 0.7), 0.5),
    "hybrid per frame": Blend(Likelihood(0.3), PerFrame(ConditionalLikelihood()), 5.0),
}


def sample(n_classes=4, n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    log_joint = rng.normal(size=(n_classes, n_rows)) * 3.0 - 5.0
    return log_joint, rng.integers(-1, n_classes, size=n_rows)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_are_the_derivatives_of_the_values(name, n_classes):
    objective = OBJECTIVES[name].of_units(1 + np.arange(200) % 9)
    log_joint, labels = sample(n_classes)
    values, weights = objective.values_and_weights(log_joint, labels)
    assert values.shape == (len(objective.parts), 200)
    step = 1e-6
    for c in range(n_classes):
        shift = np.zeros((n_classes, 1))
        shift[c] = step
        up, _ = objective.values_and_weights(log_joint + shift, labels)
        down, _ = objective.values_and_weights(log_joint - shift, labels)
        slopes = (up - down).sum(axis=0) / (2 * step)
        np.testing.assert_allclose(weights[c], slopes, atol=1e-5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_signs_are_as_declared_and_arguments_are_left_alone(name):
    log_joint, labels = sample()
    before = log_joint.copy()
    _, weights = OBJECTIVES[name].values_and_weights(log_joint, labels)
    np.testing.assert_array_equal(log_joint, before)
    assert (weights.min() < 0) == OBJECTIVES[name].signed


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_single_class_and_unlabelled_rows_are_no_trouble(name):
    log_joint, _ = sample(n_classes=1)
    values, weights = OBJECTIVES[name].values_and_weights(log_joint, np.zeros(200, int))
    assert np.isfinite(values).all()
    assert np.isfinite(weights).all()
    log_joint, _ = sample()
    values, _ = OBJECTIVES[name].values_and_weights(log_joint, np.full(200, -1))
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_extreme_densities_stay_finite(name):
    log_joint = np.array([[-1e100, 0.0, -1e5], [-1e5, -1e100, -1e5]])
    values, weights = OBJECTIVES[name].values_and_weights(log_joint, np.array([0, 0, 1]))
    assert np.isfinite(values).all()
    assert np.isfinite(weights).all()


def test_conditional_likelihood_is_the_log_posterior():
    log_joint, labels = sample()
    labels = np.abs(labels)
    values, weights = ConditionalLikelihood().values_and_weights(log_joint, labels)
    posterior = np.exp(log_joint) / np.exp(log_joint).sum(axis=0)
    np.testing.assert_allclose(values[0], np.log(posterior[labels, np.arange(200)]))
    np.testing.assert_allclose(weights.sum(axis=0), 0.0, atol=1e-12)


def test_margin_approaches_the_hinge_of_the_best_rival():
    log_joint, labels = sample()
    labels = np.abs(labels)
    rows = np.arange(200)
    rivals = log_joint.copy()
    rivals[labels, rows] = -np.inf
    margins = log_joint[labels, rows] - rivals.max(axis=0)
    hard = np.maximum(0.0, 1.5 - margins)
    sharp = Margin(sharpness=1e4, margin=1.5, width=1e-6)
    np.testing.assert_allclose(
        -sharp.values_and_weights(log_joint, labels)[0][0], hard, atol=1e-3
    )
    ramp = Margin(sharpness=1e4, margin=1.5, width=1e-6, largest_loss=2.0)
    np.testing.assert_allclose(
        -ramp.values_and_weights(log_joint, labels)[0][0],
        np.minimum(hard, 2.0),
        atol=1e-3,
    )


def test_rows_beyond_the_margin_have_no_weight():
    log_joint = np.array([[0.0, 0.0], [-10.0, -0.1]])
    _, weights = Margin(margin=1.0, width=0.5).values_and_weights(
        log_joint, np.zeros(2, int)
    )
    np.testing.assert_array_equal(weights[:, 0], 0.0)
    np.testing.assert_allclose(weights[:, 1], [1.0, -1.0])


def test_scaled_margin_is_the_published_function():
    margins = np.linspace(-20.0, 20.0, 401)
    objective = ScaledMargin(power=0.3)
    values, slopes = objective.of_margins(margins)
    y = np.exp(0.3 * margins)
    expected = np.where(y <= 1, y + 0.5, np.where(y < 2, 2 - 0.5 * (y - 2) ** 2, 2.0))
    np.testing.assert_allclose(values, np.log(expected), atol=1e-12)
    published = np.where(
        y <= 1, 0.3 * y / (y + 0.5), np.where(y < 2, 0.3 * (2 - y) / (2 - y / 2), 0.0)
    )
    np.testing.assert_allclose(slopes, published, atol=1e-12)


def test_soft_hinge_joins_smoothly():
    values, slopes = soft_hinge(np.array([-2.0, -1.0, 0.0, 1.0, 3.0]), 1.0)
    np.testing.assert_allclose(values, [0.0, 0.0, 0.25, 1.0, 3.0])
    np.testing.assert_allclose(slopes, [0.0, 0.0, 0.5, 1.0, 1.0])


def test_the_predictive_likelihood_compares_two_views_of_a_row():
    log_joint, labels = sample(n_classes=2)
    values, weights = PredictiveLikelihood().values_and_weights(log_joint, labels)
    np.testing.assert_array_equal(values[0], log_joint[0] - log_joint[1])
    np.testing.assert_array_equal(weights, [[1.0] * 200, [-1.0] * 200])


def test_objectives_per_frame_are_those_of_scaled_log_densities():
    log_joint, labels = sample()
    lengths = 1 + np.arange(200) % 7
    for term in (Margin(), ConditionalLikelihood(), Likelihood(0.3)):
        for power in (0.0, 0.5, 1.0):
            scales = lengths**-power
            values, weights = (
                PerFrame(term, power)
                .of_units(lengths)
                .values_and_weights(log_joint, labels)
            )
            expected = term.values_and_weights(log_joint * scales, labels)
            np.testing.assert_allclose(values, expected[0])
            np.testing.assert_allclose(weights, expected[1] * scales)


def test_objectives_per_frame_are_the_plain_ones_where_lengths_are_unknown():
    log_joint, labels = sample()
    objective = PerFrame(Margin())
    assert objective.parts == Margin.parts
    assert (objective.needs_rivals, objective.signed) == (True, True)
    assert not PerFrame(Likelihood()).signed
    for found, expected in zip(
        objective.values_and_weights(log_joint, labels),
        Margin().values_and_weights(log_joint, labels),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("objective", [PerFrame("margin"), PerFrame(Margin(), -1.0)])
def test_objectives_per_frame_check_themselves(objective):
    with pytest.raises(ValueError, match=r"term|power"):
        objective.check_consistent()


def test_lengths_reach_all_parts_of_a_blend():
    lengths = np.array([1, 4])
    inner = PerFrame(ConditionalLikelihood())
    blend = Blend(inner, Blend(Likelihood(), inner, 2.0), 3.0).of_units(lengths)
    for part in (blend.first, blend.second.second):
        np.testing.assert_allclose(part.scales, [1.0, 0.25])
