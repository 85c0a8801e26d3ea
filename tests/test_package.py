"""The package as a whole: what it offers, and what it imports."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hybridmix


def test_importing_the_package_imports_nothing_large():
    """Otherwise Ctrl-C in the first seconds of a command could not be caught."""
    code = (
        "import sys, hybridmix.cli; "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "hybridmix" in run.stdout.split()
    assert not {"numpy", "scipy", "sklearn", "pandas", "typer"} & set(run.stdout.split())


def test_names_are_found_when_they_are_asked_for():
    for name in hybridmix.__all__:
        assert getattr(hybridmix, name) is getattr(hybridmix, name)
        assert name in dir(hybridmix)
    assert hybridmix.reporting.report is hybridmix.report
    assert hybridmix.metrics.__name__ == "hybridmix.metrics"


def test_other_names_are_errors():
    with pytest.raises(AttributeError, match="no attribute 'Mixtures'"):
        hybridmix.Mixtures  # noqa: B018
    assert not hasattr(hybridmix, "_missing")
    with pytest.raises(ImportError):
        from hybridmix import nothing  # noqa: F401


def test_the_conda_recipe_agrees_with_the_project():
    root = Path(__file__).resolve().parent.parent
    recipe = (root / "packaging" / "conda" / "recipe.yaml").read_text("utf-8")
    with (root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert f"  version: {hybridmix.__version__}\n" in recipe
    for requirement in project["dependencies"]:
        assert f"    - {requirement.replace('>=', ' >=')}\n" in recipe
    oldest = project["requires-python"].removeprefix(">=")
    assert f'skip: match(python, "<{oldest}")' in recipe
    assert f"license: {project['license']}\n" in recipe
