"""Tables for densities of classes: how they are read, and which priors they have."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix.data import MISSING_CODE, Rows, Schema
from hybridmix.families.conjugates import (
    Conjugate,
    DirichletMultinomial,
    GammaPoisson,
)
from hybridmix.families.conjugates.base import observed_cells
from hybridmix.med.models.families import conjugate_of

# Densities of tables that a schema encodes, and of counts as they are.
TABLES = ("gaussian", "independent", "tree")
COUNTS = ("poisson", "multinomial")
DENSITIES = (*TABLES, *COUNTS)
# Columns of these have switches.
SWITCHED = ("independent", "poisson")


def check_density_options(estimator: Any) -> None:
    """Refuse options of a classifier that densities do not have."""
    model = estimator.model
    if estimator.kernels is not None:
        raise ValueError(f"kernels are not for densities: model={model!r}.")
    if estimator.transduction is not None:
        raise ValueError(
            f"transduction is not for densities: model={model!r}. "
            "HybridMixtureClassifier learns from unlabelled rows."
        )
    if estimator.solver not in ("auto", "ascent"):
        raise ValueError(
            f"solver={estimator.solver!r} does not suit densities: use solver='auto'."
        )
    if estimator.inclusion < 1.0 and model not in SWITCHED:
        raise ValueError(
            f"inclusion needs columns that are independent, unlike model={model!r}. Use "
            f"one of {', '.join(SWITCHED)}."
        )


def rows_of_counts(matrix: np.ndarray) -> Rows:
    """Return rows whose real columns are counts, without any scaling."""
    return Rows(matrix.T, None, np.empty((0, len(matrix)), dtype=np.int32))


def conjugate_for(model: str, rows: Rows, schema: Schema | None) -> Conjugate:
    """Return the kind of priors that the densities of a table have.

    Parameters
    ----------
    model : str
        One of `DENSITIES`.
    rows : Rows
        Training rows.
    schema : Schema or None
        Of the table; None for counts.
    """
    n_real = len(rows.real)
    if schema is None:
        return (
            GammaPoisson(n_real) if model == "poisson" else DirichletMultinomial(n_real)
        )
    refuse_holes(model, rows, schema)
    return conjugate_of(model, n_real, schema.code_sizes)


def refuse_holes(model: str, rows: Rows, schema: Schema) -> None:
    """Refuse rows with holes, for densities that have no posterior with them."""
    if model == "gaussian":
        holes, positions = ~observed_cells(rows), schema.real
    elif model == "tree":
        holes, positions = rows.codes == MISSING_CODE, schema.categorical
    else:
        return
    if not holes.any():
        return
    column, row = np.argwhere(holes)[0]
    position = positions[column]
    name = position if schema.names is None else repr(schema.names[position])
    raise ValueError(
        f"Input X contains NaN or other missing values: the first is in row {row} of "
        f"column {name}. model={model!r} needs complete rows: use model='independent' or "
        "HybridMixtureClassifier, which leave missing cells out exactly, or fill them "
        "with a MixtureImputer."
    )
