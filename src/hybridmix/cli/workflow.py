"""Steps that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hybridmix.cli.choices import Options
from hybridmix.cli.console import Console
from hybridmix.cli.fitting import Reading, fit_to_itself
from hybridmix.cli.models import Matching, Model, listed, match
from hybridmix.cli.sequences import NO_KEYS, Keys
from hybridmix.cli.tables import InputError, open_table
from hybridmix.cli.values import split
from hybridmix.cli.writing import STDOUT


def load_matching(
    model: Path,
    table: Path,
    console: Console,
    na: Sequence[str] | None = None,
    allow_missing: bool = False,
    target: str | None = None,
    keys: Keys = NO_KEYS,
) -> Matching:
    """Load a model, and find its columns in a table."""
    loaded = Model.load(model, split(na)).with_keys(keys)
    matching = match(loaded, open_table(table), allow_missing, target)
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

    def fit(self, table: Path, console: Console) -> Matching:
        """Fit it, and find its columns in the table."""
        source = open_table(table)
        estimator = self.options.density(self.kind)
        model = fit_to_itself(source, self.reading, estimator, console)
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
                    f"{option} is for fitting a model; leave out either it or --model."
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
            raise InputError(f"--{role} needs a model of sequences: add --model MODEL.")
        return own.fit(table, console)
    own.check_unused()
    na = own.reading.na
    return load_matching(model, table, console, na, allow_missing, keys=keys)


def tell_written(console: Console, output: Path, what: str = "") -> None:
    """Say where the result is."""
    if output != STDOUT:
        console.note(f"{what}written to {output}")
    elif what:
        console.note(what.rstrip(", "))
