"""The documentation is true: its code runs, its links lead somewhere."""

import importlib.util
import re
import runpy
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    page for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if page.is_file()
)
PICTURES = sorted(
    path
    for path in ROOT.glob("examples/*.py")
    if "import matplotlib" in path.read_text("utf-8") and path.stem != "figures"
)
BLOCK = re.compile(r"^```python *(?P<source>\S*)\n(?P<code>.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.M)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blocks(page):
    """Python blocks of a page: line, file that is quoted (or nothing), code."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, m.start("code")), m["source"], m["code"])
        for m in BLOCK.finditer(text)
    ]


def anchor_of(heading):
    """The anchor that GitHub gives to a heading."""
    plain = re.sub(r"[^\w\- ]", "", heading.lower())
    return plain.replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_on_pages_runs(page, monkeypatch, tmp_path):
    """Blocks of one page share their names, in the order of the page."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace = {"__name__": "page"}
    for line, source, code in blocks(page):
        if source:
            continue
        # Empty lines in front make line numbers of errors those of the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_quotes_are_true(page):
    for line, source, code in blocks(page):
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
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / target.partition("#")[0]).resolve()
        for target in LINK.findall(index.read_text(encoding="utf-8"))
    }
    assert {page for page in PAGES if page.parent == index.parent} - {index} <= linked


def run_example(name, monkeypatch, *arguments):
    path = ROOT / "examples" / name
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    return runpy.run_path(str(path), run_name="__main__")


def test_demo(monkeypatch, capsys):
    run_example("demo.py", monkeypatch, "--quick")
    printed = capsys.readouterr().out
    assert "docs/index.md" in printed
    assert max(map(len, printed.splitlines())) <= 96


def test_demo_needs_no_extra():
    path = ROOT / "examples" / "demo.py"
    imported = re.findall(r"^(?:from|import) (\w+)", path.read_text("utf-8"), re.M)
    assert not {"matplotlib", "pandas", "polars", "figures"} & set(imported)


@pytest.mark.parametrize("path", PICTURES, ids=name_of)
def test_examples_draw_pictures(path, monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
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
