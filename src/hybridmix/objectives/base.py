"""What every objective offers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.rows import UNLABELLED


class Objective(ABC):
    """A function of the log joint densities of a row, to be maximised.

    Attributes
    ----------
    needs_rivals : bool
        Whether a labelled row looks at other classes than its own. If not, only the
        components of its class are evaluated.
    signed : bool
        Whether weights may be negative, which EM cannot use.
    parts : tuple of str
        Names of the terms that sum to the value.
    """

    needs_rivals: bool
    signed: bool
    parts: tuple[str, ...]

    @abstractmethod
    def values_and_weights(
        self, log_joint: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return values and their derivatives.

        Parameters
        ----------
        log_joint : ndarray of shape (C, n)
            ``log p(x, c)``.
        labels : ndarray of shape (n,)
            Class numbers, -1 for unlabelled rows.

        Returns
        -------
        values : ndarray of shape (P, n)
            The terms of each row's value, one line for each of `parts`.
        weights : ndarray of shape (C, n)
            Derivatives of each row's value by the log joint densities of its row.
        """

    def of_units(self, lengths: IntArray) -> Objective:
        """Return the objective of sequences of these lengths (n,).

        Most objectives do not depend on them.
        """
        return self


def labelled_rows(labels: IntArray) -> tuple[IntArray, IntArray]:
    """Return the numbers of the rows that have a label, and these labels."""
    rows = np.flatnonzero(labels != UNLABELLED)
    return rows, labels[rows]
