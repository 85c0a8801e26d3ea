"""Our classifier of sequences among the methods that are compared."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sequence_data import Split
from sequence_rivals import Answer, Method

import hybridmix

# Settings that are fixed; the others are chosen by the estimator in training.
DIAGONAL = {"n_states": 5, "covariance_type": "diag", "topology": "left-right"}
LABELS_ALONE = "hybridmix, labels alone"
OPTIONS: dict[str, dict[str, Any]] = {
    "hybridmix": {},
    "hybridmix, diag": DIAGONAL,
    "hybridmix, diag, likelihood": {**DIAGONAL, "objective": "likelihood"},
}


def available(name: str = "HybridHMMClassifier") -> bool:
    """Say whether this version has the estimator; print a message if it has not."""
    if hasattr(hybridmix, name):
        return True
    version = hybridmix.__version__
    print(f"LEFT OUT: hybridmix {version} has no {name}.", flush=True)
    return False


def hybridmix_contestant(
    split: Split, labels_alone: bool = False, **options: Any
) -> Answer:
    """Fit the classifier to sequences with holes and without labels as they are."""
    train = split.train.labelled() if labels_alone else split.train
    model = hybridmix.HybridHMMClassifier(random_state=0, **options)
    model.fit(train.X, train.y)
    probabilities = model.predict_proba(split.test.X)
    labels = np.asarray(model.classes_)[probabilities.argmax(axis=1)]
    return Answer(labels, probabilities)


def methods() -> dict[str, Method]:
    """Return our methods, if this version has them."""
    if not available():
        return {}
    found: dict[str, Method] = {
        name: partial(hybridmix_contestant, **options)
        for name, options in OPTIONS.items()
    }
    alone = partial(hybridmix_contestant, labels_alone=True)
    return {**found, LABELS_ALONE: alone}
