"""Tables for densities of classes: how they are read, and which priors they have."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data import Rows, Schema
from hybridmix.families.conjugates import (
    Conjugate,
    Dirichlet,
    DirichletMultinomial,
    DirichletTrees,
    GammaPoisson,
    Independent,
    NormalGamma,
    NormalWishart,
)

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


def rows_of_counts(matrix: FloatArray) -> Rows:
    """Return rows whose real columns are counts, without any scaling."""
    return Rows(matrix.T, None, np.empty((0, len(matrix)), dtype=np.int32))


def conjugate_of(model: str, rows: Rows, schema: Schema | None) -> Conjugate:
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
    sizes = schema.code_sizes
    if model == "gaussian":
        _refuse_columns(model, schema, schema.categorical, "categorical")
        refuse_holes(model, rows, schema)
        return NormalWishart(n_real)
    if model == "tree":
        _refuse_columns(model, schema, schema.real, "real")
        refuse_holes(model, rows, schema)
        return DirichletTrees(sizes)
    parts: list[Conjugate] = [NormalGamma(n_real)] if n_real else []
    return Independent((*parts, *([Dirichlet(sizes)] if sizes else [])))


def refuse_holes(model: str, rows: Rows, schema: Schema) -> None:
    """Refuse rows with holes, for densities that have no posterior with them."""
    if model == "independent":
        return
    holes = rows.codes < 0 if model == "tree" else None
    if model == "gaussian" and rows.observed is not None:
        holes = ~rows.observed
    if holes is None or not holes.any():
        return
    column, row = np.argwhere(holes)[0]
    position = (schema.categorical if model == "tree" else schema.real)[column]
    raise ValueError(
        f"Input X contains NaN or other missing values: the first is in row {row} of "
        f"column {_named(schema, position)}. model={model!r} needs complete rows: use "
        "model='independent' or HybridMixtureClassifier, which leave missing cells out "
        "exactly, or fill them with a MixtureImputer."
    )


def _refuse_columns(
    model: str, schema: Schema, positions: tuple[int, ...], kind: str
) -> None:
    """Refuse columns of a kind that a density is not made for."""
    if not positions:
        return
    binned = ", or KBinsDiscretizer with categorical_features" if kind == "real" else ""
    raise ValueError(
        f"model={model!r} does not take {kind} columns, such as column "
        f"{_named(schema, positions[0])}. Use model='independent'{binned}."
    )


def _named(schema: Schema, position: int) -> str:
    return str(position) if schema.names is None else repr(schema.names[position])
