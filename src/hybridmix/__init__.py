"""hybridmix: generative models trained to discriminate.

Mixture models of real, categorical and mixed tables that classify, estimate densities,
predict, fill holes and find outliers, with missing values marginalised exactly.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hybridmix._versions import show_versions
    from hybridmix.data.scanning import scan
    from hybridmix.data.sequences import Sequences
    from hybridmix.estimators import (
        HMMDensity,
        HybridHMMClassifier,
        HybridMixtureClassifier,
        HybridMixtureClassifierCV,
        LatentMEDClassifier,
        MEDClassifier,
        MEDFeatureSelector,
        MEDMultiTaskClassifier,
        MEDMultiTaskRegressor,
        MEDOutlierDetector,
        MEDRegressor,
        MixtureDensity,
        MixtureEmbedding,
        MixtureImputer,
        MixtureNetworkClassifier,
        MixtureNetworkRegressor,
        MixtureOutlierDetector,
        MixtureRegressor,
    )
    from hybridmix.explorer import explore
    from hybridmix.io import load, save
    from hybridmix.reporting import report

__version__ = "0.2.0.dev0"

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
    "Sequences",
    "__version__",
    "explore",
    "load",
    "report",
    "save",
    "scan",
    "show_versions",
]

_HOMES = {
    "Sequences": "data.sequences",
    "explore": "explorer",
    "load": "io",
    "report": "reporting",
    "save": "io",
    "scan": "data.scanning",
    "show_versions": "_versions",
}


def __getattr__(name: str) -> "Any":
    """Import what is asked for when it is asked for.

    The command line begins by importing this package. Were scikit-learn imported with it,
    Ctrl-C in the first seconds would end in a traceback that nothing could catch.
    """
    from importlib import import_module
    from importlib.util import find_spec

    if name in __all__:
        home = import_module(f"hybridmix.{_HOMES.get(name, 'estimators')}")
        value = globals()[name] = getattr(home, name)
        return value
    if not name.startswith("_") and find_spec(f"hybridmix.{name}") is not None:
        return import_module(f"hybridmix.{name}")
    raise AttributeError(f"module 'hybridmix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
