"""What sites tell each other about their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

from sklearn.base import BaseEstimator

from hybridmix._registered import registered
from hybridmix._require import require, require_instance, require_whole
from hybridmix.data import Schema
from hybridmix.data.categories import sorted_categories
from hybridmix.data.cells import label_of
from hybridmix.data.columns import Columns
from hybridmix.data.naming import named_columns
from hybridmix.data.summaries import RealSummary, TableSummary
from hybridmix.data.table import read_training_table
from hybridmix.data.weights import read_weights
from hybridmix.estimators.blocks import refuse_blocks


@registered
@dataclass(frozen=True)
class ColumnSummary:
    """What the rows of a site show about their columns.

    Attributes
    ----------
    names : tuple of str or None
        Column names; None for arrays.
    n_columns : int
        Number of columns.
    container : str
        What the table is: "numpy", "pandas", "polars" or another kind of frame.
    dtype_names : tuple of str
        Types of the columns.
    real, categorical : tuple of int
        Positions of the columns of either kind.
    moments : RealSummary
        Weights, largest magnitudes, means and squared deviations of the real columns.
    categories : tuple of tuple
        Values of each categorical column.
    """

    names: tuple[str, ...] | None
    n_columns: int
    container: str
    dtype_names: tuple[str, ...]
    real: tuple[int, ...]
    categorical: tuple[int, ...]
    moments: RealSummary
    categories: tuple[tuple[Any, ...], ...]

    def check_consistent(self) -> None:
        """Raise ValueError unless every column has what it needs."""
        require_whole("columns", (self.n_columns, *self.real, *self.categorical))
        positions = sorted(self.real + self.categorical)
        require(positions == list(range(self.n_columns)), "columns are not numbered")
        require_instance("moments", self.moments, RealSummary)
        self.moments.check_consistent()
        same = len(self.moments.weight) == len(self.real)
        require(same, "moments are those of other columns")
        same = len(self.categories) == len(self.categorical)
        require(same, "categories are missing")
        for names in (self.names or self.dtype_names, self.dtype_names):
            require(len(names) == self.n_columns, "names are missing")

    def dtype_name(self, column: int) -> str:
        """Return the type of a column."""
        return self.dtype_names[column]

    def merged(self, other: ColumnSummary) -> ColumnSummary:
        """Return what the rows of both sites show."""
        if (self.names, self.n_columns) != (other.names, other.n_columns):
            raise ValueError(
                f"Sites have different columns: {_listed(self)} and {_listed(other)}."
            )
        if self.real != other.real:
            [column, *_] = sorted(set(self.real) ^ set(other.real))
            raise ValueError(
                f"The sites differ: {label_of(self.names, column)} is real at one site "
                "and categorical at another. Name it in categorical_features at all "
                "sites, or give it the same type."
            )
        own, theirs = (one.table_summary() for one in (self, other))
        table = own.merged(theirs)
        return ColumnSummary(
            self.names,
            self.n_columns,
            self.container,
            self.dtype_names,
            self.real,
            self.categorical,
            table.real,
            tuple(map(sorted_categories, table.categories)),
        )

    def table_summary(self) -> TableSummary:
        """Return the moments and categories alone."""
        return TableSummary(self.moments, tuple(map(frozenset, self.categories)))


def _listed(summary: ColumnSummary) -> str:
    if summary.names is None:
        return f"{summary.n_columns} without names"
    return ", ".join(map(repr, summary.names))


def summarise_columns(
    X: Any,
    sample_weight: Any = None,
    categorical_features: Sequence[int | str | bool] | None = None,
) -> ColumnSummary:
    """Summarise the columns of a site's table.

    Parameters
    ----------
    X : array-like or data frame of shape (n, d)
        The table.
    sample_weight : array-like of shape (n,), default=None
        A row of weight two counts like two rows.
    categorical_features : list of int or str, or mask, default=None
        Categorical columns, besides those of type category, object, string or bool.

    Returns
    -------
    summary : ColumnSummary
        To send to whoever combines the schemas.
    """
    refuse_blocks(
        "summarise_columns",
        X,
        "Pass combine_schemas a summary of every block that scan(path) yields.",
    )
    columns, _ = read_training_table(BaseEstimator(), X)
    named = named_columns(categorical_features, columns)
    positions = range(columns.n_columns)
    chosen = [j for j in positions if j in named or columns.is_categorical(j)]
    real = [j for j in positions if j not in chosen]
    weights = read_weights(sample_weight, columns.n_rows)
    found = TableSummary.of(columns, real, chosen, weights)
    return ColumnSummary(
        columns.names,
        columns.n_columns,
        columns.container,
        tuple(columns.dtype_name(j) for j in positions),
        tuple(real),
        tuple(chosen),
        found.real,
        tuple(map(sorted_categories, found.categories)),
    )


def combine_schemas(summaries: Sequence[ColumnSummary]) -> Schema:
    """Return the schema of the tables of all sites, one below the other.

    Shapes of columns are plain: to choose others takes rows.

    Parameters
    ----------
    summaries : sequence of ColumnSummary
        One of each site.

    Returns
    -------
    schema : Schema
        For the first call of ``partial_fit``.
    """
    if not summaries:
        raise ValueError("combine_schemas needs the summary of at least one site.")
    for summary in summaries:
        if not isinstance(summary, ColumnSummary):
            raise TypeError(
                "combine_schemas takes what summarise_columns returns, got "
                f"{type(summary).__name__}."
            )
    whole = reduce(ColumnSummary.merged, summaries)
    return Schema.from_summary(
        cast(Columns, whole), whole.real, whole.categorical, whole.table_summary()
    )
