"""Fitted mixtures in the units of the table, whole or over some of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._logsumexp import class_posterior
from hybridmix._parallel import Workers, workers
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import Schema, Table
from hybridmix.data.shapes import ColumnShape
from hybridmix.evaluation import log_joint
from hybridmix.models.chains import Chains
from hybridmix.models.committee import Committee
from hybridmix.models.mixture import Mixture
from hybridmix.models.readout import MarginalReadout, Readout, component_log_joint

# What may be asked for the class of a row, instead of a mixture.
Voter = Committee | Readout | MarginalReadout


def factors_in_units(model: Mixture | Chains, schema: Schema) -> list[Any]:
    """Return the parameters of a mixture in the units of the table.

    Parameters
    ----------
    model : Mixture or Chains
        In scaled coordinates.
    schema : Schema
        The columns, with their scales.

    Returns
    -------
    factors : list of Parameters
        Those of the real columns and those of the categorical ones, as far as there are
        any.
    """
    # Variances of columns near the largest float have no finite value.
    with np.errstate(over="ignore"):
        components = model.components.affine(schema.scale, schema.centre)
    return list(getattr(components, "factors", [components]))


def committee_of(estimator: Any) -> Committee | None:
    """Return the committee of a fitted estimator, if it has one."""
    return getattr(estimator, "committee_", None)


def voter_of(estimator: Any) -> Committee | Readout | None:
    """Return what is asked for the class, if it is not the mixture of the density."""
    network = getattr(estimator, "network_", None)
    return committee_of(estimator) if network is None else network.readout


def class_log_joint(
    model: Mixture, voter: Voter | None, table: Table, pool: Workers
) -> FloatArray:
    """Return ``log p(x, c)`` in the units of the table, (C, n).

    Parameters
    ----------
    model : Mixture
        The joint density; of the rows alone, if there is something else to ask.
    voter : Committee, Readout or None
        What is asked for the class.
    table : Table
        The rows.
    pool : Workers
        Threads.
    """
    joint = log_joint(model, table, pool) - table.log_volume()
    if voter is None:
        return joint
    log_density, _ = class_posterior(joint)
    return log_joint(voter, table, pool) + log_density


@dataclass(frozen=True)
class Marginal:
    """A fitted mixture over some of its columns, with the others integrated out exactly.

    Attributes
    ----------
    schema : Schema
        These columns.
    model : Mixture
        Their mixture, in scaled coordinates.
    voter : Committee, MarginalReadout or None
        What is asked for the class instead.
    """

    schema: Schema
    model: Mixture
    voter: Voter | None = None

    @classmethod
    def of(cls, estimator: Any, columns: Sequence[int]) -> Marginal:
        """Return the marginal of a fitted estimator over columns at some positions."""
        schema = estimator.schema_
        places = schema.model_places(columns)
        model = estimator.model_.marginal(*places)
        whole = voter_of(estimator)
        voter = None if whole is None else whole.marginal(*places)
        return cls(schema.marginal(columns), model, voter)

    def log_joint(self, real: FloatArray, codes: IntArray) -> FloatArray:
        """Return ``log p(x, c)`` in the units of the table.

        Parameters
        ----------
        real, codes : ndarray of shape (n, n_real), (n, n_categorical)
            Values of the real and of the categorical columns, in their order.

        Returns
        -------
        log_joint : ndarray of shape (C, n)
        """
        table = Table(self.schema, real, codes, bool(np.isnan(real).any()))
        with workers() as pool:
            return class_log_joint(self.model, self.voter, table, pool)

    def log_components(self, real: FloatArray, codes: IntArray) -> FloatArray:
        """Return ``log p(x, k)`` of all components (J, n), in the units of the table.

        Parameters
        ----------
        real, codes : ndarray of shape (n, n_real), (n, n_categorical)
            As in `log_joint`.
        """
        table = Table(self.schema, real, codes, bool(np.isnan(real).any()))
        joint, _ = component_log_joint(self.model, self.model.prepare(table[:]))
        return joint - table.log_volume()

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return means (J, k) and covariances (J, k, k) of the mapped real columns."""
        gaussian = factors_in_units(self.model, self.schema)[0]
        return gaussian.means, gaussian.full_covariances

    def column_moments(self) -> tuple[FloatArray, FloatArray]:
        """Return means and deviations (J,) of the only column, which is real.

        They are those of its values, spikes among them, whatever its shape.
        """
        means, covariances = (part.reshape(-1) for part in self.moments())
        shape = self.schema.shapes.get(self.schema.real[0], ColumnShape())
        shares: Iterable[FloatArray] = ()
        if shape.spikes:
            codes = factors_in_units(self.model, self.schema)[1]
            shares = np.exp(codes.log_probabilities).T
        return value_moments(shape, means, np.sqrt(covariances), shares)


def value_moments(
    shape: ColumnShape,
    means: FloatArray,
    deviations: FloatArray,
    shares: Iterable[FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return means and deviations of the values of a column, spikes among them.

    Parameters
    ----------
    shape : ColumnShape
        Of the column.
    means, deviations : ndarray
        Of the mapped values that are not spikes.
    shares : iterable of ndarray
        Probabilities of such a value and of each spike; of no use without spikes.
    """
    means, deviations = shape.moments(means, deviations)
    if not shape.spikes:
        return means, deviations
    other, *spiked = shares
    squares = other * (deviations**2 + means**2)
    means = other * means
    for share, spike in zip(spiked, shape.spikes, strict=True):
        means, squares = means + share * spike, squares + share * spike**2
    return means, np.sqrt(np.maximum(squares - means**2, 0.0))
