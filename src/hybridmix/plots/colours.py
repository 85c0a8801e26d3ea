"""Colours that fit the style in use, light or dark.

They are read from matplotlib's settings when something is drawn, so that
``plt.style.use("dark_background")`` and the themes of notebooks work.
"""

from __future__ import annotations

from typing import Any

from hybridmix.plots.axes import import_pyplot

# The colours of Okabe and Ito, which look different to people with any colour vision;
# olive instead of their yellow, which is too pale on white. On dark paper they are
# lighter versions of the same.
_ON_LIGHT = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
    "#999933",
)
_ON_DARK = (
    "#5aa9e6",
    "#ff8242",
    "#2fc08f",
    "#e29cc6",
    "#f2b134",
    "#9ad4f5",
    "#ffffff",
    "#d9d34a",
)
GREY = "#8c8c8c"


def paper() -> str:
    """Return the colour of the background."""
    return str(_settings()["axes.facecolor"])


def ink() -> str:
    """Return the colour of lines and marks that belong to no class."""
    return str(_settings()["text.color"])


def palette() -> tuple[str, ...]:
    """Return the colours of classes."""
    from matplotlib.colors import to_rgb

    return _ON_DARK if sum(to_rgb(paper())) < 1.5 else _ON_LIGHT


def shaded(color: str, strength: float) -> tuple[float, ...]:
    """Return a colour with a share of its strength, on this paper."""
    from matplotlib.colors import to_rgb

    pairs = zip(to_rgb(color), to_rgb(paper()), strict=True)
    return tuple(strength * own + (1.0 - strength) * under for own, under in pairs)


def shades(color: str) -> Any:
    """Return a colour map from the paper to a colour."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("shades", [paper(), color])


def _settings() -> Any:
    return import_pyplot().rcParams
