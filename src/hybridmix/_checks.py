"""Checks of parameters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(
    name: str,
    value: Any,
    least: float,
    most: float = np.inf,
    whole: bool = False,
) -> None:
    """Refuse a parameter that is no number or out of range."""
    kind = Integral if whole else Real
    if (
        not isinstance(value, kind)
        or isinstance(value, bool)
        or not (least <= float(value) <= most)
        or np.isinf(float(value))
    ):
        expected = "a whole number" if whole else "a finite number"
        upper = "" if most == np.inf else f" and at most {most:g}"
        raise ValueError(
            f"{name}={value!r} is not valid: it must be {expected} of at least "
            f"{least:g}{upper}."
        )
