"""What the columns of a file are: real, categorical, or not useful."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote

from hybridmix.cli.cells import Marks, grouping_of
from hybridmix.cli.column_findings import FEW, TOO_MANY, Findings
from hybridmix.cli.tables import Chunk, InputError, Table, as_option, not_a_number
from hybridmix.cli.values import in_few_digits
from hybridmix.data.suspects import MANY_VALUES, NAME_OF_IDENTIFIER

# What `--categorical` calls all columns that may be codes.
CODES = "codes"
# How the reasons end for such columns, and for repeated numbers called id and the like.
MAYBE_CODES, MAYBE_NAMES = "(codes?)", "(an identifier?)"

_NAME_OF_NAMES = re.compile(
    r"(?i:(^|.*[^a-z])(id|no|nr|code|zip)|(post|zip).?code)|.*[a-z](ID|Id|No|Nr|Code)"
)


@dataclass(frozen=True)
class ColumnKind:
    """What a column is treated as.

    Attributes
    ----------
    name : str
        The column.
    kind : {"real", "categorical", "dropped", "target", "weight"}
        How it is used.
    reason : str
        Why.
    examples : tuple of str
        Some of its values.
    missing : float
        Share of the rows that do not have it.
    advice : str
        What to do if cells spoil the column; empty if none do.
    stand_ins : mapping of int to int
        In how many rows numbers are that probably stand for missing values.
    """

    name: str
    kind: str
    reason: str
    examples: tuple[str, ...]
    missing: float
    advice: str = ""
    stand_ins: Mapping[int, int] = field(default_factory=dict)


def inferred_kinds(
    table: Table,
    chunks: Iterable[Chunk],
    marks: Marks,
    *,
    real: Collection[str] = (),
    categorical: Collection[str] = (),
    dropped: Collection[str] = (),
    roles: dict[str, str] | None = None,
) -> list[ColumnKind]:
    """Find the kinds of all columns from one pass through the rows.

    Parameters
    ----------
    table : Table
        The file.
    chunks : iterable of Chunk
        Its rows. Memory does not depend on how many there are.
    marks : frozenset of str
        Cells that count as missing.
    real, categorical, dropped : collection of str
        Columns whose kind is given.
    roles : dict of str to str or None
        Columns that are not features: the target and the weight.

    Returns
    -------
    kinds : list of ColumnKind
        In the order of the file.
    """
    # A column of that name is meant rather than all that may be codes.
    are_codes = CODES in categorical and CODES not in table.names
    categories = set(categorical) - {CODES} if are_codes else categorical
    named = {"real": real, "categorical": categories, "dropped": dropped}
    given = _given_kinds(table, named, dict(roles or {}))
    findings = {name: Findings(table.decimal) for name in table.names}
    for chunk in chunks:
        for name, column in chunk.columns.items():
            findings[name].add(column, marks)
    kinds = [
        _decided(name, findings[name], table.given_kind(name), given.get(name))
        for name in table.names
    ]
    _check_finite(table, kinds, findings)
    return [_as_code(kind) for kind in kinds] if are_codes else kinds


def _check_finite(
    table: Table, kinds: list[ColumnKind], findings: dict[str, Findings]
) -> None:
    """Refuse real columns that hold an infinite number."""
    for kind in kinds:
        infinite = findings[kind.name].infinite
        if kind.kind == "real" and infinite is not None:
            raise InputError(not_a_number(table, kind.name, *infinite))


def _as_code(kind: ColumnKind) -> ColumnKind:
    """Return the kind of a column; categorical if it may be codes."""
    if not kind.reason.endswith(MAYBE_CODES):
        return kind
    reason = kind.reason.removesuffix(MAYBE_CODES) + "as codes"
    return replace(kind, kind="categorical", reason=reason)


def _given_kinds(
    table: Table, named: dict[str, Collection[str]], given: dict[str, str]
) -> dict[str, str]:
    """Return the kinds that options name, by column."""
    for kind, names in named.items():
        for name in names:
            table.check_column(name, f"--{'drop' if kind == 'dropped' else kind}")
            if name in given:
                raise InputError(
                    f"The column {name!r} cannot be {given[name]} and {kind} at once."
                )
            given[name] = kind
    return given


def _decided(
    name: str, found: Findings, typed: str | None, given: str | None
) -> ColumnKind:
    """Decide what a column is: by options first, then by its type and its cells."""
    if given == "target":
        kind, reason = given, _label_reason(found)
    elif given is not None:
        kind, reason = given, "as given"
    else:
        kind, reason = _seen_kind(name, found, typed)
    missing = found.n_missing / max(found.n_rows, 1)
    is_text = typed is None and not found.is_number
    advice = _advice(name, found) if is_text and given in (None, "target") else ""
    if given is None and advice:
        kind, reason = "dropped", advice.replace(f" of {name!r}", "")
    marks = found.stand_ins.found if given is None and kind == "real" else {}
    return ColumnKind(name, kind, reason, _examples(kind, found), missing, advice, marks)


def _examples(kind: str, found: Findings) -> tuple[str, ...]:
    """Return some values in the form for the screen."""
    if kind in ("real", "target") and found.is_number:
        return tuple(map(in_few_digits, found.examples))
    return found.examples


def _advice(name: str, found: Findings) -> str:
    """Say which option makes numbers of a column; nothing if there is none."""
    if found.grouped is not None and found.is_numeric:
        mark = grouping_of(found.grouped, found.decimal)
        marks = f" --na {as_option(*sorted(found.others))}" if found.others else ""
        return (
            f"{found.grouped} of {name!r} looks like a number: use --thousands "
            f"{quote(str(mark))}{marks}"
        )
    if found.signed is not None and found.is_numeric and found.is_varied:
        if found.signed[-1].isdigit() and found.signed.lstrip("+-")[0].isdigit():
            return (
                f"{found.signed} of {name!r} has a comma, but other numbers of the file "
                "have points: use the same mark in all"
            )
        return f"{found.signed} of {name!r} would be a number without its sign: remove it"
    if not found.is_spoilt:
        return ""
    n_numbers = found.n_observed - found.n_strays
    return (
        f"{n_numbers:,} of {found.n_observed:,} values of {name!r} are numbers; if the "
        f"others are missing, use --na {as_option(*sorted(found.strays))}"
    )


def _seen_kind(name: str, found: Findings, typed: str | None) -> tuple[str, str]:
    """Return the kind of a column that no option names, and why."""
    if found.n_observed == 0:
        return "dropped", "no values"
    if typed == "other":
        return "dropped", "neither numbers nor text"
    if typed == "date" or (found.is_date and typed != "real"):
        return "dropped", "dates; turn them into numbers, such as days or months"
    if typed == "real" or (typed is None and _is_quantity(found)):
        return _decided_number(name, found)
    return _decided_category(name, found)


def _is_quantity(found: Findings) -> bool:
    return found.is_number and not found.has_leading_zero


def _is_identifier(name: str, found: Findings) -> bool:
    """Return whether numbers count or name the rows; infinity does neither."""
    if found.infinite is not None:
        return False
    is_counter = found.is_counter and found.n_observed > MANY_VALUES
    is_named_so = bool(NAME_OF_IDENTIFIER.fullmatch(name))
    return found.is_whole and (is_counter or (is_named_so and found.is_unique))


def _decided_number(name: str, found: Findings) -> tuple[str, str]:
    if _is_identifier(name, found):
        return (
            "dropped",
            f"looks like an identifier; keep it with --real {as_option(name)}",
        )
    n_values = TOO_MANY if found.values is None else len(found.values)
    if n_values == 1:
        return "real", "a single value"
    # Codes repeat; in a short table, measurements may have as few values.
    if found.is_whole and n_values <= min(FEW, found.n_observed / 2):
        return "real", f"{n_values} whole numbers {MAYBE_CODES}"
    if found.is_whole and n_values > MANY_VALUES and _NAME_OF_NAMES.fullmatch(name):
        return "real", f"whole numbers {MAYBE_NAMES}"
    return "real", "whole numbers" if found.is_whole else "numbers"


def _decided_category(name: str, found: Findings) -> tuple[str, str]:
    if found.names_rows:
        return "dropped", (
            f"looks like an identifier; keep it with --categorical {as_option(name)}"
        )
    assert found.values is not None
    n_values = len(found.values)
    if found.is_number and found.has_leading_zero:
        return "categorical", f"{n_values} codes with leading zeros"
    return "categorical", f"{n_values} value{'s' if n_values > 1 else ''}"


def _label_reason(found: Findings) -> str:
    return "many labels" if found.values is None else f"{len(found.values)} labels"
