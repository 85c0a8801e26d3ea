"""Pictures of fitted models, as display objects in the manner of scikit-learn."""

from hybridmix.plots.densities import ClassDensitiesDisplay
from hybridmix.plots.edges import TreeEdgesDisplay
from hybridmix.plots.inclusion import InclusionDisplay
from hybridmix.plots.marginals import Variable
from hybridmix.plots.margins import MarginsDisplay
from hybridmix.plots.missing import MissingFeatureDisplay
from hybridmix.plots.outliers import OutlierScoresDisplay
from hybridmix.plots.pairwise import PairwiseMarginalsDisplay
from hybridmix.plots.predictions import (
    DependenceDisplay,
    PredictionIntervalsDisplay,
    QuantileCalibrationDisplay,
)
from hybridmix.plots.regions import DecisionRegionsDisplay
from hybridmix.plots.reliability import ReliabilityDisplay
from hybridmix.plots.states import StateDisplay, TransitionDisplay
from hybridmix.plots.tradeoff import TradeoffPathDisplay
from hybridmix.plots.training import TrainingDisplay

__all__ = [
    "ClassDensitiesDisplay",
    "DecisionRegionsDisplay",
    "DependenceDisplay",
    "InclusionDisplay",
    "MarginsDisplay",
    "MissingFeatureDisplay",
    "OutlierScoresDisplay",
    "PairwiseMarginalsDisplay",
    "PredictionIntervalsDisplay",
    "QuantileCalibrationDisplay",
    "ReliabilityDisplay",
    "StateDisplay",
    "TradeoffPathDisplay",
    "TrainingDisplay",
    "TransitionDisplay",
    "TreeEdgesDisplay",
    "Variable",
]
