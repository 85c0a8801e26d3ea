"""Measure the source code, and fail if a limit is broken.

``python tools/measures.py`` prints one line per measure: what was found, the limit, and
where. ``make lint`` runs it. It reads the code with `ast` and needs nothing installed.

Some measures count what adding something new touches. Of all members of a kind
(say, of all covariance types) the one that the fewest files mention shows how many files
a full member needs; other mentions are uses of that member in particular.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/hybridmix")
MOST_LINES, MOST_LINES_DOCUMENTED = 400, 450
# Estimators whose parameters and attributes take a page to describe.
DOCUMENTED = ("estimators/classifier.py", "estimators/search.py")
COMPLEX, MOST_COMPLEX = 10, 8
CORE = (
    "data",
    "families",
    "models",
    "objectives",
    "solvers",
    "training",
    "problem.py",
    "evaluation.py",
    "mixture.py",
)
MOST_ANY = 40
COVARIANCE_TYPES = ("spherical", "diag", "tied", "full", "subspace")
# Lines that two places may have in common without having been copied.
COPIED_LINES = 10
# Blends are made of other objectives; no option or file names them.
NOT_COUNTED = ("Blend", "Solver")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.match_case,
    ast.Assert,
)


@dataclass(frozen=True)
class Measure:
    """One line of the table; without a limit it is for information."""

    name: str
    found: int
    limit: int | None
    where: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether the limit is kept."""
        return self.limit is None or self.found <= self.limit


@dataclass(frozen=True)
class Source:
    """A file of Python code, without its docstrings in `tree`."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def read(cls, file: Path, folder: Path) -> Source:
        """Read and parse a file."""
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        _drop_docstrings(tree)
        return cls(file.relative_to(folder).as_posix(), text, tree)

    @property
    def n_lines(self) -> int:
        """Number of lines, all kinds of them."""
        return len(self.text.splitlines())


def _drop_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
            continue
        if node.body and isinstance(node.body[0], ast.Expr):
            value = node.body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                node.body[0] = ast.Pass(lineno=node.body[0].lineno)


def read_sources(folder: Path) -> list[Source]:
    """Read all Python files under a folder."""
    return [Source.read(file, folder) for file in sorted(folder.rglob("*.py"))]


# Size and complexity --------------------------------------------------------------


def long_files(sources: Iterable[Source]) -> Measure:
    """Find files of too many lines."""
    found = []
    for source in sources:
        most = MOST_LINES_DOCUMENTED if source.path in DOCUMENTED else MOST_LINES
        if source.n_lines > most:
            found.append(f"{source.path} {source.n_lines} of {most}")
    return Measure("files that are too long", len(found), 0, tuple(found))


def complexity(function: ast.AST) -> int:
    """Return the cyclomatic complexity of a function, with what is defined in it.

    Counted are branches, loops, handlers, cases, conditional expressions, comprehensions
    with their conditions, and every ``and`` or ``or``.
    """
    total = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            total += 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
    return total


def complex_functions(sources: Iterable[Source]) -> Measure:
    """Find functions of high complexity."""
    found = [
        (complexity(node), f"{source.path}:{node.lineno} {node.name}")
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, FUNCTIONS)
    ]
    found = sorted((item for item in found if item[0] > COMPLEX), reverse=True)
    where = tuple(f"{place} {number}" for number, place in found)
    return Measure(
        f"functions of complexity above {COMPLEX}", len(found), MOST_COMPLEX, where
    )


def uses_of_any(sources: Iterable[Source]) -> Measure:
    """Count ``Any`` in the core, imports left out."""
    counts = {
        source.path: sum(
            (isinstance(node, ast.Name) and node.id == "Any")
            or (isinstance(node, ast.Attribute) and node.attr == "Any")
            for node in ast.walk(source.tree)
        )
        for source in sources
        if source.path.split("/")[0] in CORE
    }
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    where = tuple(f"{path} {count}" for path, count in ordered if count)
    return Measure("uses of Any in the core", sum(counts.values()), MOST_ANY, where)


# Copies ---------------------------------------------------------------------------


def _code_lines(source: Source) -> list[tuple[int, str]]:
    """Return the lines that do something, stripped: neither imports nor brackets."""
    busy: set[int] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.stmt) and not isinstance(
            node, (ast.Import, ast.ImportFrom, ast.Pass, ast.ClassDef, *FUNCTIONS)
        ):
            busy.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = source.text.splitlines()
    stripped = [(number, lines[number - 1].strip()) for number in sorted(busy)]
    return [(n, line) for n, line in stripped if line.strip("()[]{},") and line[0] != "#"]


def copied_runs(sources: Iterable[Source]) -> Measure:
    """Find runs of lines that stand in the code twice."""
    places: dict[tuple[str, ...], list[tuple[str, int, int]]] = defaultdict(list)
    for source in sources:
        lines = _code_lines(source)
        for index in range(len(lines) - COPIED_LINES + 1):
            run = lines[index : index + COPIED_LINES]
            key = tuple(line for _, line in run)
            places[key].append((source.path, run[0][0], index))
    found = []
    last: tuple[tuple[str, int], ...] = ()
    for hits in places.values():
        here = tuple((path, index) for path, _, index in hits)
        follows = tuple((path, index - 1) for path, index in here) == last
        last = here if len(hits) > 1 else ()
        if len(hits) > 1 and not follows:
            found.append(" = ".join(f"{path}:{line}" for path, line, _ in hits))
    return Measure(
        f"runs of {COPIED_LINES} equal lines in two places",
        len(found),
        None,
        tuple(found),
    )


# What an addition touches ---------------------------------------------------------


def strings(tree: ast.AST) -> Iterator[str]:
    """Return the strings in code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def mentions(tree: ast.AST) -> Iterator[str]:
    """Return the names that code uses or imports, and its strings."""
    yield from strings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def kinds(sources: list[Source]) -> dict[str, dict[str, str]]:
    """Return the public members of each kind, with the files that define them."""
    public = {
        folder: set(_exports(source.tree))
        for source in sources
        for folder in ("", "objectives/", "solvers/")
        if source.path == f"{folder}__init__.py"
    }

    def members(folder: str, exporter: str, method: str) -> dict[str, str]:
        return {
            node.name: source.path
            for source in sources
            if source.path.startswith(folder)
            for node in source.tree.body
            if isinstance(node, ast.ClassDef)
            and node.name in public.get(exporter, set()).difference(NOT_COUNTED)
            and (not method or method in _methods(node))
        }

    objectives = members("objectives/", "objectives/", "")
    return {
        "covariance type": dict.fromkeys(COVARIANCE_TYPES, ""),
        "objective": {k: v for k, v in objectives.items() if not v.endswith("base.py")},
        "solver": members("solvers/", "solvers/", "solve"),
        "estimator": members("estimators/", "", ""),
    }


