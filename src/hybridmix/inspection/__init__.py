"""How models predict when columns or cells are hidden from them."""

from hybridmix.inspection.curves import MissingFeatureCurve, missing_feature_curve
from hybridmix.inspection.importance import (
    FeatureImportance,
    TargetImportance,
    feature_importance,
)
from hybridmix.inspection.shapley import ShapleyValues, shapley_values

__all__ = [
    "FeatureImportance",
    "MissingFeatureCurve",
    "ShapleyValues",
    "TargetImportance",
    "feature_importance",
    "missing_feature_curve",
    "shapley_values",
]
