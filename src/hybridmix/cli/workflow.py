"""Steps that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hybridmix.cli.choices import Options
from hybridmix.cli.console import Console
from hybridmix.cli.fitting import Reading, fit_to_itself, warn_of_renamed
from hybridmix.cli.models import Matching, Model, listed, match
from hybridmix.cli.sequences import NO_KEYS, Keys
from hybridmix.cli.tables import InputError, has_table_suffix, open_table
from hybridmix.cli.text_format import USUAL, TextFormat
from hybridmix.cli.values import split
from hybridmix.cli.writing import STDOUT


def check_order(command: str, model: Path, table: Path) -> None:
    """Refuse a table in the place of the model, and say how the command goes."""
    if has_table_suffix(model) and not has_table_suffix(table):
        raise InputError(
            f"The model comes before the table: hybridmix {command} {table} {model}"
        )


def model_and_table(
    command: str, files: Sequence[Path], model: Path | None
) -> tuple[Path | None, Path]:
    """Return the model, if one is given, and the table.

    Parameters
    ----------
    command : str
        Name of the command, for messages.
    files : sequence of Path
        The table, or a model and the table.
    model : Path or None
        What ``--model`` gives.
    """
    if len(files) > 2 or (len(files) == 2 and model is not None):
        raise InputError(
            f"{command} takes one model and one table: hybridmix {command} MODEL TABLE"
        )
    *first, table = files
    model = first[0] if first else model
    if model is None and table.suffix == ".hmx":
        raise InputError(
            f"{table} is a model, and the table is missing: hybridmix {command} {table} "
            "TABLE"
        )
    if model is not None:
        check_order(command, model, table)
    return model, table


def load_matching(
    model: Path,
    table: Path,
    console: Console,
    na: Sequence[str] | None = None,
    allow_missing: bool = False,
    target: str | None = None,
    keys: Keys = NO_KEYS,
    text: TextFormat = USUAL,
) -> Matching:
    """Load a model, and find its columns in a table."""
    loaded = Model.load(model, split(na)).with_keys(keys)
    text = replace(text, thousands=text.thousands or loaded.thousands)
    source = open_table(table, text)
    warn_of_renamed(source, console)
    matching = match(loaded, source, allow_missing, target)
    lost = matching.sources.count(None)
    if lost:
        console.note(f"columns that are missing in all rows: {lost}")
    if matching.extra:
        console.note(f"columns that the model does not know: {listed(matching.extra)}")
    return matching


@dataclass(frozen=True)
class OwnFit:
    """How to fit an estimator to the table that it is applied to."""

    kind: type
    reading: Reading
    options: Options
    target: str | None = None

    def fit(self, table: Path, console: Console) -> Matching:
        """Fit it to all columns but the target, and find these in the table."""
        source = open_table(table, self.reading.text)
        reading = self.reading
        if self.target is not None:
            source.check_column(self.target, "--target")
            reading = replace(reading, drop=(*reading.drop, self.target))
        estimator = self.options.density(self.kind)
        model = fit_to_itself(source, reading, estimator, console)
        return match(model, source)

    def check_unused(self) -> None:
        """Refuse options of a fit if a model is given."""
        given = {
            "--real": self.reading.real,
            "--categorical": self.reading.categorical,
            "--drop": self.reading.drop,
            "--components": self.options.components,
            "--covariance": self.options.covariance,
            "--effort": self.options.effort,
            "--memory": self.reading.memory.given,
        }
        for option, value in given.items():
            if value:
                raise InputError(
                    f"{option} is for fitting a model; leave out either it or the model."
                )

    def check_target(self, matching: Matching) -> None:
        """Refuse a target that a model uses like any other column."""
        if self.target in matching.sources:
            raise InputError(
                f"--target {self.target}: the model learned from this column, so it "
                "cannot be kept out. Fit the model without it, or leave out the model."
            )


def given_or_fitted(
    model: Path | None,
    table: Path,
    own: OwnFit,
    allow_missing: bool,
    console: Console,
    keys: Keys,
) -> Matching:
    """Load the model that is given, or fit one to the table itself."""
    if model is None:
        for role in keys.roles.values():
            raise InputError(f"--{role} needs a model of sequences: MODEL TABLE.")
        return own.fit(table, console)
    own.check_unused()
    na = own.reading.na
    text = own.reading.text
    matching = load_matching(
        model, table, console, na, allow_missing, keys=keys, text=text
    )
    matching.model.check_density()
    if own.target is not None:
        own.check_target(matching)
    return matching


def tell_written(console: Console, output: Path, what: str = "") -> None:
    """Say where the result is."""
    if output != STDOUT:
        console.note(f"{what}written to {output}")
    elif what:
        console.note(what.rstrip(", "))
