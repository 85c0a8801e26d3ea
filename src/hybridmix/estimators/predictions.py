"""Prediction of real targets from the joint density of rows and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hybridmix._parallel import workers
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray
from hybridmix.data import Schema, Table
from hybridmix.data.rows import Rows
from hybridmix.data.shapes import ColumnShape
from hybridmix.data.targets import PairedRows, TargetPlaces
from hybridmix.estimators.blocks import over_blocks
from hybridmix.estimators.targets import FittedRegressor
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.predictive import Forecast, Predictive

Read = Callable[[Forecast, int], FloatArray]
# Values nearer to a spike than this, in the scale of rows, are the spike.
_SAME = 1e-9


class MixtureForecaster(FittedRegressor):
    """Base of the regressors that know distributions: mixtures of rows and targets."""

    predictive_: Predictive
    purpose = "predicts real targets by mixture densities of rows and targets"
    fitted_attributes = (*FittedRegressor.fitted_attributes, "predictive_")

    def check_consistent(self) -> None:
        """Raise ValueError unless the members are mixtures of these rows and targets."""
        super().check_consistent()
        targets = self.target_schema_
        require_instance("predictive_", self.predictive_, Predictive)
        wanted = (
            len(self.schema_.real) + len(targets.real),
            self.schema_.code_sizes + targets.code_sizes,
        )
        for member in self.predictive_.members:
            layout = member.family.layout()
            require(layout in (None, wanted), "predictive_ has other columns")

    def _of_target(self, target: int) -> dict[str, Any]:
        places, schema = self._places, self.schema_
        code = places.codes[target]
        real = [*range(len(schema.real)), places.real[target]]
        codes = [*range(len(schema.code_sizes)), *([] if code is None else [code])]
        members = tuple(own.marginal(real, codes) for own in self.predictive_.members)
        return {"predictive_": replace(self.predictive_, members=members)}

    # Evaluation by chunks -------------------------------------------------------------

    @property
    def _places(self) -> TargetPlaces:
        return TargetPlaces.of(self.schema_, self.target_schema_)

    def _forecasts(self, features: Table, read: Read) -> FloatArray:
        """Return what is read of the distributions of all targets, (t, ..., n)."""
        rows = PairedRows(features, None, self.target_schema_)
        with workers(self._n_threads) as pool:
            chunked = ChunkedRows(rows, self.predictive_.widest, pool)

            def chunk(number: int) -> FloatArray:
                found = self._part_forecasts(rows[chunked.chunks[number]])
                return np.stack([read(own, k) for k, own in enumerate(found)])

            return np.concatenate(list(chunked.map(chunk)), axis=-1)

    def _part_forecasts(self, part: Rows) -> Iterator[Forecast]:
        """Yield the distributions of all targets of joint rows."""
        places, targets = self._places, self.target_schema_
        for k, (place, code) in enumerate(zip(places.real, places.codes, strict=True)):
            yield self.predictive_.forecast(part, place, code, atoms_of(targets, k))

    def table_forecasts(self, table: Table) -> list[Forecast]:
        """Return the distributions of all targets of a few encoded rows."""
        rows = PairedRows(table, None, self.target_schema_)
        return list(self._part_forecasts(rows[:]))

    def table_moments(self, table: Table) -> tuple[FloatArray, FloatArray]:
        """Return means and deviations (t, n) of the targets of encoded rows."""

        def read(own: Forecast, k: int) -> FloatArray:
            return np.stack(forecast_moments(own, self.target_schema_, k))

        found = self._forecasts(table, read)
        return found[:, 0], found[:, 1]

    def table_quantiles(self, table: Table, levels: FloatArray) -> FloatArray:
        """Return quantiles (t, q, n) of the targets of encoded rows."""

        def read(own: Forecast, k: int) -> FloatArray:
            n_rows = own.means.shape[1]
            found = [own.quantiles(np.full(n_rows, level)) for level in levels]
            return in_units(np.stack(found), self.target_schema_, k)

        return self._forecasts(table, read)

    def _table_log_density(self, table: Table, targets: Table) -> FloatArray:
        """Return log densities (n,) of the targets of encoded rows, those that are known.

        They are in the units of the targets.
        """
        rows = PairedRows(table, targets, self.target_schema_)
        places = self._places
        with workers(self._n_threads) as pool:
            chunked = ChunkedRows(rows, self.predictive_.widest, pool)

            def chunk(number: int) -> FloatArray:
                return self.predictive_.log_density(rows[chunked.chunks[number]], places)

            return np.concatenate(list(chunked.map(chunk))) - targets.log_volume()

    def _table_draws(self, table: Table, n_samples: int, seed: int) -> FloatArray:
        """Draw targets (t, n_samples, n) of encoded rows."""
        rows = PairedRows(table, None, self.target_schema_)
        places, targets = self._places, self.target_schema_
        with workers(self._n_threads) as pool:
            chunked = ChunkedRows(rows, self.predictive_.widest, pool)

            def chunk(number: int) -> FloatArray:
                here = chunked.chunks[number]
                # A generator for each chunk makes draws independent of the threads.
                generator = np.random.default_rng([seed, here.start])
                draws = self.predictive_.draw(
                    rows[here],
                    places,
                    [atoms_of(targets, k) for k in range(len(targets.real))],
                    n_samples,
                    generator,
                )
                pairs = enumerate(draws)
                return np.stack([in_units(own, targets, k, True) for k, own in pairs])

            return np.concatenate(list(chunked.map(chunk)), axis=-1)

    # Public -----------------------------------------------------------------------------

    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return the expected targets given each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are marginalised.
        return_std : bool, default=False
            Return also the standard deviations of the predictive distributions.

        Returns
        -------
        y : ndarray of shape (n,) or (n, t)
            Means, in the form that the targets of training had.
        std : ndarray of the same shape
            Deviations, if they were asked for.
        """
        both = self._moments(X)
        return (both[..., 0], both[..., 1]) if return_std else both[..., 0]

    @over_blocks
    def _moments(self, X: Any) -> FloatArray:
        """Return means and deviations side by side, (n, 2) or (n, t, 2)."""
        moments = map(self._shaped, self.table_moments(self._encode(X)))
        return np.stack(list(moments), axis=-1)


