"""Description: how probable rows are under a density."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridmix._estimates import Estimate
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.columns import label_of
from hybridmix.data.shapes import ColumnShape
from hybridmix.estimators import MixtureDensity
from hybridmix.estimators.base import FittedMixture
from hybridmix.tasks.base import FEWEST_ROWS, Cases, Entrant, Metric, Task


class Describe(Task):
    """Model the rows themselves: densities, imputers and outlier detectors."""

    target = "none"
    row = "row", "rows"
    others = (
        "The other model assumes independent columns: a normal distribution for each "
        "real one, and frequencies for the categories of the others."
    )
    metrics = (
        Metric(
            "mean log density",
            "Mean over the rows, in the units of the table. Models can be compared by it "
            "on the same rows: the higher, the better they know such rows.",
        ),
    )
    headline = ("mean log density",)

    def read(self, model: Any, y: Any, n_rows: int) -> tuple[None, IntArray]:
        """Return nothing: labels say nothing about a density."""
        return None, np.zeros(n_rows, dtype=np.intp)

    def groups(self, cases: Cases) -> IntArray:
        """Return one group of all rows."""
        return np.zeros(cases.table.n_rows, dtype=np.intp)

    def obstacle(self, cases: Cases) -> str | None:
        """Say whether there are too few rows."""
        n_rows = cases.table.n_rows
        if n_rows < FEWEST_ROWS:
            return f"Scores need {FEWEST_ROWS} rows or more; there are {n_rows} rows."
        return None

    def fold_obstacle(self, cases: Cases) -> str | None:
        """Say which column has too few values to hold some of them out."""
        table, schema = cases.table, cases.table.schema
        for positions, is_there in (
            (schema.real, ~np.isnan(table.real)),
            (schema.categorical, table.codes >= 0),
        ):
            for column, n_values in zip(positions, is_there.sum(axis=0), strict=True):
                # Densities of models that lack a column cannot be compared with others.
                if n_values < FEWEST_ROWS:
                    return (
                        f"Cross-validation needs {FEWEST_ROWS} values or more in each "
                        f"column; {label_of(schema.names, column)} has {n_values}."
                    )
        return None

    def fresh_model(self, cases: Cases) -> Any:
        """Return an unfitted density with the options of the model that was given."""
        model = cases.model
        # All models of this task have these options, and a density needs no others: the
        # threshold of a detector and the draws of an imputer say nothing about its rows.
        options = {
            name: value
            for name, value in model.get_params(deep=False).items()
            if name in MixtureDensity().get_params(deep=False)
        }
        fresh = MixtureDensity(**options).set_params(verbose=0)
        # Densities can be compared only if columns have the same spikes everywhere.
        fresh.set_params(column_shapes=_same_shapes(cases))
        if isinstance(model.init, FittedMixture):
            # A fitted model as a start has seen the rows that are to be held out.
            fresh.set_params(init="kmeans")
        if isinstance(model.init, FittedMixture) or self.keeps_choice(cases):
            # What was chosen is part of the model: an imputer chooses otherwise than a
            # density would, and a search in every fold would take long.
            fresh.set_params(**_chosen(model))
        if model.random_state is None:
            fresh.set_params(random_state=cases.seed)
        return fresh

    def keeps_choice(self, cases: Cases) -> bool:
        """Return whether the structure of the model was chosen with all rows."""
        return "auto" in _structure(cases.model)

    def baselines(
        self, cases: Cases, used: IntArray, folds: IntArray
    ) -> Iterator[Entrant]:
        """Make a density that takes the columns to be independent."""
        categorical = list(cases.table.schema.categorical) or None

        def independent() -> MixtureDensity:
            return MixtureDensity(
                1,
                covariance_type="diag",
                categorical_features=categorical,
                column_shapes=_same_shapes(cases),
            )

        everyone = np.ones(len(used), dtype=bool)
        yield Entrant(
            "independent columns", cases.part(used), None, everyone, independent
        )

    def outputs(self, cases: Cases, model: Any, X: Any, truth: IntArray) -> FloatArray:
        """Return log densities, (n,)."""
        # The score of an outlier detector is its typicality.
        return FittedMixture.score_samples(model, X)

    def scores(self, truth: IntArray, outputs: FloatArray) -> dict[str, Estimate]:
        """Return the mean log density."""
        return {"mean log density": Estimate.of_values(outputs)}


def _structure(model: Any) -> list[Any]:
    """Return the options of a model that a search may choose."""
    given = model.covariance_type, model.n_components
    return [value for value in given if isinstance(value, str)]


def _chosen(model: Any) -> dict[str, Any]:
    """Return the options that lead to the structure of a fitted model."""
    chosen: dict[str, Any] = {"n_components": int(model.n_components_)}
    for name in ("covariance_type", "covariance_prior"):
        value = getattr(model, f"{name}_", None)
        if value is not None:
            chosen[name] = value
    return chosen


def _same_shapes(cases: Cases) -> dict[int, ColumnShape]:
    """Return the shapes of all real columns, as the model has them."""
    schema = cases.table.schema
    return {j: schema.shapes.get(j, ColumnShape()) for j in schema.real}
