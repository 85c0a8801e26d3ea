"""One missing value given what is observed, in every component."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows
from hybridmix.models.mixture import Mixture

# Curvatures below this are rounding; no conditional deviation of scaled rows is larger.
FLATTEST = 1e-8
# Log densities beyond this are too large for differences of about one.
_FAR = 1e9


class Conditional(NamedTuple):
    """Gaussian components of a missing value, given what is observed.

    Attributes
    ----------
    weights : ndarray of shape (J, n)
        Probabilities of the components.
    means, deviations : ndarray of shape (J, n)
        Of the value within each, in the scale of the rows.
    """

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray


def conditional(model: Mixture, rows: Rows, place: int, code: int | None) -> Conditional:
    r"""Return the distribution of a real column that rows lack.

    The log density of a row is quadratic in a value that it lacks, for every component
    with a Gaussian conditional distribution. Three evaluations, at -1, 0 and 1,
    determine it: this holds for all Gaussian families, whatever they are made of.

    .. math:: \log p_j(x_o, z) = a_j + b_j z - \tfrac12 c_j z^2 \;\Rightarrow\;
              z \mid x_o, j \sim N(b_j / c_j,\; 1 / c_j)

    Parameters
    ----------
    model : Mixture
        The mixture.
    rows : Rows
        Rows in which the column is missing.
    place : int
        Place of the column among the real ones.
    code : int or None
        Where the code of its spikes stands; the value is given that it is none of these.
    """
    found = _by_evaluation(model, rows, place, code)
    evidence, _ = class_posterior(model.evaluate(model.prepare(rows)).log_joint)
    far = np.flatnonzero(np.abs(evidence) > _FAR)
    if len(far) == 0:
        return found
    # Far from all components the three values differ by less than their rounding. The
    # deviations depend on the holes alone, and are those of rows at the centre.
    own = rows[far]
    central = replace(own, real=np.zeros_like(own.real))
    filled = model.impute(own).real[place]
    means, deviations = found.means.copy(), found.deviations.copy()
    deviations[:, far] = _by_evaluation(model, central, place, code).deviations
    means[:, far] = filled
    return Conditional(found.weights, means, deviations)


def _by_evaluation(
    model: Mixture, rows: Rows, place: int, code: int | None
) -> Conditional:
    """Return the distribution that three evaluations determine."""
    observed = np.ones(rows.real.shape, bool) if rows.observed is None else rows.observed
    real, observed, codes = rows.real.copy(), observed.copy(), rows.codes.copy()
    observed[place] = True
    if code is not None:
        codes[code] = 0
    logs = []
    for value in (-1.0, 0.0, 1.0):
        real[place] = value
        part = replace(rows, real=real, observed=observed, codes=codes)[:]
        density, _ = model.family.evaluate(model.prepare(part), model.components)
        logs.append(density + model.log_weights[:, None])
    below, middle, above = logs
    curvature = np.maximum(2.0 * middle - below - above, FLATTEST)
    slope = 0.5 * (above - below)
    log_weights = middle + 0.5 * slope**2 / curvature - 0.5 * np.log(curvature)
    weights = np.exp(log_weights - log_weights.max(axis=0))
    return Conditional(
        weights / weights.sum(axis=0), slope / curvature, 1.0 / np.sqrt(curvature)
    )
