"""Whether rows still come from where the rows of training came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.data import Table
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.estimators.base import FittedMixture

# Rows that are drawn from a model to compare with: enough that they hardly add to the
# chance in a few thousand rows.
_FEWEST_DRAWN, _MOST_DRAWN = 10_000, 100_000
_RARE = 0.01


@dataclass(frozen=True)
class DriftScore:
    """What `drift_score` finds.

    Attributes
    ----------
    statistic : float
        Largest difference between the distribution functions of the typicalities of the
        rows and of the reference, from 0 to 1 (Kolmogorov and Smirnov).
    p_value : float
        Probability of a statistic at least as large if nothing has drifted.
    rare_share : float
        Share of the rows that are less typical than all but a hundredth of the
        reference: more than 0.01 if rows have moved to where none were.
    n_rows : int
        Number of rows.
    """

    statistic: float
    p_value: float
    rare_share: float
    n_rows: int


def drift_score(
    model: FittedMixture, X: Any, reference: Any = None, random_state: Any = None
) -> DriftScore:
    r"""Test whether rows come from the density of a model.

    Every row has a typicality, the probability that the model produces a row of no higher
    density over the columns that the row has. If nothing has drifted, the typicalities of
    a batch are distributed like those of other rows of the same source. A test of
    Kolmogorov and Smirnov compares the two distributions; its p-values are then uniform
    between 0 and 1.

    Parameters
    ----------
    model : estimator
        A fitted mixture model of tables.
    X : array-like or data frame of shape (n, d)
        The rows to test, preferably a few hundred or more.
    reference : array-like or data frame of shape (m, d), default=None
        Rows from before the drift that training has not seen. None draws rows from the
        model, with the holes of ``X``: this also finds that the model does not fit, as no
        model of real rows does exactly, if there are enough of them.
    random_state : int, RandomState or None, default=None
        Seed of the rows that are drawn; None uses that of the model.

    Returns
    -------
    score : DriftScore
        The statistic and its p-value.

    Notes
    -----
    Rows that change places between regions of the same density do not change their
    typicality. Follow ``predict_proba`` to notice this.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import MixtureDensity
    >>> from hybridmix.metrics import drift_score
    >>> rng = np.random.default_rng(0)
    >>> density = MixtureDensity(1, random_state=0).fit(rng.normal(size=(5000, 2)))
    >>> drift_score(density, rng.normal(size=(500, 2))).p_value > 0.01
    True
    >>> drift_score(density, rng.normal(size=(500, 2)) + 0.5).p_value < 1e-4
    True
    """
    from scipy.stats import ks_2samp

    if not isinstance(model, FittedMixture):
        raise TypeError(
            f"A {type(model).__name__} has no density of rows: drift_score takes mixture "
            "models of tables, such as a MixtureDensity."
        )
    table = model._encode(X)
    found = model._typicality(table)
    if reference is None:
        generator = np.random.default_rng(model._seed(random_state))
        expected = model._typicality(_drawn(model, table, generator))
    else:
        expected = model._typicality(model._encode(reference))
    test = ks_2samp(found, expected, method="asymp")
    level = np.quantile(expected, _RARE)
    return DriftScore(
        float(test.statistic),
        float(test.pvalue),
        float(np.mean(found < level)),
        len(found),
    )


def _drawn(model: FittedMixture, table: Table, generator: np.random.Generator) -> Rows:
    """Draw rows from a model, with the holes of rows of a table."""
    n_rows = int(np.clip(table.n_rows, _FEWEST_DRAWN, _MOST_DRAWN))
    rows, _ = model.model_.sample(n_rows, generator)
    rows = model.schema_.without_spikes(rows[generator.permutation(n_rows)])
    like = generator.integers(table.n_rows, size=n_rows)
    known = ~np.isnan(table.real[like]).T
    return _hidden(rows, known, _known_codes(table, like, known))


def _known_codes(table: Table, index: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return which codes (f, n) rows have: categories, and spikes of known values."""
    categories = table.codes[index].T != MISSING_CODE
    return np.vstack([categories, known[list(table.schema.shaping.spiked)]])


def _hidden(rows: Rows, known: np.ndarray, known_codes: np.ndarray) -> Rows:
    """Return rows without the values and codes that are not known."""
    observed = known if rows.observed is None else known & rows.observed
    real: FloatArray = np.where(observed, rows.real, 0.0)
    codes = np.where(known_codes, rows.codes, MISSING_CODE)
    return Rows(real, observed, codes)[:]
