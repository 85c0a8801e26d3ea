"""Text of users is shown, and never obeyed."""

import json

import pytest

from hybridmix._text import json_safe, printable
from hybridmix.reporting.markup import code, paragraph, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m", r"\x9b31m"),
        ("two\nlines\r\tmore\x7f", r"two\nlines\r\tmore\x7f"),
        ("abc\u202egpj.exe", r"abc\u202egpj.exe"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("größe 名 \N{NO-BREAK SPACE}€ 👩\N{ZERO WIDTH JOINER}🔬", None),
        (r"C:\new", None),
    ],
)
def test_what_terminals_obey_is_escaped(text, shown):
    assert printable(text) == (text if shown is None else shown)


def test_some_characters_can_be_kept():
    assert printable("a\n\x1b", keep="\n") == "a\n\\x1b"


def test_json_keeps_its_values():
    values = {"\x9b\u202e名\x1b\n": "\x7f"}
    text = json_safe(json.dumps(values, ensure_ascii=False))
    assert json.loads(text) == values
    assert printable(text) == text
    assert "名" in text


def test_reports_show_control_characters():
    page = paragraph("\x1b<b>") + table("\x9b", ["\x07"], [["\u202e", 1]][:0])
    assert r"\x1b&lt;b&gt;" in page
    assert r"\x9b" in page
    assert r"\x07" in page
    assert "a\nb" in code("a\nb")
