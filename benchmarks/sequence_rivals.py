"""Rivals in classifying sequences: time warping, MiniRocket, hidden Markov models.

All get standardised columns without holes: values are interpolated in time first, and a
column without any value is filled by its mean over the training sequences. Unlabelled
sequences are not used. Settings are fixed, or chosen on the training sequences.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from common import rival
from scipy.special import logsumexp
from sequence_data import Frames, Sequences, Split, column_statistics, interpolated

WINDOWS = (0.1, 0.2, 1.0)
# Windows are compared on at most this many training sequences.
WINDOW_QUERIES = 200
KERNELS = 10_000
# MiniRocket's kernels have nine weights.
LEAST_LENGTH = 9
RIDGES = np.logspace(-3, 3, 10)
STATES, ITERATIONS = 5, 20
# hmmlearn's parameter of Dirichlet priors, where 1 is none, and its weight of the mean 0.
CHAIN_PRIOR, MEANS_WEIGHT = 1.1, 0.01


@dataclass(frozen=True)
class Answer:
    """What a method says about the test sequences.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    probabilities : ndarray of shape (n, C) or None
        In the order of the classes; None if the method has none.
    chosen : str
        Settings that were chosen on the training sequences.
    """

    labels: np.ndarray
    probabilities: np.ndarray | None = None
    chosen: str = ""


Method = Callable[[Split], Answer]


def prepared(split: Split) -> Split:
    """Return labelled, standardised sequences without holes."""
    train = split.train.labelled()
    means, deviations = column_statistics(train.X)
    deviations = np.where(deviations > 0, deviations, 1.0)

    def complete(sequences: Sequences) -> Sequences:
        X = interpolated(sequences.X, means)
        return replace(sequences, X=[(frames - means) / deviations for frames in X])

    return Split(complete(train), complete(split.test))


# Dynamic time warping -------------------------------------------------------------------


@dataclass(frozen=True)
class _Stack:
    """Sequences one below the other, as compiled code wants them."""

    frames: np.ndarray
    starts: np.ndarray
    groups: np.ndarray


def _stack(X: Frames, groups: np.ndarray) -> _Stack:
    starts = np.concatenate([[0], np.cumsum([len(frames) for frames in X])])
    return _Stack(np.concatenate(X), starts, groups)


def time_warping(warping: ModuleType, split: Split) -> Answer:
    """Classify by the nearest training sequence under dynamic time warping."""
    parts = prepared(split)
    train, test = parts.train, parts.test
    # Neighbours of the same speaker say nothing about speakers that were never heard.
    unseen = train.speakers is not None and not np.isin(test.speakers, train.speakers)[0]
    groups = train.speakers.astype(int) if unseen else np.arange(len(train))
    stack = _stack(train.X, groups)

    def nearest(queries: _Stack, window: float) -> np.ndarray:
        found = warping.nearest(
            queries.frames,
            queries.starts,
            queries.groups,
            stack.frames,
            stack.starts,
            stack.groups,
            window,
        )
        return train.y[found]

    rows = np.random.default_rng(0).permutation(len(train))[:WINDOW_QUERIES]
    tried = _stack([train.X[i] for i in rows], groups[rows])
    hits = {w: np.mean(nearest(tried, w) == train.y[rows]) for w in WINDOWS}
    window = max(WINDOWS, key=lambda w: hits[w])
    labels = nearest(_stack(test.X, np.full(len(test), -1)), window)
    return Answer(labels, chosen=f"window {window}")


# MiniRocket -----------------------------------------------------------------------------


def resampled(X: Frames, length: int) -> np.ndarray:
    """Stretch sequences to one length; return shape ``(n, d, length)``."""
    panel = np.empty((len(X), X[0].shape[1], length), np.float32)
    for frames, out in zip(X, panel, strict=True):
        time = np.linspace(0, len(frames) - 1, length)
        for column, values in zip(frames.T, out, strict=True):
            values[:] = np.interp(time, np.arange(len(frames)), column)
    return panel


def extended(X: Frames, length: int) -> np.ndarray:
    """Repeat last frames, or cut, up to one length; return shape ``(n, d, length)``."""
    panel = np.empty((len(X), X[0].shape[1], length), np.float32)
    for frames, out in zip(X, panel, strict=True):
        out[:] = frames[np.minimum(np.arange(length), len(frames) - 1)].T
    return panel


def mini_rocket(module: ModuleType, split: Split) -> Answer:
    """Classify by MiniRocket's features and ridge regression.

    Sequences are stretched to the median length or extended to the largest, whichever has
    the smaller leave-one-out error of the ridge regression.
    """
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    parts = prepared(split)
    lengths = [len(frames) for frames in parts.train.X]
    panels = {
        "resampled": partial(
            resampled, length=max(int(np.median(lengths)), LEAST_LENGTH)
        ),
        "extended": partial(extended, length=max(*lengths, LEAST_LENGTH)),
    }
    if min(lengths) == max(lengths):
        del panels["extended"]
    fits = {}
    for name, panel in panels.items():
        model = make_pipeline(
            module.MiniRocket(n_kernels=KERNELS, random_state=0),
            StandardScaler(with_mean=False),
            RidgeClassifierCV(RIDGES),
        )
        fits[name] = model.fit(panel(parts.train.X), parts.train.y)
    best = max(fits, key=lambda name: fits[name][-1].best_score_)
    return Answer(fits[best].predict(panels[best](parts.test.X)), chosen=best)


# hmmlearn -------------------------------------------------------------------------------


def hmm_per_class(
    module: ModuleType, split: Split, covariance: str, left_right: bool
) -> Answer:
    """Classify by the likelihoods of hidden Markov models, one trained for each class."""
    parts = prepared(split)
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    joint = np.empty((len(parts.test), parts.train.y.max() + 1))
    for label in range(joint.shape[1]):
        own = parts.train.take(np.flatnonzero(parts.train.y == label))
        model = fitted_hmm(module, own.X, covariance, left_right)
        prior = np.log(len(own) / len(parts.train))
        joint[:, label] = [prior + model.score(frames) for frames in parts.test.X]
    log_probabilities = joint - logsumexp(joint, axis=1, keepdims=True)
    return Answer(joint.argmax(axis=1), np.exp(log_probabilities))


def fitted_hmm(module: ModuleType, X: Frames, covariance: str, left_right: bool) -> Any:
    """Fit hmmlearn's model to sequences of one class.

    Priors keep it from failing: covariances get one more frame, of variance one, for
    states of few frames; means get a hundredth of a frame, for states without any;
    transitions a tenth of one, for states that sequences only end in. Training by scaled
    probabilities is the fastest that hmmlearn has; where it underflows, logarithms are
    used from the start.
    """
    d = X[0].shape[1]
    model = module.GaussianHMM(
        STATES,
        covariance,
        n_iter=ITERATIONS,
        startprob_prior=CHAIN_PRIOR,
        transmat_prior=CHAIN_PRIOR,
        means_weight=MEANS_WEIGHT,
        covars_prior=np.eye(d) if covariance == "full" else 1.0,
        covars_weight=d + 1.0 if covariance == "full" else 2.0,
        init_params="" if left_right else "stmc",
        params="tmc" if left_right else "stmc",
        implementation="scaling",
        random_state=0,
    )

    def fit() -> None:
        if left_right:
            start_left_right(model, X, covariance)
        model.fit(np.concatenate(X), [len(frames) for frames in X])

    try:
        fit()
    except ValueError:
        model.set_params(implementation="log")
        fit()
    return model.set_params(implementation="log")


def start_left_right(model: Any, X: Frames, covariance: str) -> None:
    """Cut every sequence into equal parts, one for each state."""
    states = np.concatenate([np.arange(len(x)) * STATES // len(x) for x in X])
    frames = np.concatenate(X)
    parts = [frames[states == k] for k in range(STATES)]
    model.startprob_ = np.eye(STATES)[0]
    model.transmat_ = 0.9 * np.eye(STATES) + 0.1 * np.eye(STATES, k=1)
    model.transmat_[-1, -1] = 1.0
    model.means_ = np.stack([part.mean(axis=0) for part in parts])
    spread = np.eye(frames.shape[1])
    covariances = [
        ((part - part.mean(axis=0)).T @ (part - part.mean(axis=0)) + spread) / len(part)
        for part in parts
    ]
    model.covars_ = np.stack(
        [c if covariance == "full" else np.diag(c) for c in covariances]
    )


# All of them ----------------------------------------------------------------------------


def rivals() -> dict[str, Method]:
    """Return the rivals whose packages are installed."""
    found: dict[str, Method] = {}
    hmm = rival("hmmlearn.hmm")
    if hmm is not None:
        for covariance in ("diag", "full"):
            for left_right in (True, False):
                topology = "left-right" if left_right else "ergodic"
                found[f"hmmlearn, {covariance}, {topology}"] = partial(
                    hmm_per_class, hmm, covariance=covariance, left_right=left_right
                )
    warping = rival("time_warping")
    if warping is not None:
        found["1-NN DTW"] = partial(time_warping, warping)
    rocket = rival("aeon.transformations.collection.convolution_based")
    if rocket is not None:
        found["MiniRocket + ridge"] = partial(mini_rocket, rocket)
    return found
