"""Whether the model's marginal distribution of a column is that of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from hybridmix._typing import FloatArray
from hybridmix.data.shapes import ColumnShape
from hybridmix.estimators.components import Marginal, factors_in_units
from hybridmix.reporting.markup import number, percent
from hybridmix.reporting.subject import Subject

# Distances below this do not matter, however many rows show them.
_SMALL = 0.05
# Kolmogorov's distribution exceeds this with a probability of one in a hundred.
_KOLMOGOROV = 1.63
# Distances of frequencies are at most this many times their mean by chance.
_BY_CHANCE = 2.5
# Values that make up more than this share of a column are looked at on their own.
_REPEATED = 0.1
_SKEWED = 1.0
# A real column of so few different values may as well be a category.
_FEW_VALUES = 20


@dataclass(frozen=True)
class ColumnCheck:
    r"""How far the model's marginal of a column is from the values of the rows.

    For a real column, the distance is that of Kolmogorov and Smirnov,
    :math:`\sup_x |F(x) - \hat F(x)|`, between the distribution functions. For a
    categorical one it is the total variation, :math:`\frac12 \sum_c |p_c - \hat p_c|`.
    Both are shares of the rows that would have to change.

    Attributes
    ----------
    column : int
        Its position.
    distance : float
        Between 0 and 1.
    by_chance : float
        Larger distances than this are rarely due to chance.
    where : str
        Where the difference is largest.
    advice : str
        What may help; empty if the model matches.
    """

    column: int
    distance: float
    by_chance: float
    where: str
    advice: str = ""

    @property
    def is_match(self) -> bool:
        """Whether the difference is small, or no more than chance explains."""
        return self.distance <= max(_SMALL, self.by_chance)


def check_columns(subject: Subject, columns: list[int]) -> list[ColumnCheck]:
    """Check some columns, those first whose distance is largest."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = [_check(subject, column) for column in columns]
    known = [own for own in found if own is not None]
    return sorted(known, key=lambda own: -own.distance)


def _check(subject: Subject, column: int) -> ColumnCheck | None:
    values = subject.values(column)
    if len(values) < 2:
        return None
    is_real = column in subject.schema.real
    check = (_check_real if is_real else _check_categories)(subject, column, values)
    # Values beyond the range of squares have no distribution function.
    return check if check is not None and np.isfinite(check.distance) else None


def distribution_function(model: Any, column: int, values: FloatArray) -> FloatArray:
    r"""Return the model's probability of values of a real column up to some numbers.

    .. math:: F(x) = \sum_k \alpha_k \Bigl( q_{k0} \Phi\bigl(
              \tfrac{t(x) - \mu_k}{\sigma_k}\bigr) + \sum_{s \le x} q_{ks} \Bigr)

    with the transform :math:`t` of the column's shape, and probabilities :math:`q_{ks}`
    of its spikes.

    Parameters
    ----------
    model : FittedMixture
        The model.
    column : int
        Position of a real column.
    values : ndarray of shape (n,)
        The numbers.
    """
    marginal = Marginal.of(model, [column])
    shape = marginal.schema.shapes.get(0, ColumnShape())
    means, variances = (part.reshape(-1, 1) for part in marginal.moments())
    weights = np.exp(marginal.model.log_weights)
    below = ndtr((shape.forward(values) - means) / np.sqrt(variances))
    # Numbers below the domain of a transform have nothing below them.
    below = np.where(np.isnan(below), 0.0, below)
    if not shape.spikes:
        return weights @ below
    shares = np.exp(
        factors_in_units(marginal.model, marginal.schema)[1].log_probabilities
    )
    steps = np.array(shape.spikes)[:, None] <= values
    return weights @ (shares[:, :1] * below + shares[:, 1:] @ steps)


def _check_real(subject: Subject, column: int, values: FloatArray) -> ColumnCheck | None:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return None
    # Between two values, so that whole numbers are compared with what rounds to them.
    between = distinct[:-1] / 2.0 + distinct[1:] / 2.0
    found = np.cumsum(counts)[:-1] / len(values)
    differences = distribution_function(subject.model, column, between) - found
    place = int(np.abs(differences).argmax())
    distance = float(np.abs(differences[place]))
    amount = "more" if differences[place] > 0 else "fewer"
    where = f"the model has {amount} values below {number(float(between[place]))}"
    by_chance = _KOLMOGOROV / np.sqrt(len(values))
    check = ColumnCheck(column, distance, float(by_chance), where)
    if check.is_match:
        return check
    advice = _real_advice(
        subject, column, values, distinct[counts.argmax()], counts.max()
    )
    return replace(check, advice=advice)


def _real_advice(
    subject: Subject, column: int, values: FloatArray, most: float, n_most: int
) -> str:
    """Say what may bring the model nearer to the values of a real column."""
    shape = subject.schema.shapes.get(column, ColumnShape())
    share = n_most / len(values)
    searches = getattr(subject.model, "column_shapes", "auto") == "auto"
    if len(np.unique(values)) <= _FEW_VALUES:
        return (
            "It has few different values: read it as a category, with "
            f"categorical_features=[{subject.names[column]!r}] or --categorical."
        )
    if share > _REPEATED and most not in shape.spikes and not searches:
        return (
            f"{number(most)} makes up {percent(share)} of the column, which a density "
            'cannot show: column_shapes="auto" gives such values a probability of '
            "their own."
        )
    centred = (values - values.mean()) / (values.std() or 1.0)
    if shape.transform is None and abs(float(np.mean(centred**3))) > _SKEWED:
        # Where shapes were looked for and not found, they can still be given.
        wish = "positive" if values.min() >= 0.0 else "skewed"
        shapes = {subject.names[column]: wish} if searches else "auto"
        return f"The column is skewed: column_shapes={shapes!r} may help."
    return _common_advice(subject, column)


def _common_advice(subject: Subject, column: int) -> str:
    missing = 1.0 - float(subject.observed[:, column].mean())
    if missing > _REPEATED:
        return (
            f"{percent(missing)} of its cells are missing. If that depends on other "
            "columns, the values that are left differ from the column as a whole, and "
            "the model may be right."
        )
    if getattr(subject.model, "objective", None) in ("conditional", "margin"):
        return "Training did not ask for a match; objective='hybrid' does."
    return "More components may fit it, or the rows differ from those of training."


def _check_categories(subject: Subject, column: int, values: FloatArray) -> ColumnCheck:
    place = subject.schema.categorical.index(column)
    categories = subject.schema.categories[place]
    weights = np.exp(subject.model.model_.log_weights)
    expected = weights @ subject.model.category_probabilities_[place]
    counts = np.bincount(values.astype(np.intp), minlength=len(categories))
    differences = expected - counts / len(values)
    worst = int(np.abs(differences).argmax())
    amount = "more" if differences[worst] > 0 else "fewer"
    by_chance = 0.5 * np.sqrt(2.0 / np.pi * expected * (1.0 - expected) / len(values))
    check = ColumnCheck(
        column,
        0.5 * float(np.abs(differences).sum()),
        _BY_CHANCE * float(by_chance.sum()),
        f"the model has {amount} rows with {categories[worst]}",
    )
    if check.is_match:
        return check
    return replace(check, advice=_common_advice(subject, column))
