"""Pictures of fitted models, as display objects in the manner of scikit-learn."""

from hybridmix.plots.reliability import ReliabilityDisplay
from hybridmix.plots.training import TrainingDisplay

__all__ = ["ReliabilityDisplay", "TrainingDisplay"]
