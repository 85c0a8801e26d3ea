"""A classifier that learns from a stream of labelled and unlabelled rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridmix._parallel import Workers
from hybridmix.data import Schema, encode_labels, number_labels
from hybridmix.estimators.chosen import is_auto
from hybridmix.estimators.labelled import check_labels_given, class_names, class_weighted
from hybridmix.estimators.options import warn_of
from hybridmix.models.mixture import Mixture
from hybridmix.training.streams import Batch, begin_classes

if TYPE_CHECKING:
    from hybridmix.estimators.classifier import HybridMixtureClassifier


def can_stream(classifier: HybridMixtureClassifier) -> bool:
    """Return whether the options are those of online EM, and say why not otherwise.

    `sklearn.utils.metaestimators.available_if` asks this.
    """
    if classifier.objective != "likelihood":
        raise AttributeError(
            "partial_fit trains by online EM, which maximises the likelihood: use "
            f"objective='likelihood' instead of {classifier.objective!r}."
        )
    if not is_auto(classifier.calibrate) and classifier.calibrate:
        raise AttributeError(
            "calibrate=True needs held-out rows, and partial_fit keeps none: use "
            "calibrate='auto' or False."
        )
    if isinstance(classifier.class_weight, str):
        raise AttributeError(
            f"class_weight={classifier.class_weight!r} needs all rows at once: give "
            "partial_fit a dictionary of weights, or class_prior='uniform'."
        )
    return True


def learned_labels(
    classifier: HybridMixtureClassifier,
    X: Any,
    y: Any,
    classes: Any,
    sample_weight: Any,
    schema: Schema | None,
) -> dict[str, Any]:
    """Learn from a batch, as in `partial_fit`; return what to publish."""
    classifier._check_batch(X)
    check_labels_given(classifier, y)
    known = _known_classes(classifier, classes)
    labels = number_labels(y, known, classifier.unlabelled)
    weights = class_weighted(classifier.class_weight, known, labels, sample_weight)
    read = classifier._read_batch(X, weights, schema, labels)
    batch = Batch(read.table, labels, read.weights)
    options = replace(classifier._options_for(known), calibrate=False)

    def begin(generator: np.random.Generator, pool: Workers) -> Mixture:
        init = classifier.init
        if not isinstance(init, str):
            init = classifier._translated(init, read.table.schema, known)
        weight = options.unlabelled_weight
        model, messages = begin_classes(
            # A first batch is no reason to hold out rows.
            replace(options, unlabelled_weight=1.0 if weight == "auto" else weight),
            batch.dataset(),
            read.table.schema,
            init,
            generator,
            pool,
            class_names(known),
        )
        warn_of(messages)
        return model

    streamed = classifier._learned(
        read.table.schema,
        batch,
        begin,
        options.unlabelled_weight,
        options.learns_class_prior,
    )
    found = classifier._stream_attributes(streamed)
    return {
        **read.attributes,
        **classifier._derived_attributes(streamed.model, read.table.schema),
        **found,
        "schema_": read.table.schema,
        "model_": streamed.model,
        "classes_": known,
        "component_classes_": streamed.model.class_of,
        "bic_": [],
        "history_": {"value": found["trace_"]},
        "unlabelled_weight_": streamed.unlabelled_weight,
        "temperature_": 1.0,
        "uniform_share_": 0.0,
    }


def _known_classes(classifier: HybridMixtureClassifier, classes: Any) -> np.ndarray:
    """Return the classes of all batches, which the first call has to name."""
    if classifier._begins_stream:
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return encode_labels(classes, None)[0]
    if classes is not None and not np.array_equal(
        np.unique(classes), classifier.classes_
    ):
        raise ValueError(
            f"classes={classes!r} are not those of the calls before: "
            f"{classifier.classes_.tolist()}."
        )
    return classifier.classes_
