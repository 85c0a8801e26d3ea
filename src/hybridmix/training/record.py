"""What training returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data import Dataset, Schema, TrainingRows
from hybridmix.models.calibration import Calibration
from hybridmix.models.committee import Committee
from hybridmix.models.mixture import Mixture
from hybridmix.training.leaderboard import Trial


@dataclass(frozen=True)
class Fitted:
    """A trained model and how it came about; not to be changed.

    Attributes
    ----------
    schema : Schema
        Of the training table.
    model : Mixture
        The model, in the scale of the schema.
    converged : bool
        Whether the last solver met its tolerance.
    n_iter : int
        Iterations of the last solver; the most of any class, if these were apart.
    history : mapping of str to ndarray
        What changed over these iterations, in the units of the table.
    bic : tuple of mappings of int to float
        For each class: the criterion of each number of components that was tried.
    unlabelled_weight : float
        What an unlabelled row counted.
    calibration : Calibration
        Of the class probabilities.
    messages : tuple of str
        What the user should be warned about.
    trials : tuple of Trial
        What a search has tried; empty without a search.
    committee : Committee or None
        What is asked for the class, instead of the model.
    members : tuple of Fitted
        Of the committee.
    options : mapping of str to object
        What a search has chosen for a member.
    n_searched : int
        Rows that a search has seen; 0 without one.
    """

    schema: Schema
    model: Mixture
    converged: bool
    n_iter: int
    history: Mapping[str, FloatArray]
    bic: tuple[Mapping[int, float], ...]
    unlabelled_weight: float = 1.0
    calibration: Calibration = field(default_factory=Calibration)
    messages: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    committee: Committee | None = None
    members: tuple[Fitted, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    n_searched: int = 0

    @property
    def interrupted(self) -> bool:
        """Whether the user ended training before it was done."""
        return INTERRUPTED in self.messages


INTERRUPTED = "Interrupted: the best model so far is kept."


def em_messages(
    converged: bool,
    interrupted: bool,
    n_reseeded: int,
    max_iter: int,
    parts: str = "components",
) -> tuple[str, ...]:
    """Say what a user should know of a run of EM; fewer parts make a simpler model."""
    messages = []
    if interrupted:
        messages.append(INTERRUPTED)
    elif not converged:
        messages.append(
            f"EM did not converge in max_iter={max_iter} iterations. Raise max_iter or "
            f"tol, or use fewer {parts}."
        )
    if n_reseeded:
        messages.append(
            f"Components collapsed and were started anew {n_reseeded} time(s). Use fewer "
            "components (n_components), a stronger covariance_prior or a higher "
            "variance_floor."
        )
    return tuple(messages)


def bic_in_units(
    bic: Sequence[Mapping[int, float]], dataset: TrainingRows, schema: Schema
) -> tuple[Mapping[int, float], ...]:
    """Return the criteria in the units of the table, which likelihoods depend on."""
    if not bic:
        return ()
    volumes = _log_volumes(dataset, schema, len(bic))
    return tuple(
        {k: value + 2.0 * float(volumes[label + 1]) for k, value in values.items()}
        for label, values in enumerate(bic)
    )


def history_in_units(
    traces: Mapping[str, Sequence[float]],
    dataset: TrainingRows,
    schema: Schema,
    unlabelled_weight: float = 1.0,
    total_weight: float | None = None,
) -> Mapping[str, FloatArray]:
    """Return the traces in the units of the table, which likelihoods depend on.

    They are means over this total weight; None for that of the rows.
    """
    history = {name: np.array(trace) for name, trace in traces.items()}
    if "likelihood" not in history:
        return history
    total_weight = dataset.total_weight if total_weight is None else total_weight
    unlabelled, *labelled = _log_volumes(dataset, schema)
    log_volume = float(np.sum(labelled)) + unlabelled_weight * float(unlabelled)
    for name in ("value", "likelihood"):
        history[name] = history[name] - log_volume / total_weight
    return history


@dataclass
class _LogVolumes:
    """By how much encoding raised the log-likelihood of the rows of each label, (C + 1,).

    The first number is that of unlabelled rows.
    """

    values: FloatArray

    @classmethod
    def of(cls, dataset: Dataset, schema: Schema, n_classes: int) -> _LogVolumes:
        """Look at rows in memory."""
        parts = [dataset.unlabelled(), *map(dataset.of_class, range(n_classes))]
        return cls(
            np.array([schema.total_log_volume(p.rows, p.filled_weights) for p in parts])
        )

    def add(self, other: _LogVolumes) -> None:
        """Add those of other rows."""
        self.values += other.values


def _log_volumes(dataset: TrainingRows, schema: Schema, n_classes: int = 0) -> FloatArray:
    n_classes = max(n_classes, dataset.n_labels)
    own = partial(_LogVolumes.of, schema=schema, n_classes=n_classes)
    return dataset.summed(own).values
