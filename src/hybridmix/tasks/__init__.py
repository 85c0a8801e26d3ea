"""What models are for: how they are scored, validated and compared, by task.

Reports and the command line ask `task_of` what to do with a model. `Classify` is for
classifiers, `Regress` for regressors, and `Describe` for densities, imputers and outlier
detectors; those of sequences have tasks of their own. Another kind of target is one more
`Task` in `task_of`.
"""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags

from hybridmix.estimators.chain_fitted import FittedChainsEstimator
from hybridmix.tasks.base import Cases, Metric, Task
from hybridmix.tasks.classify import Classify
from hybridmix.tasks.describe import Describe
from hybridmix.tasks.provenance import Provenance, looked_up
from hybridmix.tasks.regress import Regress
from hybridmix.tasks.sequences import ClassifySequences, DescribeSequences

__all__ = [
    "Cases",
    "Classify",
    "ClassifySequences",
    "Describe",
    "DescribeSequences",
    "Metric",
    "Provenance",
    "Regress",
    "Task",
    "looked_up",
    "task_of",
]

_TASKS: dict[str | None, type[Task]] = {"classifier": Classify, "regressor": Regress}


def task_of(model: Any) -> Task:
    """Return the task of a model, fitted or not."""
    # scikit-learn's tags are what pipelines and searches go by as well.
    kind = get_tags(model).estimator_type
    if isinstance(model, FittedChainsEstimator):
        return ClassifySequences() if kind == "classifier" else DescribeSequences()
    return _TASKS.get(kind, Describe)()
