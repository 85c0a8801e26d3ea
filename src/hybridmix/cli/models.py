"""Models and the tables that they are applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import hybridmix
from hybridmix._text import with_article
from hybridmix._typing import FloatArray
from hybridmix.cli.cells import MISSING, CellError, Column, Marks
from hybridmix.cli.frames import as_frame
from hybridmix.cli.sequences import NO_KEYS, Keys
from hybridmix.cli.tables import Chunk, InputError, Table, not_a_number
from hybridmix.cli.values import matcher, split
from hybridmix.data import Schema
from hybridmix.estimators.chain_fitted import FittedChainsEstimator
from hybridmix.estimators.machines import FittedMachine
from hybridmix.io import read_metadata
from hybridmix.tasks import task_of

# The key of what the command line keeps in model files.
_METADATA = "command_line"


@dataclass(frozen=True)
class Model:
    """A fitted estimator, and what its file says about the table of training.

    Attributes
    ----------
    estimator : estimator
        The fitted estimator.
    target, weight : str or None
        Columns of the table that are not features.
    unlabelled : str or None
        The label that means none, in addition to missing cells.
    dropped : tuple of str
        Columns of the table that the model does not use.
    marks : frozenset of str
        Cells that count as missing.
    keys : Keys
        Columns of the table that make sequences of its rows, if the model is of those.
    thousands : str
        The mark between the thousands of numbers in text files; empty for none.
    """

    estimator: Any
    target: str | None = None
    weight: str | None = None
    unlabelled: str | None = None
    dropped: tuple[str, ...] = ()
    marks: Marks = MISSING
    keys: Keys = NO_KEYS
    thousands: str = ""

    @classmethod
    def load(cls, path: Path, more_marks: Sequence[str] = ()) -> Model:
        """Load a model that the command line or `hybridmix.save` has written."""
        estimator = hybridmix.load(path)
        kept = read_metadata(path).get(_METADATA, {})
        return cls(
            estimator,
            target=kept.get("target"),
            weight=kept.get("weight"),
            unlabelled=kept.get("unlabelled"),
            dropped=tuple(kept.get("dropped", ())),
            marks=MISSING.union(kept.get("missing", ()), more_marks),
            keys=Keys(tuple(kept.get("sequence", ())), kept.get("time")),
            thousands=kept.get("thousands", ""),
        )

    def save(self, path: Path) -> None:
        """Save the estimator, with what is needed to read further tables."""
        table: dict[str, Any] = {
            "target": self.target,
            "weight": self.weight,
            "unlabelled": self.unlabelled,
            "dropped": list(self.dropped),
            "missing": sorted(self.marks - MISSING),
        }
        if self.thousands:
            table["thousands"] = self.thousands
        if self.is_sequential:
            table |= {"sequence": list(self.keys.sequence), "time": self.keys.time}
        hybridmix.save(self.estimator, path, metadata={_METADATA: table})

    def with_keys(self, given: Keys) -> Model:
        """Return the model with columns of sequences that options name, if they do."""
        kind = with_article(type(self.estimator).__name__)
        if not self.is_sequential:
            for role in given.roles.values():
                raise InputError(
                    f"--{role} is for models of sequences; the model is {kind}."
                )
            return self
        keys = Keys(given.sequence or self.keys.sequence, given.time or self.keys.time)
        if not keys.sequence:
            raise InputError(
                f"The model is {kind}, and its file does not name the column of the "
                "ids of sequences: add --sequence NAME."
            )
        return replace(self, keys=keys)

    @property
    def is_sequential(self) -> bool:
        """Whether the model is of sequences, not of single rows."""
        return isinstance(self.estimator, FittedChainsEstimator)

    @property
    def is_machine(self) -> bool:
        """Whether the model is one of maximum entropy discrimination."""
        return isinstance(self.estimator, FittedMachine)

    def check_density(self) -> None:
        """Refuse a model that has no density of the rows, where one is needed."""
        if self.is_machine:
            raise InputError(
                f"The model is {with_article(type(self.estimator).__name__)}, which has "
                "no density of the rows, and that is needed here: use a model of "
                "hybridmix fit. predict, evaluate and inspect do without."
            )

    @property
    def unit(self) -> str:
        """What the model is about: a row or a sequence."""
        return task_of(self.estimator).unit

    @property
    def is_classifier(self) -> bool:
        """Whether the model has classes."""
        return task_of(self.estimator).target == "classes"

    @property
    def is_regressor(self) -> bool:
        """Whether the model predicts a number."""
        return task_of(self.estimator).target == "numbers"

    @property
    def predicts(self) -> bool:
        """Whether there is a target: classes or a number."""
        return self.is_classifier or self.is_regressor

    @property
    def target_labels(self) -> list[str]:
        """What to call the labels or the targets that the model predicts."""
        if self.target is not None:
            return [self.target]
        if self.is_classifier:
            return ["label"]
        unnamed = [f"y{k}" for k in range(self.estimator.n_outputs_)]
        names = self._target_names or (unnamed if len(unnamed) > 1 else ["target"])
        return list(names)

    @property
    def _target_names(self) -> tuple[str, ...] | None:
        """Names of the targets, if the model knows them."""
        schema = getattr(self.estimator, "target_schema_", None)
        return None if schema is None else schema.names

    def target_columns(self, given: str | None) -> list[str]:
        """Return the columns of the targets, as an option, the file or the model says.

        Several targets are separated by commas in the option. The list is empty if
        nothing says where they are.
        """
        n_targets = getattr(self.estimator, "n_outputs_", 1)
        if n_targets == 1:
            name = given or self.target
            return [] if name is None else [name]
        names = split([given]) if given else self._target_names or ()
        if given and len(names) != n_targets:
            raise InputError(
                f"--target {given}: the model predicts {n_targets} targets; name as many "
                "columns, separated by commas."
            )
        return list(names)

    @property
    def names(self) -> list[str] | None:
        """Names of the columns; None if the model was fitted to an array."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, also if the model does not know any."""
        return self.names or [f"x{j}" for j in range(self.estimator.n_features_in_)]

    @property
    def kinds(self) -> list[str]:
        """Kinds of the columns."""
        schema = self._schema
        if schema is None:
            return ["real"] * self.estimator.n_features_in_
        kinds = ["unused"] * schema.n_columns
        for kind, positions in (
            ("real", schema.real),
            ("categorical", schema.categorical),
        ):
            for j in positions:
                kinds[j] = kind
        return kinds

    @property
    def shapes(self) -> dict[int, str]:
        """Shapes of the real columns that are not plain, in words, by position."""
        schema = self._schema
        return {j: str(shape) for j, shape in schema.shapes.items()} if schema else {}

    @property
    def categories(self) -> dict[int, tuple[Any, ...]]:
        """Categories of the categorical columns, by their position."""
        schema = self._schema
        if schema is None:
            return {}
        return dict(zip(schema.categorical, schema.categories, strict=True))

    @property
    def _schema(self) -> Schema | None:
        """What training learned about the columns; machines may read numbers alone."""
        return getattr(self.estimator, "schema_", None)


