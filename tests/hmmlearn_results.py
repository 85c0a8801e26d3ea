"""Results of hmmlearn, recorded, so that agreement is checked where it is not installed.

``python tests/hmmlearn_results.py --write`` records them anew, with hmmlearn.
"""

import importlib.util
import itertools
import sys
from pathlib import Path

import numpy as np
from sequence_helpers import make_chains, make_sequences
from test_families import covariances_of

FILE = Path(__file__).with_name("hmmlearn_results.npz")
CASES = list(
    itertools.product(["spherical", "diag", "tied", "full"], ["ergodic", "left-right"])
)


def problem(covariance_type, topology):
    """A hidden Markov model of one class, and sequences."""
    model = make_chains(covariance_type, topology, n_classes=1)
    return model, make_sequences([40, 1, 25, 60])


def recorded(covariance_type, topology):
    """What hmmlearn finds: log-likelihoods, best paths and posteriors of states."""
    if importlib.util.find_spec("hmmlearn"):
        return computed(covariance_type, topology)
    key = f"{covariance_type} {topology}"
    with np.load(FILE) as file:
        return {name.split("/")[1]: file[name] for name in file if name.startswith(key)}


def computed(covariance_type, topology):
    """The same, by hmmlearn itself."""
    from hmmlearn.hmm import GaussianHMM

    model, rows = problem(covariance_type, topology)
    other = GaussianHMM(3, covariance_type)
    other.startprob_ = np.exp(model.log_start[0])
    other.transmat_ = np.exp(model.log_transition[0])
    other.means_ = model.components.means
    covariances = covariances_of(model.components)
    other.n_features = covariances.shape[1]
    other.covars_ = {
        "spherical": covariances[:, 0, 0],
        "diag": np.diagonal(covariances, axis1=1, axis2=2),
        "tied": covariances[0],
        "full": covariances,
    }[covariance_type]
    parts = np.split(rows.frames.real.T, np.cumsum(rows.lengths)[:-1])
    paths = [other.decode(part) for part in parts]
    return {
        "log_likelihood": np.array([other.score(part) for part in parts]),
        "score": np.array([score for score, _ in paths]),
        "states": np.concatenate([states for _, states in paths]).astype(np.int8),
        "posterior": np.concatenate([other.predict_proba(part) for part in parts]),
    }


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    results = {
        f"{' '.join(case)}/{name}": array
        for case in CASES
        for name, array in computed(*case).items()
    }
    np.savez_compressed(FILE, **results)