def _exports(tree: ast.Module) -> Iterator[str]:
    """Return the names in ``__all__``, or in a table of names to look up."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield from strings(node)


def _methods(node: ast.ClassDef) -> set[str]:
    return {part.name for part in node.body if isinstance(part, FUNCTIONS)}


def touched(
    kind: str, members: dict[str, str], sources: list[Source], limit: int | None
) -> Measure:
    """Return how many other files mention the least mentioned member of a kind."""
    # Names of covariance types are words of everyday code unless they are in quotes.
    words_of = strings if kind == "covariance type" else mentions
    words = {source.path: set(words_of(source.tree)) for source in sources}
    files = {
        member: [path for path in words if member in words[path] and path != own]
        for member, own in members.items()
    }
    counts = ", ".join(f"{member} {len(paths)}" for member, paths in files.items())
    least = min(files, key=lambda member: len(files[member]), default="")
    where = (counts, *(f"{least}: {path}" for path in files.get(least, [])))
    found = len(files.get(least, []))
    return Measure(f"files that a new {kind} touches", found, limit, where)


def also_mentioned(folder: Path, kind: str, members: dict[str, str]) -> Measure:
    """Return how many files of tests or documentation mention members of a kind."""
    suffixes = {".py", ".md", ".rst"}
    texts = [
        file.read_text(encoding="utf-8")
        for file in sorted(folder.rglob("*"))
        if file.suffix in suffixes and "_build" not in file.parts
    ]
    counts = {member: sum(member in text for text in texts) for member in members}
    return Measure(
        f"files in {folder.name} that mention each {kind}",
        min(counts.values(), default=0),
        None,
        (", ".join(f"{member} {count}" for member, count in counts.items()),),
    )


# The table ------------------------------------------------------------------------


def measures(root: Path) -> list[Measure]:
    """Take all measures of a checkout."""
    sources = read_sources(root / PACKAGE)
    limits = {"covariance type": 2, "objective": 2, "estimator": 3}
    members = kinds(sources)
    return [
        long_files(sources),
        complex_functions(sources),
        uses_of_any(sources),
        copied_runs(sources),
        *(touched(kind, members[kind], sources, limits.get(kind)) for kind in members),
        *(
            also_mentioned(root / folder, kind, members[kind])
            for folder in ("tests", "docs")
            for kind in members
            # Words such as "full" are all over any text.
            if kind != "covariance type"
        ),
    ]


def main() -> int:
    """Print the measures; return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("-v", "--verbose", action="store_true", help="show all places")
    options = parser.parse_args()
    found = measures(options.root)
    width = max(len(measure.name) for measure in found)
    for measure in found:
        limit = "-" if measure.limit is None else str(measure.limit)
        state = "" if measure.is_met else "BROKEN"
        line = f"{measure.name:{width}} {measure.found:5d}  limit {limit:>3}  {state}"
        print(line.rstrip())
        if options.verbose or not measure.is_met:
            print("".join(f"    {place}\n" for place in measure.where), end="")
    return 0 if all(measure.is_met for measure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
