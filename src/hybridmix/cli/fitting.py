"""Fitting estimators to the table of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.cli.cells import MISSING, Marks, is_number
from hybridmix.cli.columns import MAYBE_NAMES, ColumnKind, inferred_kinds
from hybridmix.cli.console import Console
from hybridmix.cli.frames import as_frame
from hybridmix.cli.hints import warn_of_stand_ins
from hybridmix.cli.interrupts import stop_if_interrupted
from hybridmix.cli.labels import (
    REGRESS,
    Target,
    decided_task,
    training_target,
    warn_of_groups,
)
from hybridmix.cli.large import (
    ANY_FREE,
    CountedTarget,
    Labels,
    LargeTable,
    Memory,
    count_labels,
    excess,
)
from hybridmix.cli.models import Model, listed, numbers_of
from hybridmix.cli.sequences import NO_KEYS, Keys, one_label_each, one_weight_each
from hybridmix.cli.tables import CHUNK_ROWS, InputError, Table
from hybridmix.cli.text_format import USUAL, TextFormat
from hybridmix.cli.values import Texts, split, without_mark
from hybridmix.data.sequences import Sequences
from hybridmix.data.stacking import take_rows

# Columns that are left out and named one by one.
_NAMED = 8


@dataclass(frozen=True)
class Reading:
    """How to read the table of a fit: what the options say about its columns."""

    real: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    target: str | None = None
    unlabelled: str | None = None
    weight: str | None = None
    task: str | None = None
    keys: Keys = NO_KEYS
    text: TextFormat = USUAL
    memory: Memory = ANY_FREE

    @property
    def marks(self) -> Marks:
        """Cells that count as missing."""
        return MISSING.union(self.na)


@dataclass(frozen=True)
class Training:
    """The table of a fit.

    Attributes
    ----------
    kinds : list of ColumnKind
        What its columns are treated as.
    frame : data frame, Sequences or LargeTable
        The rows, or the sequences that they make.
    target : Target or None
        What is to be predicted, for each row or sequence.
    weights : ndarray of shape (n,), str or None
        Their weights; of a large table, the name of the column.
    """

    kinds: list[ColumnKind]
    frame: Any
    target: Target | None
    weights: FloatArray | str | None

    @property
    def is_large(self) -> bool:
        """Whether rows are read in blocks."""
        return isinstance(self.frame, LargeTable)

    @property
    def n_rows(self) -> int:
        """Number of rows or sequences; of a large table, once it was read."""
        return self.frame.n_rows if self.is_large else len(self.frame)

    @property
    def task(self) -> str:
        """What the target asks for."""
        assert self.target is not None
        return self.target.task

    @property
    def y(self) -> np.ndarray | None:
        """The labels or targets, if there are any."""
        return None if self.target is None else self.target.values

    def model(self, estimator: Any, reading: Reading) -> Model:
        """Return a fitted estimator with what it needs to read further tables."""
        dropped = tuple(kind.name for kind in self.kinds if kind.kind == "dropped")
        return Model(
            estimator,
            reading.target,
            reading.weight,
            reading.unlabelled,
            dropped,
            reading.marks,
            reading.keys,
            reading.text.thousands,
        )


def read_training(
    table: Table, reading: Reading, console: Console, in_blocks: bool = True
) -> Training:
    """Read a whole table, with the kinds that its columns seem to have.

    A table that does not fit into memory is read in blocks, while it is trained on.

    Parameters
    ----------
    table : Table
        The file.
    reading : Reading
        How to read it.
    console : Console
        Where to say what was found.
    in_blocks : bool, default=True
        Whether the estimator can be trained in blocks.
    """
    warn_of_renamed(table, console)
    if all(is_number(name, allow_infinite=True) for name in table.names):
        console.warn(f"All names in {table.path} are numbers: does it lack a header?")
    kinds = inferred_kinds(
        table,
        console.track(table.chunks(CHUNK_ROWS), "looking at columns"),
        reading.marks,
        real=reading.real,
        categorical=reading.categorical,
        dropped=reading.drop,
        roles=_roles(table, reading),
    )
    _check_target(kinds, reading)
    if not any(kind.kind in ("real", "categorical") for kind in kinds):
        raise InputError(f"{table.path} has no column to learn from.")
    found = excess(table, kinds, reading.memory)
    if found and in_blocks:
        labels = _counted(table, reading, console)
        if labels is None or labels.task != REGRESS:
            console.note(f"{found}: it is read in blocks")
            return _in_blocks(table, kinds, reading, labels)
        reading = replace(reading, task=REGRESS)  # and need not be decided again
    if found:
        console.warn(f"{found}, but this model needs all rows; fit it to a part of them")
    return _in_memory(table, kinds, reading, console)


def _in_memory(
    table: Table, kinds: list[ColumnKind], reading: Reading, console: Console
) -> Training:
    """Read all rows."""
    columns = _read_columns(table, kinds, reading.marks, console)
    features = {k.name: k.kind for k in kinds if k.kind in ("real", "categorical")}
    frame = as_frame(
        {name: columns[name] for name in features},
        list(features.values()),
        as_array=False,
    )
    weights = _weights(columns, reading.weight)
    if reading.keys.sequence:
        frame, weights = _sequences(table, reading, columns, frame, weights)
    target = None
    if reading.target is not None:
        target = _target(columns[reading.target], reading, table, console)
        kinds = [_with_reason(kind, target.reason) for kind in kinds]
        if target.task != REGRESS and not reading.keys.sequence:
            warn_of_groups(_names(kinds, columns, reading), target, console)
    return Training(kinds, frame, target, weights)


def _names(
    kinds: list[ColumnKind], columns: dict[str, Any], reading: Reading
) -> dict[str, list[Any]]:
    """Return the cells of columns that may name something: text, and numbers like ids."""
    named = {
        kind.name: columns[kind.name]
        for kind in kinds
        if kind.kind == "categorical" or kind.reason.endswith(MAYBE_NAMES)
        if kind.name not in reading.categorical
    }
    return {
        name: cells if isinstance(cells, list) else cells.tolist()
        for name, cells in named.items()
    }


def _check_target(kinds: list[ColumnKind], reading: Reading) -> None:
    """Refuse a target of numbers with other text among them, which would be classes."""
    if reading.task is not None or reading.unlabelled is not None:
        return
    for kind in kinds:
        if kind.kind == "target" and kind.advice:
            raise InputError(
                f"--target {kind.name}: {kind.advice}; for classes, --task classify."
            )


def _in_blocks(
    table: Table, kinds: list[ColumnKind], reading: Reading, labels: Labels | None
) -> Training:
    """Return rows that are read in blocks, whenever they are needed."""
    frame = LargeTable(table, kinds, reading.marks, labels, reading.memory)
    if labels is None:
        return Training(kinds, frame, None, reading.weight)
    target = CountedTarget.of(labels)
    kinds = [_with_reason(kind, target.reason) for kind in kinds]
    return Training(kinds, frame, target, reading.weight)


def _counted(table: Table, reading: Reading, console: Console) -> Labels | None:
    """Count the labels of a large table; None if there is no target."""
    if reading.target is None:
        return None
    name, unlabelled = reading.target, reading.unlabelled
    counts = count_labels(table, name, unlabelled, reading.marks, console)
    task, whole = decided_task(counts, name, reading.task, table, console, "rows")
    return Labels(name, unlabelled, task, whole, counts)


def _target(cells: Texts, reading: Reading, table: Table, console: Console) -> Target:
    """Return what is to be predicted, of rows or of sequences."""
    name, is_sequential = str(reading.target), bool(reading.keys.sequence)
    units = "sequences" if is_sequential else "rows"
    target = training_target(
        cells, name, reading.unlabelled, reading.task, table, console, units
    )
    if is_sequential and target.task == REGRESS:
        raise InputError(
            f"--target {name}: numbers are not predicted from sequences. Group them into "
            "classes, or add --task classify."
        )
    return target


def _sequences(
    table: Table,
    reading: Reading,
    columns: dict[str, Any],
    frame: Any,
    weights: FloatArray | None,
) -> tuple[Sequences, FloatArray | None]:
    """Make sequences of rows; the target, within `columns`, becomes one of sequences."""
    arrangement = reading.keys.arrange(columns, table)
    frames = take_rows(frame, arrangement.order)
    if reading.target is not None:
        labels = without_mark(columns[reading.target], reading.unlabelled)
        columns[reading.target] = one_label_each(labels, reading.target, arrangement)
    if weights is not None:
        weights = one_weight_each(weights, str(reading.weight), arrangement)
    return Sequences(frames, arrangement.lengths, arrangement.ids), weights


def _with_reason(kind: ColumnKind, reason: str) -> ColumnKind:
    """Return the kind of a column; that of the target says what it holds."""
    return replace(kind, reason=reason) if kind.kind == "target" else kind


def _weights(columns: dict[str, Any], name: str | None) -> FloatArray | None:
    if name is None:
        return None
    weights: FloatArray = columns[name]
    if np.isnan(weights).any():
        row = int(np.isnan(weights).argmax()) + 1
        raise InputError(f"--weight {name}: row {row} has no weight.")
    return weights


def _roles(table: Table, reading: Reading) -> dict[str, str]:
    """Return the columns that are not features."""
    reading.keys.check(table)
    roles = dict(reading.keys.roles)
    for name, role in ((reading.target, "target"), (reading.weight, "weight")):
        if name is not None:
            if role == "target":
                _check_single(table, name)
            table.check_column(name, f"--{role}")
            if name in roles:
                raise InputError(
                    f"The column {name!r} cannot be {roles[name]} and {role} at once."
                )
            roles[name] = role
    return roles


def _check_single(table: Table, name: str) -> None:
    """Refuse several targets."""
    names = split([name])
    if name not in table.names and len(names) > 1 and set(names) <= set(table.names):
        raise InputError(
            f"--target {name}: fit takes one target. In Python, MixtureRegressor takes "
            "several: y is a table of them."
        )


def _read_columns(
    table: Table, kinds: list[ColumnKind], marks: Marks, console: Console
) -> dict[str, Any]:
    """Return numbers and lists of text, of all columns that are not dropped."""
    parts: dict[str, list[Any]] = {
        kind.name: [] for kind in kinds if kind.kind != "dropped"
    }
    is_real = {kind.name: kind.kind in ("real", "weight") for kind in kinds}
    for chunk in console.track(table.chunks(CHUNK_ROWS), "reading"):
        for name, part in parts.items():
            if is_real[name]:
                part.append(numbers_of(table, chunk, name, marks))
            else:
                part.extend(chunk.columns[name].texts(marks))
    return {
        name: np.concatenate(part) if is_real[name] else part
        for name, part in parts.items()
    }


def fit(estimator: Any, training: Training, console: Console) -> Any:
    """Fit an estimator to a table; return it, or the best that it found."""
    with console.progress():
        estimator.fit(training.frame, training.y, sample_weight=training.weights)
    if not hasattr(estimator, "best_estimator_"):
        return estimator
    console.note(_choice(estimator))
    return estimator.best_estimator_


def _choice(search: Any) -> str:
    """Say what a search has chosen, of what it could choose from."""
    settings = search.cv_results_["params"]
    chosen = [
        f"{name} {value}"
        for name, value in search.best_params_.items()
        if len({repr(setting[name]) for setting in settings}) > 1
    ]
    return (
        f"The best of {len(settings)} settings in {search.n_splits_} folds: "
        f"{', '.join(chosen) or 'the only one'}; accuracy {search.best_score_:.3f}"
    )


def fit_to_itself(
    table: Table, reading: Reading, estimator: Any, console: Console
) -> Model:
    """Fit an estimator without labels to the table that it will be applied to."""
    training = read_training(table, reading, console)
    warn_of_spoilt(training.kinds, console)
    warn_of_stand_ins(training.kinds, console)
    warn_of_dropped(training.kinds, reading, console)
    fitted = fit(estimator, training, console)
    # The result of half a fit would look like any other.
    stop_if_interrupted()
    return training.model(fitted, reading)


def warn_of_renamed(table: Table, console: Console) -> None:
    """Say which columns have got another name, as theirs occurs more than once."""
    if table.renamed:
        console.warn(
            f"{table.path} has columns of the same name; the later ones are called "
            f"{listed(table.renamed)}"
        )


def warn_of_spoilt(kinds: list[ColumnKind], console: Console) -> None:
    """Say which options make numbers of columns that are nearly so."""
    spoilt = [kind for kind in kinds if kind.advice and kind.kind == "dropped"]
    for kind in spoilt[:_NAMED]:
        console.warn(f"{kind.advice} (it is left out)")


def warn_of_dropped(kinds: list[ColumnKind], reading: Reading, console: Console) -> None:
    """Name the columns that are left out although no option says so."""
    dropped = [k for k in kinds if k.kind == "dropped" and k.name not in reading.drop]
    for kind in dropped[:_NAMED]:
        if not kind.advice:
            console.warn(f"column {kind.name!r} is left out: {kind.reason}")
    if len(dropped) > _NAMED:
        console.warn(f"{len(dropped) - _NAMED} more columns are left out")
