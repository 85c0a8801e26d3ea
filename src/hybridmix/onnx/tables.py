"""Tables as inputs of a graph."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.data.columns import label_of
from hybridmix.data.table import FARTHEST
from hybridmix.onnx.graph import Graph, Value
from hybridmix.onnx.shapes import hidden, log_volume, shaped, spike_indicators


class RealRows(NamedTuple):
    """Real columns (n, d) in the scale of the model.

    Attributes
    ----------
    values : Value
        0 where missing.
    observed : Value
        Mask.
    """

    values: Value
    observed: Value

    def take(self, graph: Graph, index: Value) -> RealRows:
        """Return the rows of these numbers."""
        values, observed = (graph.op("Gather", part, index, axis=0) for part in self)
        return RealRows(values, observed)

    def presence(self, graph: Graph) -> Value:
        """Return the mask as numbers."""
        return graph.cast(self.observed, np.float64)


@dataclass(frozen=True)
class TableInputs:
    """The inputs of a graph.

    Attributes
    ----------
    schema : Schema
        The columns.
    number : dtype
        Type of numbers.
    whole : Value or None
        The table, if it is one input.
    single : dict of int to Value
        The columns in use, if each is an input of its own.
    target : Value or None
        A value (n, 1) of a target, which stands after the real columns; see `paired`.
    known_densities : dict of content to Value
        Log densities of components that the graph already has, by their parameters.
    """

    schema: Schema
    number: np.dtype[Any]
    whole: Value | None
    single: dict[int, Value]
    target: Value | None = None
    known_densities: dict[Hashable, Value] = field(default_factory=dict)

    @classmethod
    def declare(
        cls,
        graph: Graph,
        schema: Schema,
        number: np.dtype[Any],
        outputs: Sequence[str],
    ) -> TableInputs:
        """Add the inputs for a table to a graph that has outputs of these names."""
        texts = [j for j in schema.categorical if has_text(schema, j)]
        if not texts:
            whole = graph.input(number, "X", ["n", schema.n_columns])
            return cls(schema, number, whole, {})
        single = {}
        for j in sorted([*schema.real, *schema.categorical]):
            dtype = np.dtype(object) if j in texts else number
            name = column_name(schema, j)
            name = f"{name}_" if name in outputs else name
            single[j] = graph.input(dtype, name, ["n", 1])
        return cls(schema, number, None, single)

    @property
    def scale(self) -> FloatArray:
        """Scales of the real columns; 1 for a target."""
        own = self.schema.scale
        return own if self.target is None else np.append(own, 1.0)

    def paired(self, graph: Graph, targets: Sequence[Value]) -> TableInputs:
        """Repeat the rows for each of several values (n, 1) of a target, and append it.

        The values are in the scale of the model.
        """

        def stacked(parts: Sequence[Value]) -> Value:
            return graph.op("Concat", *parts, axis=0)

        def repeated(part: Value) -> Value:
            return stacked([part] * len(targets))

        whole = None if self.whole is None else repeated(self.whole)
        single = {j: repeated(column) for j, column in self.single.items()}
        return TableInputs(self.schema, self.number, whole, single, stacked(targets))

    def columns(self, graph: Graph, columns: Sequence[int]) -> Value:
        """Return some of the columns, (n, k)."""
        if self.whole is None:
            return graph.op("Concat", *(self.single[j] for j in columns), axis=1)
        if len(columns) == self.schema.n_columns:
            return self.whole
        return graph.op("Gather", self.whole, list(columns), axis=1)

    def real(self, graph: Graph) -> RealRows:
        """Return the real columns in the scale of the model."""
        if self.target is None:
            return self._columns(graph)
        target = RealRows(self.target, graph.op("Equal", self.target, self.target))
        if not self.schema.real:
            return target
        both = zip(self._columns(graph), target, strict=True)
        return RealRows(*(graph.op("Concat", *parts, axis=1) for parts in both))

    def _columns(self, graph: Graph) -> RealRows:
        raw, shaping, d = self._raw(graph), self.schema.shaping, len(self.schema.real)
        if shaping.spiked:
            observed = graph.op("Not", hidden(graph, raw, shaping, d))
        else:
            observed = graph.op("Not", graph.op("IsNaN", raw))
        if shaping.shapes:
            raw = shaped(graph, raw, shaping, d)
        centred = graph.op("Sub", raw, self.schema.centre)
        scaled = graph.op("Div", centred, self.schema.scale)
        clipped = graph.op("Clip", scaled, -FARTHEST, FARTHEST)
        return RealRows(graph.op("Where", observed, clipped, 0.0), observed)

    def _raw(self, graph: Graph) -> Value:
        """Return the real columns as they come in, but in double precision."""
        return graph.cast(self.columns(graph, self.schema.real), np.float64)

    def log_volume(self, graph: Graph) -> Value | None:
        """Return by how much shapes shrink log densities, (n, 1); None for nothing."""
        if not self.schema.shapes:
            return None
        return log_volume(graph, self._raw(graph), self.schema.shaping)

    def codes(self, graph: Graph) -> list[Value]:
        """Return which code a row has, for each code of the schema, as `indicators`."""
        categorical = [
            self.indicators(graph, column) for column in self.schema.categorical
        ]
        if not self.schema.shaping.spiked:
            return categorical
        spiked = spike_indicators(graph, self._raw(graph), self.schema.shaping)
        return categorical + spiked

    def indicators(self, graph: Graph, column: int) -> Value:
        """Return which category a row has, (n, k) of 0 and 1; nothing but 0 if missing.

        Categories that training did not see are missing, as in the model.
        """
        position = self.schema.categorical.index(column)
        values = self.schema.categories[position]
        cells = self.columns(graph, [column])
        if has_text(self.schema, column):
            cells = graph.op(
                "LabelEncoder",
                cells,
                domain="ai.onnx.ml",
                keys_strings=list(values),
                values_int64s=list(range(len(values))),
                default_int64=-1,
            )
            levels = np.arange(len(values))
        else:
            levels = self._levels(column, values)
        return graph.cast(graph.op("Equal", cells, levels), np.float64)

    def _levels(self, column: int, values: Sequence[Any]) -> np.ndarray:
        """Return numbers that are categories, as they come in."""
        levels = np.array([float(value) for value in values]).astype(self.number)
        if len(np.unique(levels)) < len(values):
            raise ValueError(
                f"Some categories of {label_of(self.schema.names, column)} are the same "
                f"number in {self.number}. Use dtype='float64', or categories that are "
                "strings."
            )
        return levels


def column_name(schema: Schema, column: int) -> str:
    """Return the name of a column, or a name for it."""
    return f"x{column}" if schema.names is None else schema.names[column]


def has_text(schema: Schema, column: int) -> bool:
    """Return whether the categories of a column are strings; else they are numbers."""
    values = schema.categories[schema.categorical.index(column)]
    if all(isinstance(value, str) for value in values):
        return True
    if all(isinstance(value, int | float) for value in values):
        return False
    raise TypeError(
        f"The categories of {label_of(schema.names, column)} are neither all strings nor "
        "all numbers, and ONNX has no type for that. Make them strings and fit again."
    )
