"""Scores of predicted targets, intervals and densities, with their uncertainty.

Forecasts are arrays of shape (n, 2 + L), a row each: the mean, the log predictive density
of the target (NaN for models that have none), and the quantiles of the `LEVELS`, whose
ends make the interval that is scored. `as_forecasts` puts them together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix._typing import FloatArray, IntArray

# Levels of the quantiles that are compared with targets. Between the outer ones is the
# interval that is scored.
LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
COVERAGE = 0.9
# Places in forecasts.
_MEAN, _LOG_DENSITY, _FIRST_QUANTILE = 0, 1, 2
# Figures of a row that are summed, with their products: one, the target and its square,
# the squared and the absolute error, whether the interval holds the target, the score of
# the interval, and the log predictive density.
_ONE, _TARGET, _SQUARE, _SQUARED, _ABSOLUTE, _HELD, _SCORE, _DENSITY = range(8)


def as_forecasts(
    means: FloatArray, log_densities: FloatArray, quantiles: FloatArray
) -> FloatArray:
    """Put forecasts together: means (n,), log densities (n,) and quantiles (n, L)."""
    return np.column_stack([means, log_densities, quantiles])


def means_of(forecasts: FloatArray) -> FloatArray:
    """Return the predicted means, (n,)."""
    return forecasts[:, _MEAN]


def intervals_of(forecasts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of the intervals, (n,) each."""
    return forecasts[:, _FIRST_QUANTILE], forecasts[:, -1]


@dataclass(frozen=True)
class RegressionSums:
    """What scores of forecasts are made of, summed over rows.

    Sums over parts of a table can be added, if they have the same origin.

    Attributes
    ----------
    origin : tuple of float
        A centre and a scale. Figures of rows are in multiples of the scale, and targets
        are counted from the centre, so that their powers keep their digits.
    products : ndarray of shape (8, 8)
        Sums of the products of all pairs of figures of a row, one among them: so sums,
        and variances of what is made of them.
    below : ndarray of shape (L,)
        Rows whose target is at most the quantile of each of the `LEVELS`.
    """

    origin: tuple[float, float]
    products: FloatArray
    below: IntArray

    @classmethod
    def of(
        cls,
        targets: FloatArray,
        forecasts: FloatArray,
        origin: tuple[float, float] | None = None,
    ) -> RegressionSums:
        """Sum over rows with these targets; the origin is their own by default."""
        if origin is None:
            origin = float(targets.mean()), float(targets.std()) or 1.0
        centre, scale = origin
        low, high = intervals_of(forecasts)
        error = (targets - means_of(forecasts)) / scale
        outside = np.maximum(low - targets, 0.0) + np.maximum(targets - high, 0.0)
        # The score of Gneiting and Raftery (2007): a target outside costs its distance
        # times 2 / (1 - coverage).
        score = (high - low + 2.0 / (1.0 - COVERAGE) * outside) / scale
        distance = (targets - centre) / scale
        figures = np.column_stack(
            [
                np.ones(len(targets)),
                distance,
                distance**2,
                error**2,
                np.abs(error),
                outside == 0.0,
                score,
                forecasts[:, _LOG_DENSITY],
            ]
        )
        quantiles = forecasts[:, _FIRST_QUANTILE:]
        below = np.sum(targets[:, None] <= quantiles, axis=0)
        return cls(origin, figures.T @ figures, below)

    def __add__(self, other: RegressionSums) -> RegressionSums:
        if self.origin != other.origin:
            raise ValueError("Sums that have different origins cannot be added.")
        return RegressionSums(
            self.origin, self.products + other.products, self.below + other.below
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return round(float(self.products[_ONE, _ONE]))

    @property
    def shares_below(self) -> FloatArray:
        """Shares of the rows whose target is at most each of the quantiles, (L,)."""
        return self.below / self.n_rows

    @property
    def calibration_error(self) -> float:
        """Mean distance of these shares from the levels of the quantiles."""
        return float(np.abs(self.shares_below - LEVELS).mean())

    def estimates(self) -> dict[str, Estimate]:
        """Return the scores by name."""
        scale = self.origin[1]
        held = float(self.products[_ONE, _HELD]) / self.n_rows

        def in_units(value: float) -> float:
            return value * scale

        return {
            "RMSE": self._mean(_SQUARED, least=0.0).map(math.sqrt).map(in_units),
            "MAE": self._mean(_ABSOLUTE, least=0.0).map(in_units),
            "R²": self._determination(),
            "coverage": Estimate.of_share(held, self.n_rows),
            "interval score": self._mean(_SCORE, least=0.0).map(in_units),
            "log predictive density": self._mean(_DENSITY),
        }

    def _mean(self, figure: int, least: float = -math.inf) -> Estimate:
        total, squares = self.products[_ONE, figure], self.products[figure, figure]
        return Estimate.of_sums(float(total), float(squares), self.n_rows, least)

    def _determination(self) -> Estimate:
        r"""Return the coefficient of determination, with an error by the delta method.

        With the squared error :math:`e^2` of mean :math:`A`, and the squared distance
        :math:`d^2` of the target from its mean, of mean :math:`B`, a row changes
        :math:`1 - A / B` by :math:`(A d^2 / B - e^2) / B`, which is a combination of the
        figures that are summed.
        """
        means = self.products[_ONE] / self.n_rows
        squared, centre = float(means[_SQUARED]), float(means[_TARGET])
        variance = float(means[_SQUARE]) - centre**2
        if variance <= 0.0 or self.n_rows < 2:
            return Estimate(math.nan, math.nan, math.nan)
        part = squared / variance**2
        used = [_ONE, _TARGET, _SQUARE, _SQUARED]
        change = np.array([part * centre**2, -2.0 * part * centre, part, -1.0 / variance])
        products = self.products[np.ix_(used, used)]
        spread = max(float(change @ products @ change) / self.n_rows, 0.0)
        error = math.sqrt(spread / (self.n_rows - 1))
        return Estimate.of_error(1.0 - squared / variance, error, most=1.0)


def regression_scores(targets: FloatArray, forecasts: FloatArray) -> dict[str, Estimate]:
    """Score forecasts.

    Parameters
    ----------
    targets : ndarray of shape (n,)
        Targets, none of them missing.
    forecasts : ndarray of shape (n, 2 + L)
        What `as_forecasts` returns.

    Returns
    -------
    scores : dict of str to Estimate
        RMSE, MAE, R², coverage and score of the 90 % intervals, and mean log predictive
        density (NaN for models without densities), by their names.
    """
    return RegressionSums.of(targets, forecasts).estimates()
