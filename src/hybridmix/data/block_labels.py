"""Labels and weights of a table in blocks: counted first, then read with all counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hybridmix._typing import FloatArray, IntArray
from hybridmix.data.cells import is_missing
from hybridmix.data.labels import as_labels, encode_labels
from hybridmix.data.weights import WeightScale

if TYPE_CHECKING:
    from hybridmix.data.frames import Frame

# Columns of more distinct values than this are not labels.
_MOST_LABELS = 10_000
# The label of rows of a table that has none.
_ONLY = 0


@dataclass(frozen=True)
class Tally:
    """How often a label occurs.

    Attributes
    ----------
    n_rows, n_weighted : int
        Rows, and those of positive weight.
    weight, largest : float
        Sum of their weights, and the largest one.
    """

    n_rows: int = 0
    n_weighted: int = 0
    weight: float = 0.0
    largest: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.n_rows + other.n_rows,
            self.n_weighted + other.n_weighted,
            self.weight + other.weight,
            max(self.largest, other.largest),
        )


Census = dict[object, Tally]


@dataclass(frozen=True)
class LabelColumns:
    """The columns of labels and weights; None where there are none."""

    target: str | None
    weight: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that there are, each of them once."""
        given = (self.target, self.weight)
        return tuple(dict.fromkeys(name for name in given if name is not None))

    def census(self, frame: Frame) -> Census:
        """Count the labels of a block; None stands for missing ones."""
        values, places = self._labels(frame)
        weights = self._weights(frame)
        filled = np.ones(len(places)) if weights is None else weights
        n_rows = np.bincount(places, minlength=len(values))
        n_weighted = np.bincount(places, filled > 0.0, len(values))
        sums = np.bincount(places, filled, len(values))
        largest = np.zeros(len(values))
        np.maximum.at(largest, places, filled)
        columns = (n_rows, n_weighted.astype(int), sums, largest)
        counts = zip(*(column.tolist() for column in columns), strict=True)
        return {v: Tally(*own) for v, own in zip(values, counts, strict=True)}

    def _labels(self, frame: Frame) -> tuple[list[object], IntArray]:
        """Return the distinct labels of a block, and which of them each row has."""
        if self.target is None:
            return [_ONLY], np.zeros(frame.shape[0], np.intp)
        labels = as_labels(frame[self.target].to_numpy())
        if labels.dtype.kind in "Of":
            return self._with_missing(labels)
        known, places = np.unique(labels, return_inverse=True)
        return known.tolist(), places

    def _with_missing(self, labels: np.ndarray) -> tuple[list[object], IntArray]:
        if labels.dtype.kind == "f":
            known = labels[~np.isnan(labels)]
            if not np.all(known == np.floor(known)):
                raise ValueError(
                    f"Column {self.target!r} holds real numbers, which are not labels of "
                    "classes; name another column as y."
                )
        lookup: dict[object, int] = {}
        places = np.empty(len(labels), np.intp)
        for row, value in enumerate(labels.tolist()):
            label = None if is_missing(value) else value
            places[row] = lookup.setdefault(label, len(lookup))
        if len(lookup) > _MOST_LABELS:
            raise ValueError(
                f"Column {self.target!r} has more than {_MOST_LABELS:,} distinct values, "
                "which are not labels of classes; name another column as y."
            )
        return list(lookup), places

    def _weights(self, frame: Frame) -> FloatArray | None:
        if self.weight is None:
            return None
        try:
            weights = np.asarray(frame[self.weight].to_numpy(), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {self.weight!r} does not hold weights: {error}. Name a column "
                "of numbers as sample_weight."
            ) from None
        if not np.isfinite(weights).all() or weights.min(initial=0.0) < 0.0:
            raise ValueError(
                f"Column {self.weight!r} holds weights that are negative, missing or "
                "infinite. Give every row a weight of zero or more."
            )
        return weights


