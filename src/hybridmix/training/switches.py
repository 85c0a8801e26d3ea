"""Training of linear functions with switches, on columns of any units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from hybridmix._typing import FloatArray, IntArray
from hybridmix.med.constraints import (
    Constraints,
    Rivals,
    SignedRows,
    TargetSides,
    TaskRows,
    TaskTargets,
)
from hybridmix.med.machines import LinearMachine
from hybridmix.med.margins import ExponentialMargin, MarginPrior, TubeMargin
from hybridmix.med.models.switches import TaskColumns
from hybridmix.training.machines import (
    MachineOptions,
    Matrix,
    TrainedMachine,
    ascended,
    of_ascent,
    train_machine,
)

# Columns that vary less than this, relative to their values, are constant but for
# rounding. Sparse ones are not centred before squares are taken.
_CONSTANT, _SPARSE_CONSTANT = 1e-13, 1e-7


@dataclass(frozen=True)
class SwitchOptions:
    r"""How linear functions with switches are trained.

    Attributes
    ----------
    inclusion : float
        Prior probability :math:`\rho` of a switch.
    C : float or None
        Largest multiplier; None for the one of `usual_bound`.
    margin : float
        Mean margin of a row with a label, or standard deviation that targets are brought
        to.
    smoothness : float
        Of the margin prior.
    epsilon : float
        Width of the tube around a target, in its standard deviations.
    standardise : bool
        Whether columns are brought to unit variance.
    shared : bool
        Whether outputs share the switches.
    tol : float
        Largest relative gap between primal and dual.
    max_iter : int
        Largest number of iterations.
    """

    inclusion: float
    C: float | None
    margin: float
    smoothness: float
    epsilon: float
    standardise: bool
    shared: bool
    tol: float
    max_iter: int

    def machine_options(self, weight: float, is_real: bool) -> MachineOptions:
        """Return the options of a machine for targets of rows of a total weight."""
        C = usual_bound(self.inclusion, weight) if self.C is None else self.C
        prior: MarginPrior = ExponentialMargin(C, self.smoothness, self.margin)
        if is_real:
            prior = TubeMargin(C, self.smoothness, self.epsilon * self.margin)
        return MachineOptions(
            prior,
            np.inf,
            self.inclusion,
            self.shared,
            tol=self.tol,
            max_iter=self.max_iter,
        )


def usual_bound(inclusion: float, weight: float) -> float:
    r"""Return a bound of the multipliers at which noise does not turn switches on.

    .. math:: C = \sqrt{2 \log(1 / \rho) \,/\, n}

    A column switches on where its statistic :math:`|\sum_n \lambda_n y_n x_n|` exceeds
    :math:`\sqrt{2 \log(1 / \rho)}`. Of a standardised column that has nothing to do with
    the labels, the standard deviation of the statistic is at most :math:`C \sqrt n`.

    Parameters
    ----------
    inclusion : float
        :math:`\rho`.
    weight : float
        n, the total weight of the rows.
    """
    return float(np.sqrt(max(-2.0 * np.log(inclusion), 1.0) / weight))


@dataclass(frozen=True)
class SwitchRows:
    """Rows of one or several tasks.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        The rows.
    weights : ndarray of shape (n,)
        Sample weights, positive.
    tasks : ndarray of shape (n,)
        Task numbers, all of them in use.
    n_tasks : int
        T.
    """

    X: Matrix
    weights: FloatArray
    tasks: IntArray
    n_tasks: int

    def means(self, values: FloatArray) -> FloatArray:
        """Return the weighted means (T,) of values (n,) of the rows of each task."""
        totals = np.bincount(self.tasks, self.weights * values, self.n_tasks)
        return totals / np.bincount(self.tasks, self.weights, self.n_tasks)


@dataclass(frozen=True)
class SwitchMachine:
    """What training leaves.

    Attributes
    ----------
    trained : TrainedMachine
        A linear machine in the units of the table, and how it came about.
    scores : ndarray of shape (p,) or (C, p)
        Lengths of the expected weights of standardised columns: over all outputs that
        share a switch, or by output. Unlike inclusions, they do not saturate.
    """

    trained: TrainedMachine
    scores: FloatArray


def train_labels(
    rows: SwitchRows, labels: IntArray, n_classes: int, options: SwitchOptions
) -> SwitchMachine:
    """Train on labels: two classes for one or several tasks, or several classes.

    Parameters
    ----------
    rows : SwitchRows
        The rows.
    labels : ndarray of shape (n,)
        Class numbers.
    n_classes : int
        Number of classes.
    options : SwitchOptions
        The rest.
    """
    asked: Constraints
    signs = np.where(labels == 1, 1.0, -1.0)
    if n_classes > 2:
        asked = Rivals(labels, n_classes, rows.weights)
    elif rows.n_tasks > 1:
        asked = TaskRows(signs, rows.tasks, rows.n_tasks, rows.weights)
    else:
        asked = SignedRows(signs, rows.weights)
    return _train(rows, asked, options, is_real=False)


def train_targets(
    rows: SwitchRows, targets: FloatArray, options: SwitchOptions
) -> SwitchMachine:
    """Train on real targets, which are standardised within tasks.

    Parameters
    ----------
    rows : SwitchRows
        The rows.
    targets : ndarray of shape (n,)
        Real targets.
    options : SwitchOptions
        The rest.
    """
    asked: Constraints
    centre = rows.means(targets)
    centred = targets - centre[rows.tasks]
    deviations = np.sqrt(rows.means(centred**2))
    largest = np.abs(targets).max(initial=0.0)
    unit = np.where(deviations > _CONSTANT * largest, deviations, 1.0) / options.margin
    scaled = centred / unit[rows.tasks]
    if rows.n_tasks > 1:
        asked = TaskTargets(scaled, rows.tasks, rows.n_tasks, rows.weights)
    else:
        asked = TargetSides(scaled, rows.weights)
    found = _train(rows, asked, options, is_real=True)
    machine = found.trained.machine
    assert isinstance(machine, LinearMachine)
    restored = LinearMachine(machine.coef * unit[:, None], machine.bias * unit + centre)
    return replace(found, trained=replace(found.trained, machine=restored))


def _train(
    rows: SwitchRows, asked: Constraints, options: SwitchOptions, is_real: bool
) -> SwitchMachine:
    centres, scale = _column_units(rows, options.standardise)
    X = _standardised(rows, centres, scale)
    weight = float(rows.weights.sum()) / rows.n_tasks
    own = options.machine_options(weight, is_real)
    if rows.n_tasks == 1:
        trained = train_machine(X, asked, own)
    else:
        sizes = np.bincount(rows.tasks, minlength=rows.n_tasks)
        model = TaskColumns(X, sizes, own.inclusion, own.shared)
        ascent = ascended(model, asked, own)
        coef, inclusion = ascent.point.tilted.posterior
        machine = LinearMachine(coef, ascent.point.bias)
        trained = of_ascent(ascent, machine, inclusion)
    assert isinstance(trained.machine, LinearMachine)
    squares = trained.machine.coef**2
    scores = np.sqrt(squares.sum(axis=0) if options.shared else squares)
    coef = trained.machine.coef / scale
    bias = trained.machine.bias - np.sum(coef * centres, axis=1)
    return SwitchMachine(replace(trained, machine=LinearMachine(coef, bias)), scores)


def _column_units(rows: SwitchRows, standardise: bool) -> tuple[FloatArray, FloatArray]:
    """Return the means (T, p) of columns, and their deviations (p,) within tasks.

    Sparse columns are not centred: a flat bias makes up for it.
    """
    X = rows.X
    members = sparse.csr_array(
        (rows.weights, (rows.tasks, np.arange(len(rows.tasks)))),
        shape=(rows.n_tasks, len(rows.tasks)),
    )
    totals = np.bincount(rows.tasks, rows.weights, rows.n_tasks)[:, None]
    if isinstance(X, sparse.csr_array):
        centres = np.zeros((rows.n_tasks, X.shape[1]))
    else:
        centres = np.asarray(members @ X) / totals
    if not standardise:
        return centres, np.ones(X.shape[1])
    if isinstance(X, sparse.csr_array):
        means = (members @ X).toarray() / totals
        squares = (members @ X.power(2)).toarray() / totals
        variances = np.maximum(squares - means**2, 0.0)
        least = _SPARSE_CONSTANT * np.sqrt(squares.max(axis=0))
    else:
        squares = (X - centres[rows.tasks]) ** 2
        variances = np.asarray(members @ squares) / totals
        least = _CONSTANT * np.abs(centres).max(axis=0)
    scale = np.sqrt(np.sum(totals / totals.sum() * variances, axis=0))
    # Nothing is left of a constant column.
    return centres, np.where(scale > least, scale, np.inf)


def _standardised(rows: SwitchRows, centres: FloatArray, scale: FloatArray) -> Matrix:
    if isinstance(rows.X, sparse.csr_array):
        return sparse.csr_array(rows.X @ sparse.diags_array(1.0 / scale))
    return (rows.X - centres[rows.tasks]) / scale
