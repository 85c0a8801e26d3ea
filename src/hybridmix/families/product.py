"""Products of families, for tables with columns of several kinds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.families.base import (
    Coordinates,
    Family,
    Notes,
    Parameters,
    Point,
    Prepared,
    Statistics,
)
from hybridmix.families.conjugates import Independent


@registered
@dataclass(frozen=True)
class ProductParameters(Parameters):
    """Parameters of the factors."""

    factors: tuple[Parameters, ...]

    @property
    def n_components(self) -> int:
        return self.factors[0].n_components

    def take(self, components: slice | IntArray) -> Self:
        return type(self)(tuple(factor.take(components) for factor in self.factors))

    def affine(self, scale: FloatArray, shift: FloatArray) -> Self:
        return type(self)(tuple(factor.affine(scale, shift) for factor in self.factors))


@registered
@dataclass
class ProductStatistics(Statistics):
    """Statistics of the factors."""

    factors: tuple[Statistics, ...]

    def add(self, other: Self, components: slice = slice(None)) -> None:
        for mine, theirs in zip(self.factors, other.factors, strict=True):
            mine.add(theirs, components)

    def scale(self, factor: float) -> None:
        for own in self.factors:
            own.scale(factor)

    def check_like(self, other: Statistics) -> None:
        require_instance("statistics", self, type(other))
        factors = getattr(other, "factors", ())
        require_instance("statistics of the factors", self.factors, tuple)
        require(len(self.factors) == len(factors), "statistics are incomplete")
        for mine, theirs in zip(self.factors, factors, strict=True):
            require_instance("statistics", mine, Statistics)
            mine.check_like(theirs)


@registered
@dataclass(frozen=True)
class Product(Family[ProductParameters, ProductStatistics]):
    r"""Blocks of columns that are independent within a component.

    .. math:: \log p_j(x) = \sum_b \log p^{(b)}_j(x^{(b)})

    Parameters
    ----------
    families : tuple of Family
        One for each block; each reads its own part of a row.
    """

    families: tuple[Family, ...]

    def offers(self, capability: str) -> bool:
        return all(family.offers(capability) for family in self.families)

    @property
    def ties_components(self) -> bool:
        return any(family.ties_components for family in self.families)

    def layout(self) -> tuple[int, tuple[int, ...]] | None:
        layouts = [family.layout() for family in self.families]
        known = [layout for layout in layouts if layout is not None]
        if len(known) < len(layouts):
            return None
        return sum(real for real, _ in known), sum((codes for _, codes in known), ())

    def check_consistent(self) -> None:
        """Raise ValueError unless no two families read the same columns."""
        require_instance("families", self.families, tuple)
        for family in self.families:
            require_instance("a family", family, Family)
        layouts = [family.layout() or (0, ()) for family in self.families]
        once = all(sum(map(bool, part)) <= 1 for part in zip(*layouts, strict=True))
        require(len(layouts) > 0, "families are missing")
        require(once, "two families read the same columns")

    def check_parameters(self, parameters: ProductParameters, n_components: int) -> None:
        require_instance("a set of parameters", parameters, ProductParameters)
        same = len(self.families) == len(parameters.factors)
        require(same, "families and parameters differ in number")
        for family, factor in zip(self.families, parameters.factors, strict=True):
            family.check_parameters(factor, n_components)

    def width(self, n_components: int, observed: BoolArray | None = None) -> int:
        return max(family.width(n_components, observed) for family in self.families)

    def kept_width(self, observed: BoolArray | None = None) -> int:
        return sum(family.kept_width(observed) for family in self.families)

    def work(self, n_components: int, observed: BoolArray | None = None) -> int:
        return sum(family.work(n_components, observed) for family in self.families)

    def parameter_bytes(self, n_components: int) -> int:
        return sum(family.parameter_bytes(n_components) for family in self.families)

    def embed(self, rows: Rows) -> Rows:
        return reduce(
            lambda embedded, family: family.embed(embedded), self.families, rows
        )

    def prepare(self, rows: Rows) -> list[Prepared]:
        return [family.prepare(rows) for family in self.families]

    def evaluate(
        self, prepared: list[Prepared], parameters: ProductParameters
    ) -> tuple[FloatArray, list[Notes]]:
        values, notes = zip(
            *(
                family.evaluate(block, factor)
                for family, block, factor in zip(
                    self.families, prepared, parameters.factors, strict=True
                )
            ),
            strict=True,
        )
        return reduce(np.add, values), list(notes)

    def accumulate(
        self,
        prepared: list[Prepared],
        parameters: ProductParameters,
        weights: FloatArray,
        notes: list[Notes],
    ) -> ProductStatistics:
        return ProductStatistics(
            tuple(
                family.accumulate(block, factor, weights, note)
                for family, block, factor, note in zip(
                    self.families, prepared, parameters.factors, notes, strict=True
                )
            )
        )

    def zero_statistics(self, n_components: int) -> ProductStatistics:
        return ProductStatistics(
            tuple(family.zero_statistics(n_components) for family in self.families)
        )

    def maximise(self, statistics: ProductStatistics) -> ProductParameters:
        pairs = zip(self.families, statistics.factors, strict=True)
        return ProductParameters(tuple(family.maximise(s) for family, s in pairs))

    def expected_statistics(
        self, parameters: ProductParameters, counts: FloatArray
    ) -> ProductStatistics:
        pairs = zip(self.families, parameters.factors, strict=True)
        return ProductStatistics(
            tuple(f.expected_statistics(p, counts) for f, p in pairs)
        )

    def proper(self, statistics: ProductStatistics) -> BoolArray:
        pairs = zip(self.families, statistics.factors, strict=True)
        return reduce(np.logical_and, (f.proper(s) for f, s in pairs))

    def conjugate(self) -> Independent:
        return Independent(tuple(family.conjugate() for family in self.families))

    def start(self, rows: Rows, weights: FloatArray) -> ProductParameters:
        return ProductParameters(
            tuple(family.start(rows, weights) for family in self.families)
        )

    def log_prior(self, parameters: ProductParameters) -> float:
        pairs = zip(self.families, parameters.factors, strict=True)
        return sum(family.log_prior(factor) for family, factor in pairs)

    def within_bounds(self, parameters: ProductParameters) -> ProductParameters:
        pairs = zip(self.families, parameters.factors, strict=True)
        return ProductParameters(tuple(f.within_bounds(p) for f, p in pairs))

    def collapsed(self, parameters: ProductParameters) -> BoolArray:
        pairs = zip(self.families, parameters.factors, strict=True)
        return reduce(np.logical_or, (f.collapsed(p) for f, p in pairs))

    def coordinates(
        self, start: ProductParameters, counts: FloatArray
    ) -> ProductCoordinates:
        pairs = zip(self.families, start.factors, strict=True)
        return ProductCoordinates([f.coordinates(p, counts) for f, p in pairs])

    def impute(
        self, rows: Rows, parameters: ProductParameters, posterior: FloatArray
    ) -> Rows:
        for family, factor in zip(self.families, parameters.factors, strict=True):
            rows = family.impute(rows, factor, posterior)
        return rows

    def draw(
        self,
        rows: Rows,
        parameters: ProductParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        for family, factor in zip(self.families, parameters.factors, strict=True):
            rows = family.draw(rows, factor, components, generator)
        return rows

    def sample(
        self,
        parameters: ProductParameters,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        parts = [
            family.sample(factor, components, generator)
            for family, factor in zip(self.families, parameters.factors, strict=True)
        ]
        return Rows(
            np.concatenate([part.real for part in parts]),
            None,
            np.concatenate([part.codes for part in parts]),
        )

    def marginal(
        self, parameters: ProductParameters, real: list[int], codes: list[int]
    ) -> tuple[Family, Parameters]:
        kept = [
            family.marginal(factor, real, codes)
            for family, factor in zip(self.families, parameters.factors, strict=True)
            if family.reads(real, codes)
        ]
        if len(kept) == 1:
            return kept[0]
        families, factors = zip(*kept, strict=True)
        return Product(families), ProductParameters(factors)

    def reads(self, real: list[int], codes: list[int]) -> bool:
        return any(family.reads(real, codes) for family in self.families)

    def surprise(
        self, prepared: list[Prepared], parameters: ProductParameters, notes: list[Notes]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        triples = [
            family.surprise(block, factor, note)
            for family, block, factor, note in zip(
                self.families, prepared, parameters.factors, notes, strict=True
            )
        ]
        offset, mean, variance = (
            reduce(np.add, terms) for terms in zip(*triples, strict=True)
        )
        return offset, mean, variance

    def concatenate(
        self, parts: list[ProductParameters], counts: list[float]
    ) -> ProductParameters:
        return ProductParameters(
            tuple(
                family.concatenate([part.factors[b] for part in parts], counts)
                for b, family in enumerate(self.families)
            )
        )

    def n_parameters(self, n_components: int) -> int:
        return sum(family.n_parameters(n_components) for family in self.families)


class ProductCoordinates(Coordinates[ProductParameters, ProductStatistics]):
    """The coordinates of the factors, one after the other."""

    def __init__(self, factors: list[Coordinates]) -> None:
        self._factors = factors
        self._ends = np.cumsum([factor.size for factor in factors])
        self.size = int(self._ends[-1])

    def at(self, vector: FloatArray) -> ProductPoint:
        parts = np.split(vector, self._ends[:-1])
        pairs = zip(self._factors, parts, strict=True)
        return ProductPoint(vector, [factor.at(part) for factor, part in pairs])

    def vector(self, parameters: ProductParameters) -> FloatArray:
        pairs = zip(self._factors, parameters.factors, strict=True)
        return np.concatenate([factor.vector(own) for factor, own in pairs])

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = zip(*(factor.bounds() for factor in self._factors), strict=True)
        return np.concatenate(lower), np.concatenate(upper)


class ProductPoint(Point[ProductParameters, ProductStatistics]):
    """The places of the factors."""

    def __init__(self, vector: FloatArray, factors: list[Point]) -> None:
        self.vector = vector
        self._factors = factors
        self.parameters = ProductParameters(tuple(f.parameters for f in factors))

    def gradient(self, statistics: ProductStatistics) -> FloatArray:
        pairs = zip(self._factors, statistics.factors, strict=True)
        return np.concatenate([factor.gradient(s) for factor, s in pairs])

    def prior_gradient(self) -> FloatArray:
        return np.concatenate([factor.prior_gradient() for factor in self._factors])
