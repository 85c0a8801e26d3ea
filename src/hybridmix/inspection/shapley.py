"""Shapley values by exact marginals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state

from hybridmix._checks import check_number
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data import Table
from hybridmix.data.columns import as_frame
from hybridmix.data.holes import punch_holes
from hybridmix.estimators.base import FittedMixture
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.targets import FittedRegressor
from hybridmix.inspection.coalitions import Coalitions, choose_coalitions
from hybridmix.progress import announce

# Rows that a model is asked about in one call, and answers that are kept at a time.
_ROWS_PER_CALL, _MOST_ANSWERS = 1 << 16, 1 << 21

# Asks a model about a table, and returns its answers, (n, outputs).
_Ask = Callable[[Any], FloatArray]


@dataclass(frozen=True)
class ShapleyValues:
    """What `shapley_values` finds.

    The last axis, of classes or of several targets, is left out where a model answers
    with one number. Names and shapes are those of ``shap.Explanation``.

    Attributes
    ----------
    names : tuple of str
        Names of the columns; their positions if the table has no names.
    output_names : tuple of str or None
        Names of the classes or targets on the last axis; None if there is none.
    values : ndarray of shape (n, d) or (n, d, outputs)
        What each cell adds. The values of a row add up to ``predictions - base_values``.
        Those of missing cells are 0.
    base_values : ndarray of shape (n,) or (n, outputs)
        The answer if nothing is known, the same for all rows.
    predictions : ndarray of shape (n,) or (n, outputs)
        The answer for the row.
    standard_errors : ndarray of shape (n, d) or (n, d, outputs)
        Of values from sampled subsets; 0 for exact ones.
    """

    names: tuple[str, ...]
    output_names: tuple[str, ...] | None
    values: FloatArray
    base_values: FloatArray
    predictions: FloatArray
    standard_errors: FloatArray

    @property
    def mean_magnitude(self) -> FloatArray:
        """Mean size of the values of each column, (d,) or (d, outputs)."""
        return np.abs(self.values).mean(axis=0)

    @property
    def order(self) -> IntArray:
        """Columns by the size of their values, over all outputs, the largest first."""
        by_column = self.mean_magnitude.reshape(len(self.names), -1).sum(axis=1)
        return np.argsort(-by_column, kind="stable")

    def __str__(self) -> str:
        magnitude = self.mean_magnitude.reshape(len(self.names), -1)
        outputs = self.output_names or ("mean size",)
        width = max(map(len, (*self.names, "column")))
        widths = [max(9, len(name)) for name in outputs]
        heading = "".join(f"  {o:>{w}}" for o, w in zip(outputs, widths, strict=True))
        lines = [f"{'column':<{width}}{heading}"]
        for j in self.order:
            cells = "".join(
                f"  {size:>{w}.3f}" for size, w in zip(magnitude[j], widths, strict=True)
            )
            lines.append(f"{self.names[j]:<{width}}{cells}")
        return "\n".join(lines)


def shapley_values(
    model: Any,
    X: Any,
    *,
    output: str = "auto",
    n_subsets: int = 4096,
    random_state: Any = None,
) -> ShapleyValues:
    r"""Return how much each cell contributes to the prediction of its row.

    The value of a set :math:`S` of columns is what the model answers if it sees these
    columns only, all others integrated out: for classes,

    .. math:: v(S) = p(c \mid x_S), \qquad
              \phi_j = \sum_{S \not\ni j} \frac{v(S \cup j) - v(S)}{d \binom{d-1}{|S|}}.

    These are conditional Shapley values: :math:`p(c \mid x_S)` is the expected
    probability of the class given :math:`x_S`, by the model's own density, so that no
    impossible rows are made up and no background rows are needed. (Networks and
    calibrated models answer from what is left after marginalisation; the values are those
    of that answer.)
    Hiding a cell that is missing changes nothing: its value is 0, and the subsets are
    those of the cells that a row has.

    Parameters
    ----------
    model : estimator
        A fitted classifier, regressor, density or outlier detector of hybridmix that
        takes missing values.
    X : array-like or data frame of shape (n, d)
        Rows to explain; missing values are allowed.
    output : {"auto", "log_odds", "typicality"}, default="auto"
        What is explained. "auto" is the probability of each class, the mean of each
        target, or what ``score_samples`` returns: the log density of the row, or, for a
        detector, its typicality. "log_odds" is
        :math:`\log p(c \mid x_S) - \log (1 - p(c \mid x_S))` of each class. "typicality"
        shows which cells make a row unusual, whatever the model predicts.
    n_subsets : int, default=4096
        Subsets to ask about per row. If there are at most this many (4096 is a dozen
        cells), the values are exact. Otherwise, they are estimated by least squares from
        at most this many (or about six per column), with standard errors: all
        small and all large subsets as far as this goes, and random pairs of others.
    random_state : int, RandomState or None, default=None
        Seed of these pairs. They are the same for all rows with equally many cells, so
        that values of a row do not depend on the other rows.

    Returns
    -------
    found : ShapleyValues
        Prints as a table of mean sizes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hybridmix import HybridMixtureClassifier
    >>> from hybridmix.inspection import shapley_values
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = HybridMixtureClassifier(effort="fast").fit(X, y)
    >>> found = shapley_values(model, X[:10])
    >>> found.values.shape, found.names[found.order[0]]
    ((10, 4, 3), 'petal length (cm)')
    """
    ask, output_names = _question(model, output)
    check_number("n_subsets", n_subsets, 2, whole=True)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    X = X if as_frame(X) is not None else np.asarray(X)
    observed = _observed(model._encode(X))
    nothing = punch_holes(_safe_indexing(X, [0]), np.ones_like(observed[:1]))
    base, predictions = np.repeat(ask(nothing), len(observed), axis=0), ask(X)
    values = np.zeros((*observed.shape, base.shape[1]))
    errors = np.zeros_like(values)
    n_done = 0
    for rows, columns in _equal_patterns(observed):
        coalitions = choose_coalitions(len(columns), int(n_subsets), seed)
        n_together = max(1, _MOST_ANSWERS // (len(coalitions.shown) * base.shape[1]))
        for first in range(0, len(rows), n_together):
            part = rows[first : first + n_together]
            answers = _answers(ask, _safe_indexing(X, part), columns, coalitions)
            found, own_errors = coalitions.attributions(answers)
            values[np.ix_(part, columns)] = found.swapaxes(0, 1)
            errors[np.ix_(part, columns)] = own_errors.swapaxes(0, 1)
            n_done += len(part)
            announce("Shapley values", n_done, len(observed))
    names = tuple(map(str, model.schema_.names or range(observed.shape[1])))
    arrays = [values, base, predictions, errors]
    if output_names is None:
        arrays = [array[..., 0] for array in arrays]
    return ShapleyValues(names, output_names, *arrays)


def _question(model: Any, output: str) -> tuple[_Ask, tuple[str, ...] | None]:
    """Return what to ask the model, and the names of the outputs, if they are several."""
    if not isinstance(model, FittedMixture):
        raise TypeError(
            "Only a mixture of hybridmix can integrate cells out; a "
            f"{type(model).__name__} cannot."
        )
    if output not in ("auto", "log_odds", "typicality"):
        raise ValueError(
            f"output={output!r} is not valid: it must be 'auto', 'log_odds' or "
            "'typicality'."
        )
    if output == "typicality":
        return lambda X: model.typicality(X)[:, None], None
    if isinstance(model, MixtureClassifier):
        classes = tuple(map(str, model.classes_.tolist()))
        if output == "auto":
            return model.predict_proba, classes
        if len(classes) == 1:
            raise ValueError("Log odds need two classes; the model has one.")
        return lambda X: _log_odds(model.predict_log_proba(X)), classes
    if output == "log_odds":
        raise ValueError(
            f"Log odds are those of classes, and a {type(model).__name__} has none: "
            "leave output='auto'."
        )
    if isinstance(model, FittedRegressor):
        targets = tuple(map(str, range(model.n_outputs_)))
        several = None if model.target_ndim_ == 1 else targets
        return lambda X: model.predict(X).reshape(-1, len(targets)), several
    return lambda X: model.score_samples(X)[:, None], None


def _log_odds(log_probabilities: FloatArray) -> FloatArray:
    """Return the log odds (n, C) of classes, from logarithms that do not round to 0."""
    n_classes = log_probabilities.shape[1]
    others = [
        np.logaddexp.reduce(np.delete(log_probabilities, c, axis=1), axis=1)
        for c in range(n_classes)
    ]
    return log_probabilities - np.column_stack(others)


def _observed(table: Table) -> BoolArray:
    """Return which cells of a table the model sees, (n, d)."""
    schema = table.schema
    observed = np.zeros((table.n_rows, schema.n_columns), dtype=bool)
    observed[:, list(schema.real)] = ~np.isnan(table.real)
    observed[:, list(schema.categorical)] = table.codes >= 0
    return observed


def _equal_patterns(observed: BoolArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the rows that have the same cells, and the columns of these."""
    _, first, group = np.unique(observed, axis=0, return_index=True, return_inverse=True)
    for number, row in enumerate(first):
        yield np.flatnonzero(group.ravel() == number), np.flatnonzero(observed[row])


def _answers(ask: _Ask, X: Any, columns: IntArray, coalitions: Coalitions) -> FloatArray:
    """Ask about all subsets of some columns in each row, (m, n, outputs).

    Rows with the same holes follow each other, since models share work among them.
    """
    n_rows, n_columns = np.shape(X)
    holes = np.ones((len(coalitions.shown), n_columns), dtype=bool)
    holes[:, columns] = ~coalitions.shown
    n_together = max(1, _ROWS_PER_CALL // n_rows)
    answers = []
    for first in range(0, len(holes), n_together):
        part = holes[first : first + n_together]
        table = _safe_indexing(X, np.tile(np.arange(n_rows), len(part)))
        found = ask(punch_holes(table, np.repeat(part, n_rows, axis=0)))
        answers.append(found.reshape(len(part), n_rows, -1))
    return np.concatenate(answers)
