"""Pictures of the benchmarks: where they go and what they look like."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from common import DEFAULT_RESULTS, HERE, Options

IMAGES = HERE.parent / "docs" / "images"


def image_folder(options: Options) -> Path | None:
    """Return where pictures go: beside the tables, if these are not the project's own."""
    return IMAGES if options.results == DEFAULT_RESULTS else options.results


def save(figure: Any, name: str, folder: Path) -> None:
    import matplotlib.pyplot as plt
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    stream = io.BytesIO()
    figure.savefig(stream, dpi=110)
    # A palette of 64 colours makes the file three times smaller.
    image = Image.open(stream).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    image.save(folder / f"{name}.png", optimize=True)
    plt.close(figure)
    print(f"Written: {name}.png", flush=True)


def prepare_pictures() -> Any:
    """Return matplotlib's pyplot, set to the style of the project's pictures."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
        }
    )
    return plt
