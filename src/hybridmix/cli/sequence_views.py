"""Models of sequences in the form for the screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.cli.grids import grid
from hybridmix.cli.models import Model

# More states than this do not fit into a line.
_SHOWN_STATES = 8


def structure_of(estimator: Any) -> dict[str, Any]:
    """Return how many states a model has, and which of them may follow each other."""
    topology = estimator.topology_
    return {
        "states": int(estimator.n_states_),
        "topology": topology if isinstance(topology, str) else "a mask",
        "covariance_type": estimator.covariance_type_,
    }


def described_chains(model: Model) -> dict[str, Any]:
    """Return what a model of sequences is: states, and the chain of each class."""
    estimator, chains = model.estimator, model.estimator.model_
    labels = estimator.classes_.tolist() if model.is_classifier else [None]
    transitions = np.exp(chains.log_transition)
    parts = [
        {
            "label": label,
            "prior": float(np.exp(chains.log_class_prior[k])),
            "mean_length": float(chains.mean_lengths[k]),
            "start": np.exp(chains.log_start[k]),
            "transitions": transitions[k],
        }
        for k, label in enumerate(labels)
    ]
    described: dict[str, Any] = {
        **structure_of(estimator),
        "sequence": list(model.keys.sequence),
        "time": model.keys.time,
    }
    # A density is a single chain, which has no label.
    return described | (
        {"classes": parts} if model.is_classifier else {"chain": parts[0]}
    )


def chains(values: dict[str, Any]) -> list[Any]:
    """Show what `described_chains` returns."""
    kind = values["covariance_type"]
    covariances = "" if kind is None else f", covariances of type {kind}"
    heading = f"Hidden states: {values['states']}, {values['topology']}{covariances}"
    parts = values.get("classes") or [values["chain"]]
    rows = [
        (
            "all" if part["label"] is None else part["label"],
            f"{part['prior']:.3f}",
            f"{part['mean_length']:.1f}",
            _stays(part["transitions"]),
        )
        for part in parts
    ]
    header = ("class", "share", "frames", "mean stay in each state, in frames")
    return [heading, grid(header, rows, right=header[1:3])]


def _stays(transitions: FloatArray) -> str:
    """Write how many frames a chain stays in each state, on average."""
    staying = np.diag(transitions)
    words = [f"{1.0 / (1.0 - p):.1f}" if p < 1.0 else "to the end" for p in staying]
    more = ", ..." if len(words) > _SHOWN_STATES else ""
    return ", ".join(words[:_SHOWN_STATES]) + more