def _shape(targets: Schema, k: int) -> ColumnShape:
    return targets.shaping.shapes.get(k, ColumnShape())


def atoms_of(targets: Schema, k: int) -> FloatArray:
    """Return the spikes of a target, in the scale of rows."""
    shape = _shape(targets, k)
    mapped = shape.forward(np.array(shape.spikes, dtype=np.float64))
    return (mapped - targets.centre[k]) / targets.scale[k]


def in_units(
    values: FloatArray, targets: Schema, k: int, whole: bool = False
) -> FloatArray:
    """Turn values in the scale of rows into the units of a target, within its bounds.

    Those of whole numbers are rounded if `whole`.
    """
    shape = _shape(targets, k)
    found = shape.inverse(values * targets.scale[k] + targets.centre[k])
    found = shape.allowed(found) if whole else np.clip(found, shape.low, shape.high)
    for spike, atom in zip(shape.spikes, atoms_of(targets, k), strict=True):
        found = np.where(np.abs(values - atom) < _SAME, spike, found)
    return found


def forecast_moments(
    own: Forecast, targets: Schema, k: int
) -> tuple[FloatArray, FloatArray]:
    """Return the means and deviations (n,) of a target, in its units."""
    shape, scale = _shape(targets, k), targets.scale[k]
    means, deviations = shape.moments(
        own.means * scale + targets.centre[k], own.deviations * scale
    )
    if shape.transform is not None:
        # The mean of a long tail may lie far beyond all rows.
        means = np.clip(means, shape.least, shape.most)
    mean = np.einsum("jn,jn->n", own.weights, means)
    spikes = np.array(shape.spikes, dtype=np.float64)
    mean += spikes @ own.masses
    # Differences to the mean keep their digits.
    variance = np.einsum("jn,jn->n", own.weights, deviations**2 + (means - mean) ** 2)
    variance += np.einsum("sn,sn->n", own.masses, (spikes[:, None] - mean) ** 2)
    low, high = min((shape.low, *shape.spikes)), max((shape.high, *shape.spikes))
    return np.clip(mean, low, high), np.sqrt(variance)
