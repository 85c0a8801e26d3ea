"""What a network looks like, and how it is trained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hybridmix._checks import check_number, check_word
from hybridmix._typing import FloatArray
from hybridmix.data import Schema, TrainingRows
from hybridmix.models.embedding import EXPERTS, KINDS, LINEAR, POSTERIOR, Embedding
from hybridmix.models.mixture import Mixture
from hybridmix.training.families import subspace_of

MIXTURES = ("classes", "pool", "linked")
TRAININGS = ("stages", "joint", "alternating")
ANNIHILATIONS = ("weights", "bic")
# Posteriors are tempered so that they are about as sure as those of this many columns.
_FEW_COLUMNS = 5.0
# With more labelled rows than this, both layers are trained together.
_FEW_ROWS = 1_000
# With more real columns than this, correlations are those of a subspace.
_WIDE = 60
# Most components of a class that a user has not asked for.
_MOST_COMPONENTS = 30


@dataclass(frozen=True)
class NetworkOptions:
    """The options of a network; checked when made.

    The attributes are those of `MixtureNetworkClassifier`; nothing is "auto" but the
    temperature. A search may choose another training if `chooses_training`.
    """

    mixtures: str
    features: tuple[str, ...]
    temperature: float | str
    training: str
    l1: float
    l2: float
    l2_linear: float
    link: float
    annihilate: str | None
    chooses_training: bool = False

    def __post_init__(self) -> None:
        check_word("mixtures", self.mixtures, MIXTURES)
        check_word("training", self.training, TRAININGS)
        check_number("temperature", self.temperature, 1e-3, 1e6, or_word="auto")
        for name in ("l1", "l2", "l2_linear", "link"):
            check_number(name, getattr(self, name), 0.0, 1e12)
        if self.annihilate is not None:
            check_word("annihilate", self.annihilate, ANNIHILATIONS, " None keeps all.")
        self._check_alternating()

    def _check_alternating(self) -> None:
        """Refuse options that only the alternating training has, without it."""
        if self.training == "alternating" and self.mixtures != "linked":
            raise ValueError(
                f"training='alternating' needs mixtures='linked', not {self.mixtures!r}: "
                "every class must have a mixture of its own."
            )
        reads_weights = bool(self.link) or self.annihilate == "weights"
        if reads_weights and POSTERIOR not in self.features:
            raise ValueError(
                "link and annihilate='weights' look at the weights of posteriors: add "
                f"'posterior' to features={self.features!r}."
            )
        if self.training != "alternating" and self.link:
            raise ValueError(
                f"link={self.link!r} is the weight of a prior of training='alternating': "
                f"training={self.training!r} has no use for it."
            )
        if (self.annihilate == "weights") and self.training != "alternating":
            raise ValueError(
                "annihilate='weights' needs training='alternating': use annihilate='bic'."
            )

    def chosen_temperature(self, mixture: Mixture, schema: Schema) -> float:
        """Return the temperature of the posteriors."""
        if not isinstance(self.temperature, str):
            return float(self.temperature)
        return usual_temperature(mixture, schema)

    def penalties(
        self, embedding: Embedding, weight: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return absolute and squared penalties (F,) of the weights of features.

        They are multiplied by what the log probability of a label counts.
        """
        sizes = embedding.sizes()
        by_kind = {
            kind: self.l2_linear if kind in (LINEAR, EXPERTS) else self.l2
            for kind in KINDS
        }
        squared = [np.full(size, by_kind[kind]) for kind, size in sizes.items()]
        l2 = weight * np.concatenate(squared).astype(np.float64)
        return np.full(len(l2), weight * float(self.l1)), l2


def usual_temperature(mixture: Mixture, schema: Schema) -> float:
    r"""Return :math:`\max(1, d / 5)` for a mixture of :math:`d` columns.

    Log densities grow with the number of columns, and posteriors become indicators. In a
    subspace it is the factors that count: the rest is noise that components share.
    """
    subspace = subspace_of(mixture)
    n_real = len(schema.real) if subspace is None else subspace.n_factors
    return max(1.0, (n_real + len(schema.categorical)) / _FEW_COLUMNS)


def checked_features(features: object) -> tuple[str, ...]:
    """Return kinds of features in their order; refuse unknown ones."""
    listed: list[object] = [features]
    if isinstance(features, Iterable) and not isinstance(features, str):
        listed = list(features)
    unknown = [kind for kind in listed if kind not in KINDS]
    if unknown or not listed:
        raise ValueError(
            f"features={features!r} must be one or several of {', '.join(KINDS)}."
        )
    return tuple(kind for kind in KINDS if kind in listed)


def usual_training(n_labelled: int) -> str:
    """Return how a network is trained unless the user says so."""
    return "stages" if n_labelled <= _FEW_ROWS else "joint"


def usual_covariances(schema: Schema) -> str:
    """Return the type of covariances that suits several components of some columns."""
    return "subspace" if len(schema.real) > _WIDE else "full"


def usual_numbers(
    dataset: TrainingRows, schema: Schema, n_classes: int
) -> list[list[int]]:
    """Return how many components suit the labelled rows of each class.

    One component takes 20 rows, and two more for each column.
    """
    counts = dataset.label_counts(n_classes)
    n_columns = len(schema.real) + len(schema.categorical)
    numbers = np.clip(counts // (20 + 2 * n_columns), 1, _MOST_COMPONENTS)
    return [[number] for number in numbers.tolist()]
