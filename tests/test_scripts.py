"""Scripts that the tests do not run: they use what the library has."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(
    path for folder in ("benchmarks", "tools") for path in (ROOT / folder).glob("*.py")
)


def imports_of(path):
    """Yield the modules of hybridmix that a script imports from, with the names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        module = getattr(node, "module", None) or ""
        if isinstance(node, ast.ImportFrom) and module.split(".")[0] == "hybridmix":
            yield from ((module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_scripts_import_is_there(path):
    for module, name in imports_of(path):
        if not hasattr(import_module(module), name):
            import_module(f"{module}.{name}")
