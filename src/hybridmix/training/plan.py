"""Which structures and tradeoffs suit a table of some size: what a search tries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hybridmix.data import Schema, TrainingRows
from hybridmix.training.budget import Budget
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.run import ClassifierOptions

# With more real columns than this, correlations are those of a subspace.
_WIDE = 60
# Every row with holes has a system of the size of the subspace for each component: there
# are no more factors than this, and each should have this many labelled rows.
_FACTORS_WITH_HOLES, _FEWEST_FACTORS, _ROWS_PER_FACTOR = 24, 4, 8
# With more labelled rows than this, such systems for several components take too long.
_MANY_ROWS = 500
# A component should have this many labelled rows of its class; many components more.
_ROWS_PER_COMPONENT, _ROWS_OF_MANY, _MANY = 10, 20, 8
# More than this many describe tables of few columns: a component should have this many
# rows for each column.
_VERY_MANY, _ROWS_PER_COLUMN = 64, 2
# Holes make full covariances expensive: from this many columns on, several components per
# class share a subspace.
_MANY_WITH_HOLES = 30
TRADEOFFS = (10.0, 100.0)
# What unlabelled rows may count, compared with labelled ones.
_WEIGHTS = (0.0, 0.1)
_FAST_TRADEOFF = 10.0
# What learns from pseudo-labels has this many components per class, the larger number if
# each of them has this many rows. Labels change from round to round, so that EM need not
# come closer to its optimum than this.
_LARGER, _ROWS_OF_LARGER, _LARGER_TOL = (4, 16), 100, 1e-2


@dataclass(frozen=True)
class Automatic:
    """Which options of a classifier are chosen, and not given.

    Attributes
    ----------
    covariance_type, n_components, tradeoff : bool
        Whether the option is chosen.
    """

    covariance_type: bool
    n_components: bool
    tradeoff: bool

    def __bool__(self) -> bool:
        return self.covariance_type or self.n_components or self.tradeoff


@dataclass(frozen=True, eq=False)
class Candidate:
    """A structure, and the discriminative trainings that follow its EM.

    Attributes
    ----------
    options : ClassifierOptions
        Of the training; those of discrimination are in `stations`, and the weight of
        unlabelled rows is a number.
    stations : tuple of Discrimination
        One for each tradeoff, in ascending order; none for the likelihood alone.
    """

    options: ClassifierOptions
    stations: tuple[Discrimination, ...]

    @property
    def unlabelled_weight(self) -> float:
        """What an unlabelled row counts."""
        return float(self.options.unlabelled_weight)

    def discrimination(self, station: int) -> Discrimination:
        """Return the last training of the first stations; the likelihood, for none."""
        if station == 0:
            return replace(self.options.discrimination, objective="likelihood")
        return self.stations[station - 1]

    @property
    def n_components(self) -> int:
        """Largest number of components of a class that is tried."""
        return max(map(max, self.options.n_components))

    @property
    def fewest_components(self) -> int:
        """Smallest number of components of a class that is tried."""
        return min(map(min, self.options.n_components))

    def values(self, station: int) -> dict[str, object]:
        """Return the options that distinguish it, after this many of its stations."""
        values: dict[str, object] = {
            "covariance_type": self.options.structure.covariance_type,
            "unlabelled_weight": self.unlabelled_weight,
        }
        if self.options.structure.covariances.needs_subspace:
            values["n_factors"] = self.options.structure.n_factors
        # Numbers that differ are those that the user has given.
        if self.fewest_components == self.n_components:
            values["n_components"] = self.n_components
        if station == 0:
            values["objective"] = "likelihood"
        elif self.stations[station - 1].objective == "hybrid":
            values["tradeoff"] = self.stations[station - 1].tradeoff
        return values

    def name(self, station: int = 0) -> str:
        """Return what to call it, after this many of its stations."""
        plural = "" if self.n_components == 1 else "s"
        fewest = self.fewest_components
        least = "" if fewest == self.n_components else f"{fewest} to "
        covariance_type = self.options.structure.covariance_type
        words = f"{covariance_type}, {least}{self.n_components} component{plural}"
        if self.unlabelled_weight not in (0.0, 1.0):
            words += f", unlabelled rows {self.unlabelled_weight:g}"
        if station == 0:
            return f"{words}, likelihood"
        discrimination = self.stations[station - 1]
        if discrimination.objective == "hybrid":
            return f"{words}, tradeoff {discrimination.tradeoff:g}"
        return f"{words}, {discrimination.objective}"


@dataclass(frozen=True)
class TableSize:
    """What the choice of candidates depends on.

    Attributes
    ----------
    rows_per_class : float
        Median number of labelled rows of a class.
    n_real : int
        Number of real columns.
    n_categorical : int
        Number of categorical columns.
    n_classes : int
        Number of classes.
    has_unlabelled : bool
        Whether there are unlabelled rows.
    has_holes : bool
        Whether real cells are missing.
    """

    rows_per_class: float
    n_real: int
    n_categorical: int
    n_classes: int
    has_unlabelled: bool
    has_holes: bool

    @property
    def is_wide_with_holes(self) -> bool:
        """Whether rows with holes are so wide that each of them takes long."""
        return self.has_holes and self.n_real > _MANY_WITH_HOLES

    @property
    def n_factors_with_holes(self) -> int:
        """Number of factors that rows with holes have."""
        wanted = int(self.n_labelled / _ROWS_PER_FACTOR)
        return min(max(wanted, _FEWEST_FACTORS), _FACTORS_WITH_HOLES)

    @property
    def n_labelled(self) -> float:
        """About how many labelled rows there are."""
        return self.rows_per_class * self.n_classes

    @classmethod
    def of(cls, dataset: TrainingRows, schema: Schema, n_classes: int) -> TableSize:
        """Measure labelled rows."""
        counts = dataset.label_counts(n_classes)
        real, categorical = len(schema.real), len(schema.categorical)
        return cls(
            float(np.median(counts)),
            real,
            categorical,
            n_classes,
            dataset.unlabelled().n_rows > 0,
            dataset.has_holes,
        )


def candidates(
    options: ClassifierOptions, automatic: Automatic, size: TableSize, budget: Budget
) -> list[Candidate]:
    """Return what to try, from the simplest to the largest.

    Parameters
    ----------
    options : ClassifierOptions
        What the user has fixed; automatic options have any value.
    automatic : Automatic
        Which ones are chosen.
    size : TableSize
        Of the training table.
    budget : Budget
        How much effort it may take.
    """
    stations = tuple(_stations(options.discrimination, automatic, budget))
    changed = structures(options, automatic, size, budget)
    return [Candidate(own, stations) for own in changed]


def structures(
    options: ClassifierOptions, automatic: Automatic, size: TableSize, budget: Budget
) -> list[ClassifierOptions]:
    """Return the options of the structures to try, from the simplest to the largest.

    See `candidates` for the parameters.
    """
    found: dict[tuple[str, int, float], ClassifierOptions] = {}
    for (covariance_type, n_components), weight in itertools.product(
        _structures(size, budget), _weights(options.unlabelled_weight, size)
    ):
        structure, numbers = options.structure, options.n_components
        if automatic.covariance_type:
            structure = replace(structure, covariance_type=covariance_type)
            if size.is_wide_with_holes and isinstance(structure.n_factors, str):
                structure = replace(structure, n_factors=size.n_factors_with_holes)
        if automatic.n_components:
            numbers = [[n_components]] * len(numbers)
        changed = replace(
            options,
            structure=structure,
            n_components=numbers,
            unlabelled_weight=weight,
        )
        key = (structure.covariance_type, max(numbers[0]), weight)
        found.setdefault(key, changed)
    return list(found.values())


def larger_candidate(
    options: ClassifierOptions, automatic: Automatic, size: TableSize, n_unlabelled: int
) -> Candidate | None:
    """Return what learns from pseudo-labels; None if the user has fixed the structure.

    It is fitted by EM alone: training to discriminate would learn the wrong labels too.
    """
    # Networks do not choose a tradeoff, and have none.
    chosen = automatic.covariance_type and automatic.n_components and automatic.tradeoff
    if not chosen or not isinstance(options.unlabelled_weight, str):
        return None
    _, several = _types(size)
    few, many = _LARGER
    has_many = n_unlabelled >= many * _ROWS_OF_LARGER * size.n_classes
    estimation = options.estimation
    changed = replace(
        options,
        structure=replace(options.structure, covariance_type=several),
        estimation=replace(estimation, tol=max(estimation.tol, _LARGER_TOL)),
        n_components=[[many if has_many else few]] * len(options.n_components),
        unlabelled_weight=1.0,
    )
    return Candidate(changed, ())


def _weights(given: float | str, size: TableSize) -> tuple[float, ...]:
    """Return what unlabelled rows may count; if there are none, it does not matter."""
    if not size.has_unlabelled:
        return (1.0,)
    return _WEIGHTS if isinstance(given, str) else (float(given),)


def _stations(
    given: Discrimination, automatic: Automatic, budget: Budget
) -> Iterator[Discrimination]:
    if given.is_generative:
        return
    if given.objective != "hybrid" or not automatic.tradeoff:
        yield given
        return
    tradeoffs = TRADEOFFS if budget.searches else (_FAST_TRADEOFF,)
    # Each training goes on where the one before has ended.
    n_steps = -(-given.n_steps // len(tradeoffs))
    for tradeoff in tradeoffs:
        yield replace(given, tradeoff=tradeoff, n_steps=n_steps)


def _types(size: TableSize) -> tuple[str, str]:
    """Return the types of covariances for one component per class, and for several."""
    if size.n_real == 0:
        return "diag", "diag"
    single = "subspace" if size.n_real > _WIDE else "full"
    limit = _MANY_WITH_HOLES if size.has_holes else _WIDE
    return single, "subspace" if size.n_real > limit else "full"


def _structures(size: TableSize, budget: Budget) -> Iterator[tuple[str, int]]:
    """Yield types of covariances with numbers of components, the simplest first."""
    single, several = _types(size)
    if not budget.searches:
        yield single, 1
        return
    yield "diag", 1
    if single == "full":
        yield "tied", 1
    yield single, 1
    sizes = (2, 4, 8, 16, 32, 64, 128) if budget.is_thorough else (4, 16, 64, 128)
    for n_components in sizes:
        if n_components * _rows_needed(n_components, size) > size.rows_per_class:
            return
        if n_components == 4:
            yield "diag", 4
        if size.is_wide_with_holes and size.n_labelled > _MANY_ROWS:
            return
        yield several, n_components


def _rows_needed(n_components: int, size: TableSize) -> int:
    """Return how many rows each of some components should have."""
    if n_components > _VERY_MANY:
        n_columns = size.n_real + size.n_categorical
        return max(_ROWS_PER_COMPONENT, _ROWS_PER_COLUMN * n_columns)
    return _ROWS_OF_MANY if n_components >= _MANY else _ROWS_PER_COMPONENT
