"""Text of users, such as column names and labels, made safe to show."""

from __future__ import annotations

import re

# What terminals and browsers obey instead of showing: control characters (line breaks and
# the escape before colours among them), line and paragraph separators, marks that change
# the direction of writing; and halves of surrogate pairs, which cannot be encoded.
_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(text: str, keep: str = "") -> str:
    r"""Show control characters as escapes instead of obeying them.

    Parameters
    ----------
    text : str
        Any text, such as the name of a column in a file from elsewhere.
    keep : str, default=""
        Control characters that stay as they are, such as line breaks.

    Returns
    -------
    shown : str
        The text as Python would write it between quotes; everything that can be seen, in
        any language, is unchanged.

    Examples
    --------
    >>> print(printable("\x1b[31mred\x1b[0m\n"))
    \x1b[31mred\x1b[0m\n
    """

    def escaped(found: re.Match[str]) -> str:
        character = found[0]
        if character in keep:
            return character
        code = ord(character)
        return _SHORT.get(character, f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")

    return _OBEYED.sub(escaped, text)


def shown(value: object) -> str:
    """Write a name or a number as Python does, without the type that NumPy gave it.

    Parameters
    ----------
    value : object
        A single value, such as the id of a sequence.
    """
    item = getattr(value, "item", None)
    return printable(repr(value if item is None else item()))


def shortened(text: str, length: int) -> str:
    """Cut a text that is too long, in its middle, where names differ least."""
    if len(text) <= length:
        return text
    end = (length - 1) // 2
    return f"{text[: length - 1 - end]}…{text[len(text) - end :]}"


def json_safe(text: str) -> str:
    r"""Write control characters in JSON by their numbers, which changes no value.

    Parameters
    ----------
    text : str
        JSON in one line, whose strings may hold anything.

    Examples
    --------
    >>> print(json_safe('"\x9b31m"'))
    "\u009b31m"
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def with_article(name: str) -> str:
    """Put "a" or "an" before the name of a class; H is spoken "aitch" in HMM."""
    is_vowel = name.startswith(("HMM", *"AEIOU"))
    return f"{'an' if is_vowel else 'a'} {name}"
