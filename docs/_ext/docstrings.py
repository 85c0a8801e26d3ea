"""What is shown of docstrings and how they are read."""

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

CONTINUED = re.compile(r"(?<!\\)\\\n *")
KIND = re.compile(r"(?<= : ).*$", re.M)
REFERENCE = re.compile(r":ref:`([^<`]+?)(?: <[^`]*>)?`")
PLUMBING = re.compile(r"set_\w+_request|get_metadata_routing|[gs]et_params|set_output")


def read_plainly(*event: Any) -> None:
    """Join continued lines, and make no links of what is none.

    Docstrings are raw, since they have formulas; Python joins no lines in them. A word
    that ends with an underscore, such as ``(n_components_, d)``, would be a link to
    Sphinx, and methods of scikit-learn refer to its own pages.
    """
    lines = event[-1]
    text = CONTINUED.sub("", "\n".join(lines))
    text = KIND.sub(lambda m: re.sub(r"_(?=[,)])", r"\\_", m[0]), text)
    text = REFERENCE.sub(r"\1", text)
    lines[:] = text.split("\n")


def skip_plumbing(_app: Sphinx, _what: str, name: str, *_: Any) -> bool | None:
    """Leave out what every estimator of scikit-learn has."""
    return True if PLUMBING.fullmatch(name) else None


def setup(app: Sphinx) -> ExtensionMetadata:
    """Read docstrings before numpydoc does."""
    app.connect("autodoc-process-docstring", read_plainly, priority=400)
    app.connect("autodoc-skip-member", skip_plumbing)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
