"""Files of the repository as pages, and links to them.

Pages are read on GitHub as well, where links go to files such as ``../CONTRIBUTING.md``.
Some of these files are pages of the site, too: a page of one line stands for each, and is
given the text of the file here.
"""

import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

ROOT = Path(__file__).resolve().parents[2]
MIRRORED = {
    "contributing": "CONTRIBUTING.md",
    "changes": "CHANGELOG.md",
    "benchmark_scripts": "benchmarks/README.md",
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def mirror(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the file in the place of the page that stands for it; lead links to pages."""
    page = f"docs/{docname}"
    file = MIRRORED.get(docname)
    if file:
        app.env.note_dependency(ROOT / file)
        source[0] = (ROOT / file).read_text(encoding="utf-8")
    source[0] = LINK.sub(lambda m: relinked(m[1], file or page, page), source[0])


def relinked(target: str, origin: str, page: str) -> str:
    """Return a link of a file as the page has it."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
    for docname, file in MIRRORED.items():
        if path == file:
            path = f"docs/{docname}.md"
    return posixpath.relpath(path, posixpath.dirname(page))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Read pages through `mirror`."""
    app.connect("source-read", mirror)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
