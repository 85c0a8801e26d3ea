"""Tables of results, read from the files that the benchmarks write.

    ```{benchmark} imputation
    :rows: table
    :columns: method
    :value: rmse
    :best: lowest

    ours = hybridmix
    KNN
    ```

Lines of the body are the columns of the table, in their order, with their titles: values
of the column that ``columns`` names, or, without it, columns of the file. ``rows`` are
the columns that name a row, separated by semicolons. ``where`` keeps some lines,
``labels`` renames cells, ``best`` sets the lowest or highest number of a row in bold.
"""

import csv
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
Line = dict[str, str]


def pairs(text: str, separator: str = ";") -> dict[str, str]:
    """Read ``name = title`` pairs; a name alone is its own title."""
    items = (item.partition(" = ") for item in text.split(separator) if item.strip())
    return {name.strip(): (title or name).strip() for name, _, title in items}


def read(path: Path) -> tuple[dict[str, str], list[Line]]:
    """Return the comments above a file of results, and its lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    notes = dict(comment.split(": ", 1) for comment in comments)
    return notes, list(csv.DictReader(x for x in lines if not x.startswith("#")))


def keep(lines: list[Line], conditions: dict[str, str]) -> list[Line]:
    """Keep lines whose cells are one of the given values, separated by bars."""
    for column, values in conditions.items():
        allowed = {value.strip() for value in values.split("|")}
        lines = [line for line in lines if line[column] in allowed]
    return lines


def spread(lines: list[Line], rows: list[str], columns: str, value: str) -> list[Line]:
    """Make one line of all lines that agree in the columns that name a row."""
    wide: dict[tuple[str, ...], Line] = {}
    for line in lines:
        names = {row: line[row] for row in rows}
        wide.setdefault(tuple(names.values()), names)[line[columns]] = line[value]
    return list(wide.values())


def show(cells: list[str], digits: int, scale: Decimal) -> list[str]:
    """Round the numbers of a column; leave words, and columns of whole numbers."""
    if scale == 1 and all(cell.isdecimal() for cell in cells if cell):
        return [count(cell) for cell in cells]
    return [rounded(cell, digits, scale) for cell in cells]


def rounded(cell: str, digits: int, scale: Decimal) -> str:
    """Round a number as one does by hand; one that would vanish stays as it is."""
    try:
        number = Decimal(cell) * scale
    except InvalidOperation:
        return cell
    result = number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return cell if number and not result else f"{result:,}"


def count(cell: str) -> str:
    """Show whole numbers, such as sizes of a problem, with thousands apart."""
    numbers = cell.split(",")
    if not all(number.isdecimal() for number in numbers):
        return cell
    return " / ".join(f"{int(number):,}" for number in numbers)


def embolden(cells: Sequence[str], best: str) -> list[str]:
    """Set the best of the shown numbers in bold."""
    numbers = [float(cell.replace(",", "")) for cell in cells if cell]
    choice = {"lowest": min, "highest": max}[best](numbers)
    return [
        f"**{cell}**" if cell and float(cell.replace(",", "")) == choice else cell
        for cell in cells
    ]


class BenchmarkTable(SphinxDirective):
    """A table from a file of results."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {
        "rows": directives.unchanged_required,
        "columns": directives.unchanged,
        "value": directives.unchanged,
        "where": directives.unchanged,
        "labels": directives.unchanged,
        "best": lambda x: directives.choice(x, ("lowest", "highest")),
        "digits": directives.nonnegative_int,
        "scale": Decimal,
    }

    def run(self) -> list[nodes.Node]:
        """Return the table, and where it comes from."""
        path = RESULTS / f"{self.arguments[0]}.csv"
        self.env.note_dependency(path)
        notes, lines = read(path)
        text = f"{self.table(lines)}\n\n{source(path, notes)}"
        result = self.parse_text_to_nodes(text)
        result[-1]["classes"].append("source")
        return result

    def table(self, lines: list[Line]) -> str:
        """Return the table in Markdown."""
        options = self.options
        rows = pairs(options["rows"])
        shown = pairs("\n".join(self.content), "\n")
        labels = pairs(options.get("labels", ""))
        lines = keep(lines, pairs(options.get("where", "")))
        if "columns" in options:
            lines = spread(lines, list(rows), options["columns"], options["value"])
        digits, scale = options.get("digits", 2), options.get("scale", Decimal(1))
        columns = [show([x.get(c) or "" for x in lines], digits, scale) for c in shown]
        table = [[*rows.values(), *shown.values()]]
        table += [["---"] * len(rows) + ["---:"] * len(shown)]
        for line, cells in zip(lines, zip(*columns, strict=True), strict=True):
            names = [labels.get(line[row], count(line[row])) for row in rows]
            best = options.get("best")
            table.append([*names, *(embolden(cells, best) if best else cells)])
        return "\n".join(f"| {' | '.join(cells)} |" for cells in table)


def source(path: Path, notes: dict[str, str]) -> str:
    """Say which file a table is from, and when and by what it was made."""
    link = f"[{path.name}](/../benchmarks/results/{path.name})"
    return f"{link}, {notes['date']}: {notes['versions']}."


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directive."""
    app.add_directive("benchmark", BenchmarkTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
