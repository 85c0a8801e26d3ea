"""Formulas as MathML, made at build time: no script, nothing to load.

The converter leaves some things to the browser that browsers do not do: script letters,
and the spaces of TeX around functions, bars and signs.
"""

from string import ascii_uppercase
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

MATHML = "http://www.w3.org/1998/Math/MathML"
THIN = "0.1667em"
SCRIPT = dict(zip(ascii_uppercase, map(chr, range(0x1D49C, 0x1D4B6)), strict=True))
# Eight letters are older than their block in Unicode, which leaves their places empty.
OLDER = (0x212C, 0x2130, 0x2131, 0x210B, 0x2110, 0x2112, 0x2133, 0x211B)
SCRIPT |= dict(zip("BEFHILMR", map(chr, OLDER), strict=True))
OPENING = {"(", "[", "{"}
CLOSE_SET = {"|", "‖", "/", "!", ".", "\N{DOWN TACK}"}

ElementTree.register_namespace("", MATHML)


def to_mathml(latex: str, display: str) -> str:
    """Return a formula as a `math` element."""
    root = ElementTree.fromstring(convert(latex.strip(), display=display))
    for element in root.iter():
        if element.get("mathvariant") == "script":
            del element.attrib["mathvariant"]
            element.text = "".join(SCRIPT.get(c, c) for c in element.text)
        space_like_tex(list(element))
    return ElementTree.tostring(root, encoding="unicode")


def space_like_tex(siblings: list[ElementTree.Element]) -> None:
    """Set the spaces around functions, bars and signs in one row of a formula."""
    for before, element, after in zip(
        [None, *siblings], siblings, [*siblings[1:], None], strict=False
    ):
        core = nucleus(element)
        text = core.text or ""
        if text in CLOSE_SET:
            core.attrib |= {"lspace": "0", "rspace": "0"}
            core.attrib.setdefault("stretchy", "false")
        elif text == "~":
            core.tag, core.text = tag("mo"), "\N{TILDE OPERATOR}"
        elif text.isalpha() and len(text) > 1 and core.tag != tag("mtext"):
            core.tag = tag("mo")
            core.set("lspace", THIN if is_operand(before) else "0")
            opens = after is not None and nucleus(after).text in OPENING
            core.set("rspace", "0" if opens or after is None else THIN)
        elif text in {"\N{MINUS SIGN}", "+"} and not is_operand(before):
            core.set("form", "prefix")


def nucleus(element: ElementTree.Element) -> ElementTree.Element:
    """Return what an element is without its indices."""
    scripted = {tag(name) for name in ("msub", "msup", "msubsup", "munder", "munderover")}
    return nucleus(element[0]) if element.tag in scripted else element


def is_operand(element: ElementTree.Element | None) -> bool:
    """Tell whether a sign or a function after it is separated from it."""
    if element is None or element.tag == tag("mspace"):
        return False
    core = nucleus(element)
    return core.tag != tag("mo") or core.text in {")", "]", "|", "!", "∇", "∂"}


def tag(name: str) -> str:
    """Return the full name of a MathML element."""
    return f"{{{MATHML}}}{name}"


def visit_inline(writer: object, node: nodes.math) -> None:
    """Write a formula in a line."""
    writer.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(writer: object, node: nodes.math_block) -> None:
    """Write a formula of its own lines."""
    writer.body.append(
        f'<div class="formula">{to_mathml(node.astext(), "block")}</div>\n'
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer as `mathml`."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
