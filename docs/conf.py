"""Configuration of the documentation; `make docs` builds it, offline."""

import sys
from pathlib import Path

import hybridmix

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "hybridmix"
author = "The hybridmix developers"
copyright = author
version = release = hybridmix.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "benchmark_tables",
    "docstrings",
    "mathml",
    "repository",
    "searchable",
]
exclude_patterns = ["_ext"]
default_role = "py:obj"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Docstrings say in words what signatures say in types; arrays by their short names.
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name for name in ("BoolArray", "FloatArray", "IntArray", "Any", "Self")
}
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
add_module_names = False

html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"hybridmix {release}"
html_static_path = ["_static"]
html_css_files = ["hybridmix.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
copybutton_exclude = ".gp, .go"
# What is printed is not for copying.
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"
