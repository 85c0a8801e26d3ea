"""Training with unlabelled rows: normal labels, and mean field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.exceptions import UnsupportedError
from hybridmix.med.constraints import SignedRows
from hybridmix.med.machines import KernelMachine, LinearMachine
from hybridmix.med.models.transduction import GaussianLabels
from hybridmix.training.features import inner_product_features
from hybridmix.training.machines import (
    MachineOptions,
    Matrix,
    TrainedMachine,
    ascended,
    of_ascent,
    train_machine,
)

# A flat bias becomes the weight of a constant column, of this standard deviation in mean
# margins: a wide one would let unlabelled rows have their margins from the bias alone.
_WIDE = 1.0
# Rounds of labelling rows, and how much surer they are from round to round.
_ROUNDS = 8


def train_gaussian_labels(
    X: Matrix,
    signs: FloatArray,
    weights: FloatArray,
    unlabelled: BoolArray,
    precision: float,
    options: MachineOptions,
) -> TrainedMachine:
    """Train a function on labelled rows, and on rows with normal labels.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Rows, or their kernel matrix.
    signs : ndarray of shape (n,)
        1 and -1; 1 for unlabelled rows.
    weights : ndarray of shape (n,)
        Sample weights.
    unlabelled : ndarray of shape (n,)
        Which rows have no label.
    precision : float
        Of the labels a priori: the larger, the less unlabelled rows matter.
    options : MachineOptions
        The rest.
    """
    _refuse_switches(options)
    deviation = (
        _WIDE * options.prior.least
        if np.isinf(options.bias_variance)
        else np.sqrt(options.bias_variance)
    )
    features, basis = inner_product_features(X, options)
    # Unlabelled rows push the function away from 0: it should be there in the middle.
    centre = features.mean(axis=0)
    features = features - centre
    constant = np.full((len(features), 1), deviation)
    model = GaussianLabels(np.hstack([features, constant]), unlabelled, precision)
    ascent = ascended(
        model, SignedRows(signs, weights), replace(options, bias_variance=0.0)
    )
    vector = ascent.point.tilted.posterior[0]
    bias = np.array([deviation * vector[-1] - centre @ vector[:-1]])
    # Back from features to columns, or to weights of the rows.
    coef = (basis @ vector[:-1])[None]
    if options.kernels:
        machine: LinearMachine | KernelMachine = KernelMachine(
            options.kernels, np.ones(1), np.asarray(X), coef, bias
        )
    else:
        machine = LinearMachine(coef, bias)
    return of_ascent(ascent, machine, None)


def train_mean_field(
    X: Matrix,
    signs: FloatArray,
    weights: FloatArray,
    unlabelled: BoolArray,
    options: MachineOptions,
) -> TrainedMachine:
    r"""Train a function and the probabilities of unknown labels in turn.

    A distribution that factorises, :math:`p(\Theta)\, p(y)`, expects the label
    :math:`\tanh(\beta f(x))` of an unlabelled row; it then counts like a row of the more
    probable label, with a weight of the absolute value of this expectation. Rows are
    labelled relative to a threshold that keeps the shares of the classes at those of the
    labelled rows, and :math:`\beta` rises from round to round. The result is a local
    optimum: it depends on where it begins, the labelled rows alone.

    Parameters are those of `train_gaussian_labels`.
    """
    _refuse_precomputed(options)
    known = ~unlabelled
    trained = train_machine(X[known], SignedRows(signs[known], weights[known]), options)
    share = np.average(signs[known] > 0.0, weights=weights[known])
    for round_number in range(1, _ROUNDS + 1):
        outputs = trained.machine.outputs(X[unlabelled])[0]
        outputs = outputs - np.quantile(outputs, 1.0 - share)
        size = max(float(np.abs(outputs).mean()), np.finfo(float).tiny)
        expected = np.tanh(round_number * outputs / size)
        filled, sure = signs.copy(), weights.copy()
        filled[unlabelled] = np.where(expected >= 0.0, 1.0, -1.0)
        sure[unlabelled] *= np.maximum(np.abs(expected), 1e-6)
        trained = train_machine(X, SignedRows(filled, sure), options)
        if trained.interrupted:
            break
    return trained


def _refuse_switches(options: MachineOptions) -> None:
    if options.inclusion < 1.0 or len(options.kernels) > 1:
        raise UnsupportedError(
            "transduction='gaussian'",
            "switches of columns or kernels",
            "Use transduction='mean_field', or inclusion=1 and a single kernel.",
        )


def _refuse_precomputed(options: MachineOptions) -> None:
    if options.precomputed:
        raise UnsupportedError(
            "transduction='mean_field'",
            "precomputed kernels",
            "Use transduction='gaussian', or a kernel by name.",
        )
