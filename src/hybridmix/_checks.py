"""Checks of options."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state


def check_number(
    name: str,
    value: object,
    least: float,
    most: float = np.inf,
    whole: bool = False,
    or_word: str | None = None,
) -> None:
    """Refuse an option that is not a number or out of range.

    Parameters
    ----------
    name : str
        The option.
    value : object
        What was given.
    least, most : float
        The range; infinity itself is never in it.
    whole : bool
        Whether only whole numbers will do.
    or_word : str or None
        A word that may be given instead of a number.
    """
    if or_word is not None and not isinstance(value, Real):
        if isinstance(value, str) and value == or_word:
            return
        raise ValueError(f"{name}={value!r} is neither a number nor {or_word!r}.")
    if not _is_between(value, least, most, Integral if whole else Real):
        expected = "a whole number" if whole else "a finite number"
        upper = "" if most == np.inf else f" and at most {most:g}"
        word = "" if or_word is None else f", or {or_word!r}"
        raise ValueError(
            f"{name}={value!r} is not valid: it must be {expected} of at least "
            f"{least:g}{upper}{word}."
        )


def _is_between(
    value: object, least: float, most: float, kind: type[Integral] | type[Real]
) -> bool:
    """Return whether a value is a finite number of a kind, and in a range."""
    if not isinstance(value, kind) or isinstance(value, bool):
        return False
    number = _as_float(value)
    return least <= number <= most and not np.isinf(number)


def _as_float(value: Real | Integral) -> float:
    """Return a number as a float; whole numbers beyond all floats are infinite."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def check_flag(name: str, value: object, or_word: str | None = None) -> None:
    """Refuse an option that is neither True nor False; 1 and 0 stand for these.

    A word may be allowed instead of them, as in `check_number`.
    """
    if or_word is not None and isinstance(value, str) and value == or_word:
        return
    is_number = isinstance(value, Integral | np.bool_)
    if not is_number or value not in (0, 1):
        words = "True or False" if or_word is None else f"True, False or {or_word!r}"
        raise ValueError(f"{name}={value!r} is not valid: it must be {words}.")


def is_single(value: object) -> bool:
    """Return whether something is one value, and not a tuple, list, set or array."""
    return isinstance(value, str | bytes) or not isinstance(value, Collection)


def check_jobs(n_jobs: object) -> None:
    """Refuse numbers of threads or processes that make no sense."""
    if n_jobs is None:
        return
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if not is_whole or n_jobs == 0:
        raise ValueError(
            f"n_jobs={n_jobs!r} is not valid: it must be None, -1 for all cores, or "
            "another whole number but 0."
        )


def check_seed(random_state: object) -> None:
    """Refuse what cannot be the source of randomness."""
    try:
        check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state={random_state!r} is not valid: it must be None, a whole "
            "number from 0 to 2**32 - 1, or a RandomState."
        ) from None


def check_verbosity(verbose: object) -> None:
    """Refuse a verbosity that is neither a number of at least 0 nor a flag."""
    if not isinstance(verbose, bool | np.bool_):
        check_number("verbose", verbose, 0)


def check_splits(cv: object) -> None:
    """Refuse what does not say how to split rows into folds."""
    is_splitter = hasattr(cv, "split") or isinstance(cv, Iterable)
    if cv is None or (is_splitter and not isinstance(cv, str | bytes)):
        return
    if not isinstance(cv, Integral) or isinstance(cv, bool) or cv < 2:
        raise ValueError(
            f"cv={cv!r} is not valid: it must be a whole number of at least 2, a "
            "splitter of scikit-learn, or a list of pairs of training and test rows."
        )


def check_word(name: str, value: object, words: Iterable[str], hint: str = "") -> None:
    """Refuse an option that is not one of a few words."""
    listed = list(words)
    if not (isinstance(value, str) and value in listed):
        raise ValueError(f"{name}={value!r} is not one of {', '.join(listed)}.{hint}")


def check_word_or_object(
    name: str, value: object, words: Iterable[str], contract: Iterable[str], base: str
) -> None:
    """Refuse an option that is neither one of a few words nor has a contract.

    Parameters
    ----------
    name : str
        The option.
    value : object
        What was given.
    words : iterable of str
        The names that are known.
    contract : iterable of str
        Attributes that an object must have instead.
    base : str
        The class that documents them.
    """
    if isinstance(value, str):
        hint = f" It may also be an object with the contract of {base}."
        check_word(name, value, words, hint)
        return
    if isinstance(value, type):
        raise ValueError(f"{name}={value.__name__} is a class: pass an object of it.")
    missing = [attribute for attribute in contract if not hasattr(value, attribute)]
    if missing:
        raise ValueError(
            f"{name}={value!r} is not one of {', '.join(words)}, and as an object it "
            f"lacks {', '.join(missing)} of {base}."
        )


def is_learned(name: str) -> bool:
    """Return whether an attribute of this name is one that `fit` sets."""
    return name.endswith("_") and not name.startswith("_")
