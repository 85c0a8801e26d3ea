"""Rows without a label or target, as further unknowns of the posterior."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from hybridmix._typing import BoolArray, FloatArray
from hybridmix.med.models.base import Tilted, TiltedModel, improper


class GaussianLabels(TiltedModel):
    r"""A linear function, and rows whose labels are normal a priori.

    Integrating the labels :math:`y_u \sim N(0, \kappa^{-2})` of unlabelled rows out of
    :math:`\exp(\sum_u \lambda_u y_u \theta^\top x_u)` adds
    :math:`\lambda_u^2 (\theta^\top x_u)^2 / 2 \kappa^2` to the exponent, so that

    .. math:: \log Z = -\tfrac12 \log |P| + \tfrac12 v^\top P^{-1} v, \qquad
              P = I - \kappa^{-2} \sum_u \lambda_u^2 x_u x_u^\top, \quad
              v = \sum_l w_l x_l,

    as long as :math:`P` is positive definite: unlabelled rows push the function away from
    0 wherever they are. The weight of an unlabelled row is its multiplier. The posterior
    is the array of expected weights (1, q).

    Parameters
    ----------
    features : ndarray of shape (n, q)
        Rows, or features whose inner products are a kernel; with a constant column in
        place of a bias.
    unlabelled : ndarray of shape (n,)
        Which rows have no label.
    precision : float
        :math:`\kappa^2`.
    """

    n_outputs = 1

    def __init__(
        self, features: FloatArray, unlabelled: BoolArray, precision: float
    ) -> None:
        self.features, self.unlabelled, self.precision = features, unlabelled, precision
        self.n_rows = len(features)

    def tilted(self, weights: FloatArray) -> Tilted:
        known, unknown = self.features[~self.unlabelled], self.features[self.unlabelled]
        own, others = weights[0, ~self.unlabelled], weights[0, self.unlabelled]
        scaled = unknown * (others / np.sqrt(self.precision))[:, None]
        inner = np.eye(self.features.shape[1]) - scaled.T @ scaled
        try:
            root = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            return improper(weights)
        white = solve_triangular(root, known.T @ own, lower=True)
        mean = solve_triangular(root.T, white, lower=False)
        spread = solve_triangular(root, unknown.T, lower=True)
        value = -float(np.log(root.diagonal()).sum()) + 0.5 * float(white @ white)
        outputs = np.empty(self.n_rows)
        outputs[~self.unlabelled] = known @ mean
        second = (unknown @ mean) ** 2 + np.sum(spread**2, axis=0)
        outputs[self.unlabelled] = others / self.precision * second
        return Tilted(value, outputs[None], mean[None])


class GaussianTargets(TiltedModel):
    r"""A model of one output, and rows whose targets are normal a priori.

    A target :math:`y_u \sim N(0, \sigma^2)` that is integrated out adds
    :math:`\sigma^2 w_u^2 / 2` to the log-partition of the model, with the signed weight
    :math:`w_u` of its row. Its mean, if it is not 0, is an offset of the constraints.

    Parameters
    ----------
    model : TiltedModel
        Of one output.
    unlabelled : ndarray of shape (n,)
        Which rows have no target.
    variance : float
        :math:`\sigma^2`.
    """

    n_outputs = 1

    def __init__(
        self, model: TiltedModel, unlabelled: BoolArray, variance: float = 1.0
    ) -> None:
        self.model, self.unlabelled, self.variance = model, unlabelled, variance
        self.n_rows = model.n_rows

    def tilted(self, weights: FloatArray) -> Tilted:
        found = self.model.tilted(weights)
        own = np.where(self.unlabelled, weights, 0.0)
        return Tilted(
            found.log_partition + 0.5 * self.variance * float(np.sum(own**2)),
            found.outputs + self.variance * own,
            found.posterior,
        )
