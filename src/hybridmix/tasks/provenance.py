"""Whether a model was trained on the rows that it is judged by, in words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._typing import IntArray
from hybridmix.data.fingerprint import (
    SEEN,
    UNJUDGED,
    UNSEEN,
    Fingerprint,
    Origin,
    Overlap,
)


@dataclass(frozen=True)
class Provenance:
    """Where the rows of a table come from, as far as a model can know.

    Attributes
    ----------
    fingerprint : Fingerprint or None
        Of the training rows; None for a model that has none.
    overlap : Overlap
        How many rows of the table were among them.
    units : str, default="rows"
        What is counted: rows, or sequences of them.
    """

    fingerprint: Fingerprint | None
    overlap: Overlap
    units: str = "rows"

    @property
    def origin(self) -> Origin:
        """Whether the model has seen the rows."""
        if self.fingerprint is None:
            return Origin.UNKNOWN
        return self.fingerprint.origin(self.overlap)

    @property
    def is_exact(self) -> bool:
        """Whether each single row is known to have been in training or not."""
        return self.overlap.n_judged == self.overlap.n_rows

    @property
    def sentence(self) -> str:
        """What is known about the rows."""
        n_seen = self.overlap.n_seen
        these = f"these {self.overlap.n_rows:,} {self.units}"
        if self.origin == Origin.UNKNOWN:
            return self._why_unknown()
        if self.origin == Origin.SEEN:
            return f"The model was trained on {these}{self._hedge}."
        if self.origin == Origin.MIXED:
            share = n_seen / self.overlap.n_judged
            how = f"{n_seen:,}" if self.is_exact else f"About {share:.0%}"
            return f"{how} of {these} were in the training table{self._hedge}."
        if n_seen:
            return (
                f"The model was not trained on {these}. Some of them have the same "
                f"values as training {self.units}, but no more than chance explains."
            )
        one = self.units.removesuffix("s")
        return f"None of {these} equals a training {one}{self._hedge}."

    @property
    def _hedge(self) -> str:
        """What a sentence adds if only a sample of the rows could be compared."""
        n_judged = self.overlap.n_judged
        return "" if self.is_exact else f", judging by a sample of {n_judged:,}"

    def _why_unknown(self) -> str:
        unknown = f"It is not known whether the model was trained on these {self.units}"
        if self.fingerprint is None:
            return (
                f"{unknown}: it has no fingerprint of its training rows. Models from "
                "files of version 0.1 have none, nor do marginals and MED machines."
            )
        all_seen = self.overlap.n_seen and self.overlap.n_seen == self.overlap.n_judged
        if all_seen and self.is_exact:
            return (
                f"{unknown}: new rows would have the same values by chance, as the "
                "training rows repeat each other."
            )
        return (
            f"{unknown}: they are too few to compare with the "
            f"{self.fingerprint.n_rows:,} training rows, of which a model keeps a sample."
        )


def looked_up(model: Any, X: Any) -> IntArray | None:
    """Look for rows in the training table of a fitted model.

    Parameters
    ----------
    model : FittedMixture
        A fitted model.
    X : array-like or data frame of shape (n, d)
        Rows.

    Returns
    -------
    found : ndarray of shape (n,) or None
        What `Fingerprint.look_up` says about each row; None if the model is from an old
        file and has no fingerprint.
    """
    fingerprint = getattr(model, "fingerprint_", None)
    if fingerprint is None:
        return None
    with warnings.catch_warnings():
        # Callers that predict these rows have been warned about unknown categories.
        warnings.simplefilter("ignore", UserWarning)
        return fingerprint.look_up(model._encode(X))


def looked_up_sequences(model: Any, X: Any) -> IntArray | None:
    """Look for sequences among the training sequences of a fitted model.

    A sequence was in training if all of its frames were, as far as these can be judged:
    the fingerprint is one of frames.

    Parameters
    ----------
    model : FittedChainsEstimator
        A fitted model.
    X : Sequences
        The sequences.

    Returns
    -------
    found : ndarray of shape (n,) or None
        As that of `looked_up`.
    """
    fingerprint = getattr(model, "fingerprint_", None)
    if fingerprint is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        read = model._encode(X, None)
    found, starts = fingerprint.look_up(read.table), read.rows.starts
    is_new = np.logical_or.reduceat(found == UNSEEN, starts)
    is_known = np.logical_or.reduceat(found == SEEN, starts)
    return np.where(is_new, UNSEEN, np.where(is_known, SEEN, UNJUDGED))
