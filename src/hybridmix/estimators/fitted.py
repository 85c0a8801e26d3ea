"""What all fitted models of rows and of sequences share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import is_learned
from hybridmix._require import require, require_instance
from hybridmix.data import Schema
from hybridmix.data.fingerprint import Fingerprint


class FittedModel(BaseEstimator):
    """Base of the estimators that have a schema and a model of its columns.

    Attributes
    ----------
    schema_ : Schema
        What training learned about the columns.
    fingerprint_ : Fingerprint
        Which rows were in training.
    """

    n_jobs: int | None
    random_state: Any
    schema_: Schema
    fingerprint_: Fingerprint
    # What the estimator does, to follow its name in a sentence, as reports have it.
    purpose: ClassVar[str]
    # The class of model_.
    model_type: ClassVar[type]
    # What a fitted estimator has in any case, for files and checks.
    fitted_attributes: ClassVar[tuple[str, ...]] = ("schema_", "model_", "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _publish(self, attributes: dict[str, Any]) -> None:
        """Replace everything that an earlier fit has learned, in one statement."""
        kept = {k: v for k, v in vars(self).items() if not is_learned(k)}
        self.__dict__ = {**kept, **attributes}

    def check_consistent(self) -> None:
        """Raise ValueError unless the fitted attributes fit together."""
        check_is_fitted(self, list(self.fitted_attributes))
        schema = self.schema_
        require_instance("schema_", schema, Schema)
        require(schema.n_columns == self.n_features_in_, "n_features_in_ is wrong")
        names = tuple(getattr(self, "feature_names_in_", schema.names or ()))
        require(schema.names in (None, names), "feature_names_in_ is wrong")
        self._check_model("model_", vars(self)["model_"])

    def _check_model(self, name: str, model: Any) -> None:
        """Raise ValueError unless a model is one of the columns and of the classes."""
        require_instance(name, model, self.model_type)
        n_classes = len(getattr(self, "classes_", [0]))
        require(model.n_classes == n_classes, f"{name} has other classes than classes_")
        layout = model.family.layout()
        wanted = (len(self.schema_.real), self.schema_.code_sizes)
        require(layout in (None, wanted), f"{name} has other columns than schema_")

    def _seed(self, random_state: Any = None) -> int:
        """Draw a seed from the given random state, or from the estimator's own."""
        state = self.random_state if random_state is None else random_state
        return int(check_random_state(state).randint(np.iinfo(np.int32).max))