@dataclass(frozen=True)
class Matching:
    """How the columns of a table fit a model.

    Attributes
    ----------
    model : Model
        The model.
    table : Table
        The table.
    sources : list of str or None
        For each column of the model, that of the table; None where it is missing.
    extra : list of str
        Columns that neither the model nor its training table has.
    """

    model: Model
    table: Table
    sources: list[str | None]
    extra: list[str]

    def frame(self, chunk: Chunk) -> Any:
        """Return rows as the estimator wants them: a data frame or an array."""
        columns: dict[str, Any] = {}
        kinds, categories = self.model.kinds, self.model.categories
        for j, (label, source) in enumerate(
            zip(self.model.column_names, self.sources, strict=True)
        ):
            if source is None or kinds[j] == "unused":
                # An object column of None is one of missing categories.
                empty = None if kinds[j] == "categorical" else np.nan
                columns[label] = [empty] * chunk.n_rows
            elif kinds[j] == "real":
                columns[label] = numbers_of(self.table, chunk, source, self.model.marks)
            else:
                texts = chunk.columns[source].texts(self.model.marks)
                columns[label] = matcher(categories[j])(texts)
        return as_frame(columns, kinds, as_array=self.model.names is None)

    @property
    def numeric(self) -> list[str]:
        """Columns of the table that are real in the model."""
        pairs = zip(self.sources, self.model.kinds, strict=True)
        return [name for name, kind in pairs if name is not None and kind == "real"]


