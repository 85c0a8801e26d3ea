"""Pictures of hidden states."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sequence_tools import fitted_gestures

from hybridmix import HMMDensity, MixtureDensity
from hybridmix.plots import StateDisplay, TransitionDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    with mpl.rc_context({"backend": "Agg", "axes.titlelocation": "center"}):
        yield
    plt.close("all")


@pytest.fixture(scope="module")
def fitted():
    return fitted_gestures()


def test_states_of_a_sequence(fitted):
    model, X, _ = fitted
    display = StateDisplay.from_estimator(model, X, sequence=2)
    np.testing.assert_allclose(display.probabilities, model.state_proba(X)[2])
    np.testing.assert_array_equal(display.path, model.decode(X)[1][2])
    predicted = model.predict(X)[2]
    assert display.ax_.get_title() == f"sequence {X.ids[2]}, states of {predicted}"
    shades = display.ax_.collections[0].get_array()
    np.testing.assert_allclose(np.reshape(shades, (3, -1)), display.probabilities.T)
    drawn = display.ax_.patches[-1].get_data().values
    np.testing.assert_array_equal(drawn, display.path)


def test_states_of_a_given_class(fitted):
    model, X, _ = fitted
    _, ax = plt.subplots()
    display = StateDisplay.from_estimator(model, X, label="wave", ax=ax)
    assert display.figure_ is ax.figure
    [expected] = model.state_proba(X[[0]], y=["wave"])
    np.testing.assert_allclose(display.probabilities, expected)


def test_stacked_frames_with_lengths(fitted):
    model, X, _ = fitted
    display = StateDisplay.from_estimator(model, X.frames, X.lengths, sequence=1)
    assert display.ax_.get_title().startswith("sequence 1, states of")
    assert len(display.path) == X.lengths[1]


def test_transitions_of_each_class(fitted):
    model = fitted[0]
    display = TransitionDisplay.from_estimator(model)
    assert [ax.get_title() for ax in display.axes_] == ["circle", "wave"]
    np.testing.assert_allclose(display.transitions, model.transitions_)
    texts = [text.get_text() for text in display.axes_[0].texts]
    for state in range(3):
        assert str(state) in texts
        assert f"{model.transitions_[0, state, state]:.2f}" in texts
    # Two arrows lead from state to state; chains do not go back.
    arrows = [getattr(text, "arrow_patch", None) for text in display.axes_[0].texts]
    assert sum(arrow is not None for arrow in arrows) == 2
    _, axes = plt.subplots(1, 2)
    again = TransitionDisplay.from_estimator(model, axes=axes)
    assert again.figure_ is axes[0].figure
    with pytest.raises(ValueError, match="2 classes"):
        TransitionDisplay.from_estimator(model, axes=axes[0])


def test_densities_have_one_graph(fitted):
    X = fitted[1]
    density = HMMDensity(4, topology="ergodic", covariance_type="diag", random_state=0)
    display = TransitionDisplay.from_estimator(density.fit(X))
    assert len(display.axes_) == 1
    np.testing.assert_allclose(display.transitions[0], density.transitions_)
    states = StateDisplay.from_estimator(density, X)
    assert states.ax_.get_title() == f"sequence {X.ids[0]}"
    with pytest.raises(ValueError, match="has no classes"):
        StateDisplay.from_estimator(density, X, label="wave")


def test_what_cannot_be_drawn(fitted):
    model, X, _ = fitted
    with pytest.raises(ValueError, match="sequence"):
        StateDisplay.from_estimator(model, X, sequence=30)
    with pytest.raises(TypeError, match="no hidden states: use HybridHMMClassifier"):
        TransitionDisplay.from_estimator(MixtureDensity())


@pytest.mark.parametrize("goes_back", [False, True])
def test_circles_of_many_states_leave_room_for_arrows(goes_back):
    transitions = np.eye(9) / 2.0 + np.eye(9, k=1) / 2.0
    transitions[8, 0 if goes_back else 8] += 0.5
    display = TransitionDisplay(transitions[None], [""]).plot()
    ax = display.axes_[0]
    display.figure_.canvas.draw()
    [nodes] = ax.lines
    places = ax.transData.transform(np.column_stack(nodes.get_data()))
    apart = 72.0 * np.linalg.norm(np.diff(places, axis=0), axis=1) / display.figure_.dpi
    assert nodes.get_markersize() < 0.8 * apart.min()
