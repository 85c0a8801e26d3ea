"""hybridmix: generative models trained to discriminate.

Mixture models of real, categorical and mixed tables that classify, estimate densities,
fill holes and find outliers, with missing values marginalised exactly.
"""

from hybridmix.estimators import (
    HybridMixtureClassifier,
    HybridMixtureClassifierCV,
    MixtureDensity,
    MixtureImputer,
    MixtureOutlierDetector,
)
from hybridmix.io import load, save
from hybridmix.reporting import report

__version__ = "0.1.0"

__all__ = [
    "HybridMixtureClassifier",
    "HybridMixtureClassifierCV",
    "MixtureDensity",
    "MixtureImputer",
    "MixtureOutlierDetector",
    "__version__",
    "load",
    "report",
    "save",
]
