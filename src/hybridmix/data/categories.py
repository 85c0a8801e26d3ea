"""Categories: their order, and how values find theirs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from hybridmix.data.cells import distinct, listed, number_of


def sorted_categories(values: frozenset[object]) -> tuple[object, ...]:
    """Sort categories; those of several types by type and text."""
    try:
        return tuple(sorted(values))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(values, key=lambda v: (type(v).__name__, str(v))))


def category_lookup(
    values: list[object], categories: tuple[object, ...], label: str
) -> tuple[dict[object, int], set[object]]:
    """Return the number of each category, and values that are none of them."""
    lookup = {value: number for number, value in enumerate(categories)}
    strangers = distinct(values, label) - lookup.keys()
    if strangers:
        respelled = _respelled(strangers, categories)
        lookup.update(respelled)
        strangers -= respelled.keys()
    return lookup, strangers


def report_unseen(unseen: Mapping[str, object], strict: bool) -> None:
    """Warn of categories that training did not see, or refuse them.

    Parameters
    ----------
    unseen : mapping of str to object
        For each column that has any: one of them.
    strict : bool
        Whether to refuse them.
    """
    found = listed([f"{value!r} in {name}" for name, value in unseen.items()])
    if strict:
        raise ValueError(
            f"Training began without the categories {found}, and they cannot be added "
            "later. Begin with rows that have all of them, pass a schema that knows "
            "them, or set such cells to missing."
        )
    warnings.warn(
        f"Categories that training did not see count as missing: {found}.",
        UserWarning,
        stacklevel=3,
    )


def _respelled(values: set[object], categories: tuple[object, ...]) -> dict[object, int]:
    """Return the categories of values that are spelled in another way.

    Text that spells a number stands for it, and numbers stand for such text, if no two
    categories spell the same number.
    """
    spelled = {number_of(category): k for k, category in enumerate(categories)}
    are_text = {isinstance(category, str) for category in categories}
    if None in spelled or len(spelled) < len(categories) or len(are_text) > 1:
        return {}
    others = {value: number_of(value) for value in values}
    return {
        value: spelled[number]
        for value, number in others.items()
        if number in spelled and isinstance(value, str) not in are_text
    }