@dataclass(frozen=True)
class BlockLabels:
    """Class numbers and weights of the rows of any block.

    Attributes
    ----------
    columns : LabelColumns
        Where labels and weights are.
    classes : ndarray of shape (C,)
        The labels.
    numbers : dict
        Class numbers by label; -1 for marks of unlabelled rows.
    factors : ndarray of shape (C + 1,) or None
        Weights of the classes, and last of unlabelled rows.
    scale : WeightScale or None
        What becomes of weights; None if all are one.
    """

    columns: LabelColumns
    classes: np.ndarray
    numbers: dict[object, int]
    factors: FloatArray | None
    scale: WeightScale | None

    @classmethod
    def of(
        cls,
        columns: LabelColumns,
        censuses: Iterable[Census],
        unlabelled: object,
        class_weight: object,
    ) -> BlockLabels:
        """Give the labels of all blocks numbers.

        Parameters
        ----------
        columns : LabelColumns
            Where labels and weights are.
        censuses : iterable of dict
            The labels of each block.
        unlabelled, class_weight : object
            As in `HybridMixtureClassifier`.
        """
        total: Census = {}
        for own in censuses:
            for label, tally in own.items():
                total[label] = total.get(label, Tally()) + tally
        if columns.target is not None:
            classes, found = encode_labels(list(total), unlabelled)
        else:
            classes, found = np.array([_ONLY]), np.zeros(len(total), np.intp)
        numbers = dict(zip(total, found.tolist(), strict=True))
        tallies = [Tally()] * (len(classes) + 1)
        for label, number in numbers.items():
            tallies[number] += total[label]
        factors = _class_factors(class_weight, classes, tallies)
        scale = _scale(tallies, factors)
        return cls(columns, classes, numbers, factors, scale)

    def n_eligible(self, census: Census) -> int:
        """Return how many rows of a block have a label and a weight."""
        return sum(
            own.n_weighted for label, own in census.items() if self.numbers[label] >= 0
        )

    def read(self, frame: Frame) -> tuple[IntArray, FloatArray | None]:
        """Return the class numbers and the weights of a block; None if all are one."""
        values, places = self.columns._labels(frame)
        unknown = [value for value in values if value not in self.numbers]
        if unknown:
            raise ValueError(
                f"The label {unknown[0]!r} in column {self.columns.target!r} was not "
                "there when labels were counted: the table has changed while it was "
                "read. Fit again when it is complete."
            )
        labels = np.array([self.numbers[value] for value in values], np.intp)[places]
        if self.scale is None:
            return labels, None
        weights = self.columns._weights(frame)
        weights = np.ones(len(labels)) if weights is None else weights
        if self.factors is not None:
            weights = weights * self.factors[labels]
        return labels, self.scale.applied(weights)


def _class_factors(
    class_weight: object, classes: np.ndarray, tallies: list[Tally]
) -> FloatArray | None:
    """Return the weights of the classes, as scikit-learn does; last one of one."""
    if class_weight is None:
        return None
    from sklearn.utils.class_weight import compute_class_weight

    counts = np.array([own.n_rows for own in tallies[:-1]], dtype=np.float64)
    if isinstance(class_weight, str) and class_weight == "balanced":
        factors = counts.sum() / (len(classes) * counts)
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=classes)
    return np.append(factors, 1.0)


def _scale(tallies: list[Tally], factors: FloatArray | None) -> WeightScale | None:
    own = np.ones(len(tallies)) if factors is None else factors
    largest = float(np.max(own * [tally.largest for tally in tallies]))
    if largest == 0.0:
        raise ValueError("All sample weights are zero.")
    sums = own * np.array([tally.weight for tally in tallies]) / largest
    are_ones = all(tally.n_rows == tally.weight for tally in tallies)
    if factors is None and are_ones and largest == 1.0:
        return None
    return WeightScale.of(largest, float(sums.sum()))
