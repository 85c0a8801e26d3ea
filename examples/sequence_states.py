"""The states of a machine, found in a long signal with holes.

Vibration and temperature of a machine that rests, idles or works; nobody has said when.
Each sensor fails now and then, and once both do. A hidden Markov model finds the states,
and says in the holes how sure it is.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, GREEN, LIGHT, ORANGE, Options, finish, read_options
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from sklearn.metrics import confusion_matrix

from hybridmix import HMMDensity

STATES = ("rests", "idles", "works")
COLORS = (BLUE, GREEN, ORANGE)
MEANS = np.array([[0.2, 20.0], [0.8, 22.0], [1.4, 27.0]])
DEVIATIONS = np.array([[0.15, 2.0], [0.25, 2.0], [0.4, 2.5]])
STAY = 0.97
# Sensor (or both), first and last frame of the failures that are drawn.
FAILURES = ((0, 60, 110), (1, 150, 230), (None, 290, 315))
N_SHOWN = 400


def draw_signal(n_frames: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a signal (T, 2) with holes, and the states (T,) of the machine."""
    generator = np.random.default_rng(seed)
    states = np.zeros(n_frames, int)
    for time in range(1, n_frames):
        stays = generator.random() < STAY
        others = [s for s in range(len(STATES)) if s != states[time - 1]]
        states[time] = states[time - 1] if stays else generator.choice(others)
    signal = MEANS[states] + DEVIATIONS[states] * generator.normal(size=(n_frames, 2))
    signal[generator.random(signal.shape) < 0.1] = np.nan
    for sensor, first, last in FAILURES:
        signal[first:last, slice(None) if sensor is None else sensor] = np.nan
    return signal, states


def in_order_of_truth(found: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the number of the true state that each found state mostly is, (K,)."""
    return confusion_matrix(states, found).argmax(axis=0)


def shade_failures(axes: Axes, sensor: int) -> None:
    """Shade where a sensor has failed."""
    for failed, first, last in FAILURES:
        if failed in (None, sensor):
            axes.axvspan(first, last, color=LIGHT, alpha=0.6, linewidth=0)


def draw_sensor(axes: Axes, values: np.ndarray, states: np.ndarray, name: str) -> None:
    """Draw the values of a sensor in the colours of the states that were found."""
    for state, color in enumerate(COLORS):
        own = np.where(states == state, values, np.nan)
        axes.plot(own, ".", color=color, markersize=4, label=STATES[state])
    axes.set_ylabel(name)


def main(options: Options) -> None:
    signal, states = draw_signal(1000 if options.quick else 3000, seed=4)
    model = HMMDensity(3, topology="ergodic", covariance_type="diag", random_state=0).fit(
        [signal]
    )
    _, [found] = model.decode([signal])
    [probabilities] = model.state_proba([signal])
    names = in_order_of_truth(found, states)
    order = np.argsort(names)
    print(f"{np.isnan(signal).mean():.0%} of the values are missing")
    is_hole = np.isnan(signal).all(axis=1)
    for name, chosen in (("no value", is_hole), ("one or two values", ~is_hole)):
        share = np.mean(names[found[chosen]] == states[chosen])
        print(f"frames with {name}: {share:.1%} of the states are right")
    stay = np.diag(model.transitions_)[order]
    print("probability to stay:", stay.round(3), f"(true: {STAY})")

    figure, axes = plt.subplots(
        4, 1, figsize=(10.5, 6.6), sharex=True, height_ratios=[1.2, 1.2, 0.8, 0.3]
    )
    for sensor, name in enumerate(("vibration", "temperature")):
        shade_failures(axes[sensor], sensor)
        draw_sensor(axes[sensor], signal[:N_SHOWN, sensor], names[found[:N_SHOWN]], name)
    axes[0].legend(loc="upper left", ncols=3, fontsize=9)
    axes[0].set_title("Two sensors, coloured by the states that were found")
    time = np.arange(N_SHOWN)
    stacked = probabilities[:N_SHOWN, order].T
    axes[2].stackplot(time, stacked, colors=COLORS)
    axes[2].set(ylabel="probability", ylim=(0, 1))
    axes[3].imshow(
        states[None, :N_SHOWN],
        cmap=ListedColormap(COLORS),
        aspect="auto",
        extent=(-0.5, N_SHOWN - 0.5, 0, 1),
    )
    axes[3].set(ylabel="truth", yticks=[], xlabel="frame", xlim=(0, N_SHOWN))
    finish(figure, "sequence_states", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
