"""Training on labelled rows, with a search for what the options leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hybridmix._parallel import workers
from hybridmix.data import Dataset
from hybridmix.estimators.labelled import LabelledRows, given_parts
from hybridmix.models.mixture import Mixture
from hybridmix.progress import printing
from hybridmix.training.affordable import ENOUGH_ROWS
from hybridmix.training.classifier import fit_classifier
from hybridmix.training.committee import CommitteeOptions, fit_committee
from hybridmix.training.plan import Automatic
from hybridmix.training.record import Fitted
from hybridmix.training.run import ClassifierOptions
from hybridmix.training.trials import Part

if TYPE_CHECKING:
    from hybridmix.estimators.classifier import HybridMixtureClassifier
    from hybridmix.estimators.network import MixtureNetworkClassifier


def trained(
    estimator: HybridMixtureClassifier | MixtureNetworkClassifier,
    rows: LabelledRows,
    options: ClassifierOptions,
    automatic: Automatic,
    groups: Any,
    start: str | Mixture,
    validation: Dataset | None = None,
) -> Fitted:
    """Train a classifier: a committee, if anything is chosen, or one model.

    Parameters
    ----------
    estimator : HybridMixtureClassifier or MixtureNetworkClassifier
        What is fitted; its options have been checked.
    rows : LabelledRows
        All rows.
    options : ClassifierOptions
        Its options, for these rows.
    automatic : Automatic
        Which of them are chosen.
    groups : array-like of shape (n,) or None
        Groups of rows that folds keep together.
    start : str or Mixture
        Where EM begins, if nothing is chosen.
    validation : Dataset or None, default=None
        Rows that the user has given to validate by.
    """
    schema, names = rows.schema, rows.names
    generator = np.random.default_rng(estimator._seed())
    with workers(estimator.n_jobs) as pool, printing(estimator.verbose):
        if not automatic:
            return fit_classifier(
                options, rows.dataset, validation, schema, start, generator, pool, names
            )
        return fit_committee(
            CommitteeOptions(options, automatic, estimator.effort, estimator.init),
            rows.dataset,
            _parts(estimator.cv, rows, validation, groups),
            schema,
            generator,
            pool,
            names,
        )


def _parts(
    cv: Any, rows: LabelledRows, validation: Dataset | None, groups: Any
) -> list[Part] | None:
    """Return the rows that a choice is made by, as far as the user has given them."""
    if validation is not None:
        return [(rows.dataset.in_memory(ENOUGH_ROWS), validation)]
    if cv is None and groups is None:
        return None
    return given_parts(cv, groups, rows)
