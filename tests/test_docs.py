"""The documentation is true: its code runs, its links lead somewhere."""

import importlib.util
import json
import re
import runpy
import shlex
import sys
import textwrap
import tomllib
from itertools import takewhile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from hybridmix.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    page for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if page.is_file()
)
PICTURES = sorted(
    path
    for path in ROOT.glob("examples/*.py")
    if "import matplotlib" in path.read_text("utf-8") and path.stem != "figures"
)
BLOCK = re.compile(
    r"^```(?P<kind>python|sh|console|text output)(?: +(?P<source>\S+))?\n"
    r"(?P<code>.*?)^```$",
    re.M | re.S,
)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.M)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# Pages in whose place the site shows a file of the repository.
STAND_IN = re.compile(r"# [^\n]+\n\nSee \[[^\]]+\]\(([^)]+)\)\.\n")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blocks(page):
    """Blocks that are checked: line, kind, file that is quoted (or None), text."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, m.start("code")), m["kind"], m["source"], m["code"])
        for m in BLOCK.finditer(text)
    ]


def anchor_of(heading):
    """The anchor that GitHub gives to a heading."""
    plain = re.sub(r"[^\w\- ]", "", heading.lower())
    return plain.replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_on_pages_runs(page, monkeypatch, tmp_path, capsys):
    """Blocks of one page share their names and a folder, in the order of the page."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace = {"__name__": "page"}
    printed = ""
    for line, kind, source, code in blocks(page):
        if kind == "python" and not source:
            # Empty lines in front make line numbers of errors those of the page.
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
            printed = capsys.readouterr().out
        elif kind in {"sh", "console"}:
            for words, shown in commands(code, kind):
                fails = run_command(words)
                said = "".join(capsys.readouterr())
                assert fails == shown.startswith("hybridmix: error:"), said
                assert " ".join(shown.split()) in " ".join(said.split())
        elif kind == "text output":
            assert_alike(printed, code)
    plt.close("all")


def commands(code, kind):
    """Commands of a block, as words; in a console, with the output that is shown."""
    code = code.replace("\\\n", " ")
    if kind == "console":
        code = code.removeprefix("$ ")
    for part in code.split("\n$ " if kind == "console" else "\n"):
        line, _, shown = part.partition("\n")
        # What a pipe leads to is not ours.
        words = list(
            takewhile(lambda word: word != "|", shlex.split(line, comments=True))
        )
        if words:
            yield words, shown


def run_command(words):
    """Run what is ours, and return whether it fails; see that what is named exists."""
    match words:
        case ["hybridmix", "demo", *arguments]:
            return main(["demo", "--quick", *arguments]) != 0
        case ["hybridmix", *arguments]:
            return main(arguments) != 0
        case ["make", *targets]:
            rules = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert set(targets) <= set(re.findall(r"^([a-z]+):", rules, re.M))
        case ["pip", "install", package]:
            name, _, extras = package.rstrip("]").partition("[")
            assert name in {"hybridmix", "."}
            with open(ROOT / "pyproject.toml", "rb") as file:
                known = tomllib.load(file)["project"]["optional-dependencies"]
            assert set(filter(None, extras.split(","))) <= set(known)
        case _:
            pytest.fail(f"cannot check: {shlex.join(words)}")
    return False


def assert_alike(printed, shown):
    """Words are the same; numbers differ as little as they do between machines."""
    printed, shown = (" ".join(text.split()) for text in (printed, shown))
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    numbers = [list(map(float, NUMBER.findall(text))) for text in (printed, shown)]
    np.testing.assert_allclose(*numbers, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_quotes_are_true(page):
    for line, _, source, code in blocks(page):
        if source:
            quoted = textwrap.dedent(code)
            whole = (ROOT / source).read_text(encoding="utf-8")
            depths = (textwrap.indent(quoted, " " * 4 * k) for k in range(4))
            assert any(text in whole for text in depths), f"line {line}: not in {source}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_exist(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page if not path else page.parent / path
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            found = {anchor_of(h) for h in HEADING.findall(file.read_text("utf-8"))}
            assert anchor in found, target


def test_pages_can_be_found_from_the_index():
    """By links that work on GitHub, too; the tables of contents are seen to by Sphinx."""
    index = ROOT / "docs" / "index.md"
    linked = set(targets(index))
    for page in PAGES:
        if page.is_relative_to(index.parent) and page != index:
            stands_in = STAND_IN.fullmatch(page.read_text(encoding="utf-8"))
            wanted = (page.parent / stands_in[1]).resolve() if stands_in else page
            assert wanted in linked, name_of(page)


def targets(page):
    """Files that a page links to."""
    text = page.read_text(encoding="utf-8")
    return [
        (page.parent / target.partition("#")[0]).resolve()
        for target in LINK.findall(text)
    ]


def test_the_notebook_is_the_tutorial():
    """Text, code and output are those of the page, whose code was run and compared."""
    path = ROOT / "tools" / "notebook.py"
    tool = runpy.run_path(str(path))
    page = tool["PAGE"].read_text("utf-8")
    wanted = tool["notebook_of"](page)
    assert tool["NOTEBOOK"].read_text("utf-8") == wanted, "run tools/notebook.py"
    cells = json.loads(wanted)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    run = [code.strip() for _, kind, _, code in blocks(tool["PAGE"]) if kind == "python"]
    assert [one for one in code if not one.startswith("!")] == run
    shown = ["".join(o["text"]) for cell in cells for o in cell.get("outputs", [])]
    assert shown == [c for _, kind, _, c in blocks(tool["PAGE"]) if kind == "text output"]
    assert "](" not in "".join(line for cell in cells for line in cell["source"])


def run_example(name, monkeypatch, *arguments):
    path = ROOT / "examples" / name
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    return runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", PICTURES, ids=name_of)
def test_examples_draw_pictures(path, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(str(path.parent))
    figures = load_figures(monkeypatch)
    monkeypatch.setattr(figures, "IMAGES", tmp_path)
    run_example(path.name, monkeypatch, "--save", "--quick")
    assert [file.stat().st_size < 150_000 for file in tmp_path.glob("*.png")] == [True]
    kept = ROOT / "docs" / "images" / f"{path.stem}.png"
    assert kept.stat().st_size < 150_000


def load_figures(monkeypatch):
    """Import what the examples share, afresh, with a backend that needs no screen."""
    path = ROOT / "examples" / "figures.py"
    spec = importlib.util.spec_from_file_location("figures", path)
    figures = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "figures", figures)
    spec.loader.exec_module(figures)
    figures.plt.switch_backend("Agg")
    return figures
