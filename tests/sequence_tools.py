"""What tests of sequences on the command line, in reports and in pictures share."""

import numpy as np
import pandas as pd

from hybridmix import HybridHMMClassifier, Sequences

# Options of small models, which are fitted in a moment.
SMALL = {
    "n_states": 3,
    "topology": "left-right",
    "covariance_type": "diag",
    "tradeoff": 1.0,
    "random_state": 0,
}
PATHS = {"circle": [[0, 0], [3, 1], [0, 3]], "wave": [[0, 0], [1, 3], [3, 0]]}


def make_gestures(n_sequences=30, seed=0, n_unlabelled=0):
    """A long table of gestures, with holes, a category and shuffled rows."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(n_sequences):
        label = ["circle", "wave"][number % 2]
        states = np.sort(rng.integers(0, 3, rng.integers(8, 15)))
        x = np.array(PATHS[label])[states] + 0.6 * rng.normal(size=(len(states), 2))
        x[rng.random(x.shape) < 0.1] = np.nan
        parts.append(
            pd.DataFrame(
                {
                    "recording": f"r{number}",
                    "t": 10 * np.arange(len(states)),
                    "x": x[:, 0].round(3),
                    "y": x[:, 1].round(3),
                    "hand": rng.choice(["left", "right"], len(states)).astype(object),
                    "gesture": label if number >= n_unlabelled else None,
                }
            )
        )
    frame = pd.concat(parts, ignore_index=True)
    frame["gesture"] = frame["gesture"].astype(object)
    return frame.sample(frac=1.0, random_state=seed, ignore_index=True)


def gestures(*arguments):
    """The same as sequences and labels; None for those without."""
    frame = make_gestures(*arguments)
    return Sequences.from_long(frame, "recording", "t", target="gesture")


def fitted_gestures():
    """A classifier of gestures, with the sequences and labels of its training."""
    X, y = gestures(30, 0, 4)
    return HybridHMMClassifier(**SMALL, unlabelled=None).fit(X, y), X, y