def match(
    model: Model, table: Table, allow_missing: bool = False, target: str | None = None
) -> Matching:
    """Find the columns of a model in a table, in any order.

    Parameters
    ----------
    model : Model
        The model. If it was fitted to an array, columns count in their order.
    table : Table
        The table.
    allow_missing : bool, default=False
        Treat columns that are not there as missing in all rows.
    target : str or None, default=None
        The column of the labels, if it is not that of training.
    """
    model.keys.check(table)
    others = {*model.target_columns(target), model.weight, *model.dropped}
    others |= set(model.keys.roles)
    if model.names is None:
        return Matching(model, table, _sources_in_order(model, table, others), [])
    sources = _sources_by_name(model.names, table, allow_missing)
    known = {*model.names, *others}
    extra = [name for name in table.names if name not in known]
    return Matching(model, table, sources, extra)


def _sources_in_order(
    model: Model, table: Table, others: set[str | None]
) -> list[str | None]:
    """Take all columns of a table that are features, which must be as many as needed."""
    features: list[str | None] = [name for name in table.names if name not in others]
    n_needed = model.estimator.n_features_in_
    if len(features) != n_needed:
        raise InputError(
            f"The model was fitted to an array of {n_needed} columns without names, and "
            f"{table.path} has {len(features)}: {listed(features)}. Remove the others."
        )
    return features


def _sources_by_name(
    names: list[str], table: Table, allow_missing: bool
) -> list[str | None]:
    """Find columns by their names; None for those that may be missing and are."""
    there = set(table.names)
    lost = [name for name in names if name not in there]
    if len(lost) == len(names):
        raise InputError(
            f"{table.path} has none of the columns of the model: {listed(lost)}."
        )
    if lost and not allow_missing:
        raise InputError(
            f"{table.path} lacks {listed(lost)}, which the model was fitted to. Use "
            "--allow-missing to treat them as missing in all rows."
        )
    return [name if name in there else None for name in names]


def numbers_of(table: Table, chunk: Chunk, name: str, marks: Marks) -> FloatArray:
    """Return a column as numbers, or say which cell is not one."""
    try:
        return chunk.columns[name].numbers(marks)
    except CellError as error:
        row = chunk.start + error.position + 1
        raise InputError(not_a_number(table, name, row, error.text)) from None


def filled(
    matching: Matching, chunk: Chunk, completed: Any
) -> tuple[dict[str, Column], int]:
    """Fill the holes of a chunk in the columns of the model; count them."""
    columns = dict(chunk.columns)
    values = columns_of(completed)
    n_filled = 0
    for j, (source, kind) in enumerate(
        zip(matching.sources, matching.model.kinds, strict=True)
    ):
        if source is None or kind == "unused":
            continue
        column = columns[source]
        if kind == "real" and source in matching.table.whole_with_holes:
            column = column.widened()
        holes = np.array([text is None for text in column.texts(matching.model.marks)])
        columns[source] = column.filled(holes, values[j]) if holes.any() else column
        n_filled += int(holes.sum())
    return columns, n_filled


def columns_of(rows: Any) -> list[list[Any]]:
    """Return the columns of an array or data frame as lists."""
    if isinstance(rows, np.ndarray):
        return list(rows.T.tolist())
    import narwhals.stable.v2 as nw

    return [column.to_list() for column in nw.from_native(rows).iter_columns()]


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Name things in a message, but not too many of them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
