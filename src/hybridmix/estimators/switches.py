"""The options that estimators with switches share, and how they read targets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from hybridmix._checks import check_flag, check_number, check_verbosity
from hybridmix._require import require, require_array, require_instance
from hybridmix._typing import FloatArray, IntArray
from hybridmix.data import encode_labels
from hybridmix.data.frames import as_frame
from hybridmix.data.matrices import read_matrix, read_training_matrix
from hybridmix.data.weights import read_weights
from hybridmix.estimators.machines import FittedMachine, training_attributes
from hybridmix.med.machines import LinearMachine
from hybridmix.training.machines import Matrix
from hybridmix.training.switches import SwitchMachine, SwitchOptions


@dataclass(eq=False, repr=False)
class SwitchEstimator(FittedMachine):
    """Base of the estimators that train linear functions with switches.

    The options are documented in `MEDFeatureSelector`.
    """

    _: KW_ONLY
    inclusion: float = 1e-3
    C: float | str = "auto"
    margin: float = 30.0
    smoothness: float = 1.0
    epsilon: float = 0.1
    standardise: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    verbose: int = 0

    _remedy: ClassVar[str] = (
        "Switches need complete rows: fill the holes with a MixtureImputer in a pipeline."
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    # Options --------------------------------------------------------------------------

    def _check_options(self) -> None:
        """Refuse options that make no sense, as far as that shows without rows."""
        check_number("inclusion", self.inclusion, 1e-300, 1.0)
        check_number("C", self.C, 1e-12, 1e12, or_word="auto")
        check_number("margin", self.margin, 1e-12, 1e12)
        check_number("smoothness", self.smoothness, 0.0, 1e12)
        check_number("epsilon", self.epsilon, 0.0, 1e12)
        check_flag("standardise", self.standardise)
        check_number("tol", self.tol, 1e-12, 1.0)
        check_number("max_iter", self.max_iter, 0, whole=True)
        check_verbosity(self.verbose)

    def _switch_options(self, shared: bool) -> SwitchOptions:
        return SwitchOptions(
            float(self.inclusion),
            None if isinstance(self.C, str) else float(self.C),
            float(self.margin),
            float(self.smoothness),
            float(self.epsilon),
            bool(self.standardise),
            shared,
            float(self.tol),
            int(self.max_iter),
        )

    # Reading --------------------------------------------------------------------------

    def _read_training(self, X: Any) -> tuple[Matrix, dict[str, Any]]:
        return read_training_matrix(self, X, True, self._remedy)

    def _read(self, X: Any) -> Matrix:
        """Read rows to predict."""
        check_is_fitted(self, "machine_")
        return read_matrix(self, X, True, self._remedy)

    # What is published ------------------------------------------------------------------

    def _found(self, found: SwitchMachine) -> dict[str, Any]:
        """Return the attributes of a trained machine."""
        trained = found.trained
        machine = trained.machine
        assert isinstance(machine, LinearMachine)
        # Without switches, every column is included.
        inclusion = trained.inclusion
        if inclusion is None:
            inclusion = np.ones_like(found.scores)
        return {
            **training_attributes(trained),
            "coef_": machine.coef,
            "intercept_": machine.bias,
            "inclusion_": inclusion,
            "scores_": found.scores,
        }

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        check_is_fitted(self, "machine_")
        self._check_options()
        require_instance("machine_", self.machine_, LinearMachine)
        self.machine_.check_consistent()
        require(np.isfinite(self.dual_gap_), "dual_gap_ is not finite")
        coef, bias = self.machine_.coef, self.machine_.bias
        require(coef.shape[1] == self.n_features_in_, "machine_ has other columns")
        require(np.array_equal(self.coef_, coef), "coef_ is not that of machine_")
        require(np.array_equal(self.intercept_, bias), "intercept_ is wrong")
        shape = self.scores_.shape
        require(shape in (coef.shape, coef.shape[1:]), "scores_ has other columns")
        require_array("scores_", self.scores_, shape)
        require_array("inclusion_", self.inclusion_, shape)


def read_row_weights(sample_weight: Any, n_rows: int) -> FloatArray:
    """Return sample weights, all of them 1 if there are none."""
    weights = read_weights(sample_weight, n_rows)
    return np.ones(n_rows) if weights is None else weights


def read_real_targets(y: Any, n_rows: int) -> FloatArray:
    """Return complete real targets of all rows."""
    as_frame(y, "y")  # refuses lazy tables
    targets = check_array(
        column_or_1d(y, warn=True),
        ensure_2d=False,
        dtype=np.float64,
        input_name="y",
    )
    check_consistent_length(np.empty(n_rows), targets)
    return targets


def read_all_labels(y: Any, n_rows: int) -> tuple[np.ndarray, IntArray]:
    """Return classes and class numbers; refuse rows without a label."""
    classes, labels = encode_labels(y, None)
    check_consistent_length(np.empty(n_rows), labels)
    if np.any(labels < 0):
        raise ValueError(
            f"Input y contains NaN: row {int(np.argmin(labels))} has no label. Leave "
            "such rows out."
        )
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}: rows of at least two "
            "classes are needed."
        )
    return classes, labels
