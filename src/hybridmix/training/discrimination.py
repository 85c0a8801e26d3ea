"""Training of classifiers by maximum entropy discrimination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from sklearn.model_selection import StratifiedKFold

from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import Rows
from hybridmix.families.conjugates import Conjugate
from hybridmix.med.constraints import Constraints, Rivals, SignedRows
from hybridmix.med.machines import (
    DensityMachine,
    KernelMachine,
    LinearMachine,
    StackedMachine,
)
from hybridmix.med.models.families import ClassFamilies, empirical_prior, flat_prior
from hybridmix.models.calibration import Calibration
from hybridmix.training.calibration import fitted_calibration
from hybridmix.training.machines import (
    MachineOptions,
    TrainedMachine,
    ascended,
    of_ascent,
    train_machine,
)
from hybridmix.training.transduction import train_gaussian_labels, train_mean_field

# Rows of a matrix, or encoded rows.
Features: TypeAlias = Any
TRANSDUCTIONS = ("gaussian", "mean_field")
PRIORS = ("empirical", "flat")
# Mean margins of densities that are chosen, in nats. Beyond them a row is certain, and
# margins that only few columns could give would take very many iterations.
_MARGINS = (1.0, 30.0)


@dataclass(frozen=True)
class LabelledRows:
    """Training rows of a classifier.

    Attributes
    ----------
    features : ndarray, csr_array or Rows
        The rows.
    labels : ndarray of shape (n,)
        Class numbers; -1 for unlabelled rows.
    n_classes : int
        C.
    weights : ndarray of shape (n,)
        Sample weights, positive.
    """

    features: Features
    labels: IntArray
    n_classes: int
    weights: FloatArray

    def __getitem__(self, rows: BoolArray | IntArray) -> LabelledRows:
        return replace(
            self,
            features=self.features[rows],
            labels=self.labels[rows],
            weights=self.weights[rows],
        )

    @property
    def labelled(self) -> BoolArray:
        """Which rows have a label."""
        return self.labels >= 0


M = TypeVar("M", LinearMachine, KernelMachine, DensityMachine)
Train: TypeAlias = Callable[[LabelledRows], TrainedMachine]


@dataclass(frozen=True)
class Functions:
    """How discriminant functions of classes are trained.

    Attributes
    ----------
    options : MachineOptions
        Of a machine.
    one_vs_rest : bool
        Whether more than two classes are trained apart.
    transduction : str or None
        What unlabelled rows are for.
    label_precision : float
        Of normal labels a priori.
    unlabelled_weight : float
        What an unlabelled row counts, compared with a labelled one.
    """

    options: MachineOptions
    one_vs_rest: bool
    transduction: str | None
    label_precision: float
    unlabelled_weight: float

    def __call__(self, rows: LabelledRows) -> TrainedMachine:
        """Train on rows."""
        if self.transduction is None and not rows.labelled.all():
            rows = rows[rows.labelled]
        if rows.n_classes == 2:
            return self._train_signs(rows, np.where(rows.labels == 1, 1.0, -1.0))
        if self.one_vs_rest:
            signs = (np.where(rows.labels == c, 1.0, -1.0) for c in range(rows.n_classes))
            return stacked([self._train_signs(rows, own) for own in signs])
        asked = Rivals(rows.labels, rows.n_classes, rows.weights)
        trained = train_machine(rows.features, asked, self.options)
        return replace(trained, machine=_centred(trained.machine))  # type: ignore[type-var]

    def _train_signs(self, rows: LabelledRows, signs: FloatArray) -> TrainedMachine:
        """Train one class against the others."""
        if rows.labelled.all():
            asked = SignedRows(signs, rows.weights)
            return train_machine(rows.features, asked, self.options)
        weights = rows.weights * np.where(rows.labelled, 1.0, self.unlabelled_weight)
        if self.transduction == "gaussian":
            return train_gaussian_labels(
                rows.features,
                np.where(rows.labelled, signs, 1.0),
                weights,
                ~rows.labelled,
                self.label_precision,
                self.options,
            )
        return train_mean_field(
            rows.features, signs, weights, ~rows.labelled, self.options
        )


@dataclass(frozen=True)
class Densities:
    """How densities of classes are trained.

    Attributes
    ----------
    options : MachineOptions
        Of the dual.
    conjugate : Conjugate
        Kind of the priors.
    prior : str
        One of `PRIORS`.
    strength : float
        What a row counts in an empirical prior.
    margin : float or None
        Mean margin a priori; None for the median of the margins that training rows have
        before there is any multiplier.
    """

    options: MachineOptions
    conjugate: Conjugate
    prior: str
    strength: float
    margin: float | None

    def __call__(self, rows: LabelledRows) -> TrainedMachine:
        """Train on the labelled rows."""
        rows = rows[rows.labelled]
        encoded: Rows = rows.features
        members = np.zeros((rows.n_classes, len(rows.labels)))
        members[rows.labels, np.arange(len(rows.labels))] = rows.weights
        if self.prior == "empirical":
            prior = empirical_prior(self.conjugate, encoded, members, self.strength)
        else:
            prior = flat_prior(self.conjugate, encoded, members)
        model = ClassFamilies(self.conjugate, encoded, prior, self.options.inclusion)
        asked: Constraints = Rivals(rows.labels, rows.n_classes, rows.weights)
        bias = np.log(members.sum(axis=1) / members.sum())
        options = self.options
        if self.margin is None:
            outputs = model.tilted(np.zeros_like(members)).outputs + bias[:, None]
            typical = _median(asked.margins(outputs), asked.weights)
            mean = float(np.clip(typical, *_MARGINS))
            prior_margin = replace(options.prior, mean=mean)  # type: ignore[call-arg]
            options = replace(options, prior=prior_margin)
        ascent = ascended(model, asked, options, bias)
        densities = ascent.point.tilted.posterior
        inclusion = densities.inclusion if self.options.inclusion < 1.0 else None
        machine = _centred(DensityMachine(densities, ascent.point.bias))
        return replace(of_ascent(ascent, machine, inclusion), least=options.prior.least)


def _median(values: FloatArray, weights: FloatArray | float) -> float:
    """Return the smallest value that at least half of the weight does not exceed."""
    order = np.argsort(values)
    below = np.cumsum(np.broadcast_to(weights, values.shape)[order])
    return float(values[order[np.searchsorted(below, 0.5 * below[-1])]])


def _centred(machine: M) -> M:
    """Return a machine of all classes whose biases have the sum 0.

    Margins are differences of outputs: a constant added to all of them is arbitrary.
    """
    return replace(machine, bias=machine.bias - machine.bias.mean())


def stacked(parts: list[TrainedMachine]) -> TrainedMachine:
    """Return outputs that were trained apart as one machine."""

    def total(name: str) -> float:
        return float(sum(getattr(part, name) for part in parts))

    inclusions = [part.inclusion for part in parts if part.inclusion is not None]
    return TrainedMachine(
        StackedMachine(tuple(part.machine for part in parts)),  # type: ignore[misc]
        np.concatenate([part.multipliers for part in parts]),
        total("value"),
        total("gap"),
        total("divergence"),
        max(part.n_iter for part in parts),
        all(part.converged for part in parts),
        any(part.interrupted for part in parts),
        np.stack(inclusions) if inclusions else None,
    )


def log_scores(outputs: FloatArray) -> FloatArray:
    """Return outputs (C, n) of all classes; a single one is a log ratio of two."""
    if len(outputs) > 1:
        return outputs
    return np.vstack([-0.5 * outputs, 0.5 * outputs])


def calibrated(train: Train, rows: LabelledRows, n_folds: int, seed: int) -> Calibration:
    """Fit the scale of outputs to held-out rows; unlabelled ones are in every fold.

    Where a class has fewer rows than folds, there are fewer folds, and none for single
    rows: outputs are then taken for log probabilities as they are.

    Parameters
    ----------
    train : callable
        Trains a machine on rows.
    rows : LabelledRows
        All rows.
    n_folds : int
        How many folds, at most.
    seed : int
        Of the folds.
    """
    known = np.flatnonzero(rows.labelled)
    counts = np.bincount(rows.labels[known], minlength=rows.n_classes)
    n_folds = min(n_folds, int(counts.min()))
    if n_folds < 2:
        return Calibration()
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    scores = np.empty((rows.n_classes, len(known)))
    others = np.flatnonzero(~rows.labelled)
    for kept, held in folds.split(known, rows.labels[known]):
        trained = train(rows[np.concatenate([known[kept], others])])
        outputs = trained.machine.outputs(rows.features[known[held]])
        scores[:, held] = log_scores(outputs)
    return fitted_calibration(scores, rows.labels[known], rows.weights[known])
