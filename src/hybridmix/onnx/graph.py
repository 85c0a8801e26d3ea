"""ONNX graphs, where onnx is installed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# Values of a graph are known by their names.
Value = str


def import_onnx() -> Any:
    """Import onnx, or say how to install it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "Export to ONNX needs onnx: pip install 'hybridmix[onnx]'."
        ) from error
    return onnx


class Graph:
    """A graph under construction.

    Subgraphs see the values of the graphs around them, and leave it to the outermost one
    to keep their constants.

    Parameters
    ----------
    around : Graph or None
        The graph that this one is a part of.

    Attributes
    ----------
    outermost : Graph
        The graph that all others are in.
    """

    def __init__(self, around: Graph | None = None) -> None:
        self._onnx = import_onnx()
        self.outermost: Graph = self if around is None else around.outermost
        self._numbers = itertools.count()
        self._constants: list[Any] = []
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def op(self, kind: str, *inputs: Any, **attributes: Any) -> Value:
        """Add a node of one output; numbers among its inputs become constants."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(
        self, kind: str, n_outputs: int, *inputs: Any, **attributes: Any
    ) -> list[Value]:
        """Add a node of several outputs."""
        names = [v if isinstance(v, str) else self.constant(v) for v in inputs]
        outputs = [self._new_name(kind) for _ in range(n_outputs)]
        self._add(kind, names, outputs, **attributes)
        return outputs

    def cast(self, value: Value, dtype: npt.DTypeLike) -> Value:
        """Convert a value to another type."""
        return self.op("Cast", value, to=self._type(dtype))

    def constant(self, array: npt.ArrayLike) -> Value:
        """Keep an array of numbers, or of strings as objects."""
        name = self._new_name("constant")
        tensor = self._onnx.numpy_helper.from_array(np.array(array, order="C"), name)
        self.outermost._constants.append(tensor)
        return name

    def input(
        self,
        dtype: npt.DTypeLike,
        name: str | None = None,
        shape: Sequence[int | str] | None = None,
    ) -> Value:
        """Declare an input; in subgraphs it needs no name and seldom a shape."""
        name = self._new_name("input") if name is None else name
        self._inputs.append(self._info(name, dtype, shape))
        return name

    def output(
        self,
        value: Value,
        dtype: npt.DTypeLike,
        name: str | None = None,
        shape: Sequence[int | str] | None = None,
    ) -> None:
        """Declare an output; in subgraphs it needs no name and seldom a shape."""
        name = self._new_name("output") if name is None else name
        # Outputs must come from a node of the graph itself, not from one around it.
        self._add("Identity", [value], [name])
        self._outputs.append(self._info(name, dtype, shape))

    def proto(self, name: str) -> Any:
        """Return the graph as ONNX has it."""
        return self._onnx.helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, self._constants
        )

    def _add(
        self, kind: str, inputs: list[Value], outputs: list[Value], **attributes: Any
    ) -> None:
        node = self._onnx.helper.make_node(
            kind, inputs, outputs, outputs[0], **attributes
        )
        self._nodes.append(node)

    def _new_name(self, stem: str) -> str:
        # Inputs of a table have the names of columns, which are unlike these.
        return f"/{stem}/{next(self.outermost._numbers)}"

    def _type(self, dtype: npt.DTypeLike) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def _info(
        self, name: str, dtype: npt.DTypeLike, shape: Sequence[int | str] | None
    ) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._type(dtype), shape)
