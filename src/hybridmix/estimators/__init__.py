"""Estimators with the interface of scikit-learn."""

from hybridmix.estimators.classifier import HybridMixtureClassifier
from hybridmix.estimators.density import MixtureDensity
from hybridmix.estimators.embedding import MixtureEmbedding
from hybridmix.estimators.hmm_classifier import HybridHMMClassifier
from hybridmix.estimators.hmm_density import HMMDensity
from hybridmix.estimators.imputer import MixtureImputer
from hybridmix.estimators.latent_med import LatentMEDClassifier
from hybridmix.estimators.med_classifier import MEDClassifier
from hybridmix.estimators.med_outlier import MEDOutlierDetector
from hybridmix.estimators.med_regressor import MEDRegressor
from hybridmix.estimators.med_selector import MEDFeatureSelector
from hybridmix.estimators.med_tasks import (
    MEDMultiTaskClassifier,
    MEDMultiTaskRegressor,
)
from hybridmix.estimators.network import MixtureNetworkClassifier
from hybridmix.estimators.network_regressor import MixtureNetworkRegressor
from hybridmix.estimators.outlier import MixtureOutlierDetector
from hybridmix.estimators.regressor import MixtureRegressor
from hybridmix.estimators.search import HybridMixtureClassifierCV

__all__ = [
    "HMMDensity",
    "HybridHMMClassifier",
    "HybridMixtureClassifier",
    "HybridMixtureClassifierCV",
    "LatentMEDClassifier",
    "MEDClassifier",
    "MEDFeatureSelector",
    "MEDMultiTaskClassifier",
    "MEDMultiTaskRegressor",
    "MEDOutlierDetector",
    "MEDRegressor",
    "MixtureDensity",
    "MixtureEmbedding",
    "MixtureImputer",
    "MixtureNetworkClassifier",
    "MixtureNetworkRegressor",
    "MixtureOutlierDetector",
    "MixtureRegressor",
]
