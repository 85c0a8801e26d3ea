"""The pictures of docs/gallery.md, by the code on that page.

Each is the figure of the last display that the code below it on the page draws.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from figures import Options, finish, read_options

PAGE = Path(__file__).resolve().parent.parent / "docs" / "gallery.md"
# A block of code, and the picture right above it, if there is one.
BLOCK = re.compile(
    r"(?:\(images/(?P<picture>\w+)\.png\)\s+)?^```python\n(?P<code>.*?)^```$", re.M | re.S
)


def main(options: Options) -> None:
    names: dict[str, Any] = {}
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        exec(block["code"], names)
        if block["picture"]:
            finish(names["display"].figure_, block["picture"], options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
