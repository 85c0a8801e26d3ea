"""Fitting estimators to the table of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import hybridmix
from hybridmix._typing import FloatArray
from hybridmix.cli.cells import MISSING, Marks, is_number
from hybridmix.cli.columns import ColumnKind, inferred_kinds
from hybridmix.cli.console import Console
from hybridmix.cli.interrupts import stop_if_interrupted
from hybridmix.cli.labels import REGRESS, Target, training_target
from hybridmix.cli.models import Model, as_frame, numbers_of
from hybridmix.cli.tables import CHUNK_ROWS, InputError, Table
from hybridmix.data.cells import number_of
from hybridmix.training.budget import check_effort

# What is fitted if there is a target.
MIXTURE, NETWORK = METHODS = ("mixture", "network")
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

    @property
    def marks(self) -> Marks:
        """Cells that count as missing."""
        return MISSING.union(self.na)


@dataclass(frozen=True)
class Training:
    """The table of a fit."""

    kinds: list[ColumnKind]
    frame: Any
    target: Target | None
    weights: FloatArray | None

    @property
    def task(self) -> str:
        """What the target asks for."""
        assert self.target is not None
        return self.target.task

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
        )


def read_training(table: Table, reading: Reading, console: Console) -> Training:
    """Read a whole table, with the kinds that its columns seem to have."""
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
    features = {k.name: k.kind for k in kinds if k.kind in ("real", "categorical")}
    if not features:
        raise InputError(f"{table.path} has no column to learn from.")
    columns = _read_columns(table, kinds, reading.marks, console)
    frame = as_frame(
        {name: columns[name] for name in features},
        list(features.values()),
        as_array=False,
    )
    target = None
    if reading.target is not None:
        target = training_target(
            columns[reading.target],
            reading.target,
            reading.unlabelled,
            reading.task,
            table,
            console,
        )
        kinds = [_with_reason(kind, target.reason) for kind in kinds]
    return Training(kinds, frame, target, _weights(columns, reading.weight))


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
    roles = {}
    for name, role in ((reading.target, "target"), (reading.weight, "weight")):
        if name is not None:
            table.check_column(name, f"--{role}")
            roles[name] = role
    return roles


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


@dataclass(frozen=True)
class Options:
    """Options of estimators that were given; None for those that were not."""

    components: tuple[int, ...] | None = None
    covariance: str | None = None
    objective: str | None = None
    tradeoff: float | None = None
    calibrate: bool = False
    tune: bool = False
    seed: int = 0
    jobs: int | None = None
    effort: str | float | None = None
    method: str = MIXTURE

    def for_target(self, task: str) -> Any:
        """Return an estimator that predicts classes or numbers."""
        return self.regressor() if task == REGRESS else self.classifier()

    def regressor(self) -> Any:
        """Return a regressor."""
        _refuse(
            {"--objective": self.objective, "--tune": self.tune},
            "is for classifiers, and the target is predicted as a number: leave it out, "
            "or add --task classify.",
        )
        if self.method == NETWORK:
            _refuse(
                {"--tradeoff": self.tradeoff, "--calibrate": self.calibrate},
                "is not an option of a network that predicts a number: leave it out, or "
                "leave out --method network.",
            )
            return hybridmix.MixtureNetworkRegressor(
                random_state=self.seed, **self._structure()
            )
        return hybridmix.MixtureRegressor(
            random_state=self.seed, **self._structure(), **self._training()
        )

    def classifier(self) -> Any:
        """Return a classifier, or a search for one."""
        if self.tune and self.effort is not None:
            raise InputError("--tune has no --effort; leave out either of them.")
        if self.tune and self.method == NETWORK:
            raise InputError(
                "--tune searches among mixtures; leave out either it or --method network."
            )
        kinds = {
            MIXTURE: hybridmix.HybridMixtureClassifier,
            NETWORK: hybridmix.MixtureNetworkClassifier,
        }
        given = {"objective": self.objective, **self._structure(), **self._training()}
        if self.tune:
            given["n_jobs"] = None
        estimator = kinds[self.method](
            unlabelled=None, random_state=self.seed, **_without_none(given)
        )
        return self._search(estimator) if self.tune else estimator

    def _structure(self) -> dict[str, Any]:
        """Return the options that all estimators have, as far as they are given."""
        return _without_none(
            {
                "n_components": _number_or_range(self.components),
                "covariance_type": self.covariance,
                "effort": self.effort,
                "n_jobs": self.jobs,
            }
        )

    def _training(self) -> dict[str, Any]:
        """Return the options of discriminative training, as far as they are given."""
        return _without_none(
            {"tradeoff": self.tradeoff, "calibrate": self.calibrate or None}
        )

    def _search(self, estimator: Any) -> Any:
        if self.objective is not None:
            raise InputError(
                "--tune searches along hybrid objectives; leave out --objective."
            )
        given = {
            "n_components": self.components,
            "covariance_type": self.covariance and [self.covariance],
            "tradeoff": None if self.tradeoff is None else [self.tradeoff],
            "n_jobs": self.jobs,
        }
        return hybridmix.HybridMixtureClassifierCV(
            estimator, random_state=self.seed, **_without_none(given)
        )

    def density(self, kind: type) -> Any:
        """Return an estimator of a class that needs no labels."""
        _refuse(
            {
                "--objective": self.objective,
                "--tradeoff": self.tradeoff,
                "--calibrate": self.calibrate,
                "--tune": self.tune,
                f"--method {self.method}": self.method != MIXTURE,
            },
            "needs a target: add --target NAME.",
        )
        return kind(random_state=self.seed, **self._structure())


def _refuse(given: dict[str, Any], reason: str) -> None:
    """Refuse options that have a value; flags that are False have none."""
    for option, value in given.items():
        if value is not None and value is not False:
            raise InputError(f"{option} {reason}")


def fit(estimator: Any, training: Training, console: Console) -> Any:
    """Fit an estimator to a table; return it, or the best that it found."""
    with console.progress():
        y = None if training.target is None else training.target.values
        estimator.fit(training.frame, y, sample_weight=training.weights)
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
    warn_of_dropped(training.kinds, reading, console)
    fitted = fit(estimator, training, console)
    # The result of half a fit would look like any other.
    stop_if_interrupted()
    return training.model(fitted, reading)


def warn_of_dropped(kinds: list[ColumnKind], reading: Reading, console: Console) -> None:
    """Name the columns that are left out although no option says so."""
    dropped = [k for k in kinds if k.kind == "dropped" and k.name not in reading.drop]
    for kind in dropped[:_NAMED]:
        console.warn(f"column {kind.name!r} is left out: {kind.reason}")
    if len(dropped) > _NAMED:
        console.warn(f"{len(dropped) - _NAMED} more columns are left out")


def parse_components(text: str | None) -> tuple[int, ...] | None:
    """Read ``3`` or ``1,2,4``."""
    if text is None:
        return None
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise InputError(
            f"--components {text}: give a number, or several to choose from (1,2,4)."
        )
    return numbers


def parse_effort(text: str | None) -> str | float | None:
    """Return an effort: a word or a number of seconds."""
    if text is None:
        return None
    value = number_of(text)
    effort = text if value is None else value
    try:
        check_effort("--effort", effort)
    except ValueError as error:
        raise InputError(str(error)) from None
    return effort


def _number_or_range(components: tuple[int, ...] | None) -> Any:
    is_single = components is not None and len(components) == 1
    return components[0] if components and is_single else components


def _without_none(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
