"""Write docs/tutorial.ipynb from docs/tutorial.md, so that there is one source.

Python blocks become cells with the output that the page shows (which the tests compare
with what is printed), commands become cells that begin with an exclamation mark, and the
rest becomes text. Links within the documentation lead nowhere from a notebook that was
downloaded, so that only their words are kept.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"
BLOCK = re.compile(r"^```(python|sh|text output)\n(.*?)^```\n", re.M | re.S)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:)[^)]+\)")

Cell = dict[str, Any]


def cells_of(page: str) -> list[Cell]:
    """Return the cells of a page."""
    first, *pieces = BLOCK.split(page)
    cells = [text_cell(first)]
    for kind, body, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        if kind == "python":
            cells.append(code_cell(body))
        elif kind == "sh":
            cells.append(code_cell(re.sub("^(?=.)", "!", body, flags=re.M)))
        else:  # what the cell before has printed
            cells[-1]["outputs"] = [
                {"name": "stdout", "output_type": "stream", "text": lines_of(body)}
            ]
        if text.strip():
            cells.append(text_cell(text))
    return cells


def text_cell(text: str) -> Cell:
    """Return a cell of text, without links within the documentation."""
    source = lines_of(LINK.sub(r"\1", text).strip())
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def code_cell(source: str) -> Cell:
    """Return a cell of code that has printed nothing."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": lines_of(source.strip()),
    }


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends, as notebooks keep them."""
    return text.splitlines(keepends=True)


def notebook_of(page: str) -> str:
    """Return a notebook, as JSON, of a page."""
    cells = [{**cell, "id": f"cell-{n}"} for n, cell in enumerate(cells_of(page))]
    for number, cell in enumerate(c for c in cells if "outputs" in c):
        cell["execution_count"] = number + 1
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the notebook."""
    NOTEBOOK.write_text(notebook_of(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
