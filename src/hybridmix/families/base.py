"""What every family of component densities offers.

A family knows one kind of density ``p(x | component)`` for a block of columns. It holds
hyperparameters only; parameters go in and come out, for all ``J`` components at once, and
the rows are always the last axis. Missing values are marginalised: a row is scored by the
density of what is observed, and its statistics are expectations given what is observed.

Six methods are enough for EM: `width`, `prepare`, `evaluate`, `accumulate`,
`zero_statistics` and `maximise`. Everything else either has a default or raises an
`UnsupportedError` that names what the family lacks; `Family.offers` says so beforehand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np

from hybridmix._chunks import row_chunks
from hybridmix._require import require, require_array, require_instance
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.rows import Rows
from hybridmix.exceptions import UnsupportedError
from hybridmix.families.conjugates.base import Conjugate


class Parameters:
    """Base of the parameter sets: immutable dataclasses of arrays.

    Every array has the components as its first axis. An array that all components share
    has a first axis of length one.
    """

    @property
    def n_components(self) -> int:
        """Number of components."""
        own = (f.name for f in fields(self) if not self.is_shared(f.name))  # type: ignore[arg-type]
        return len(getattr(self, next(own)))

    def take(self, components: slice | IntArray) -> Self:
        """Return the parameters of some of the components."""
        taken = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            taken[field.name] = value if self.is_shared(field.name) else value[components]
        return type(self)(**taken)

    def is_shared(self, name: str) -> bool:
        """Return whether all components share the array of this name."""
        return False

    def affine(self, scale: FloatArray, shift: FloatArray) -> Self:
        """Return the parameters of ``scale * x + shift``, over the real columns."""
        return self


class Statistics:
    """Base of the sufficient statistics: dataclasses of arrays that add up.

    They accumulate in place, since a sum over chunks of rows is all that they are for.
    """

    shared: ClassVar[frozenset[str]] = frozenset()

    def add(self, other: Self, components: slice = slice(None)) -> None:
        """Add statistics that concern a run of the components."""
        for field in fields(self):  # type: ignore[arg-type]
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if field.name in self.shared:
                mine += theirs
            else:
                mine[components] += theirs

    def scale(self, factor: float) -> None:
        """Multiply all statistics, as if every row had counted this much."""
        for field in fields(self):  # type: ignore[arg-type]
            array = getattr(self, field.name)
            array *= factor

    def check_like(self, other: Statistics) -> None:
        """Raise ValueError unless these are finite statistics of the same shapes."""
        require_instance("statistics", self, type(other))
        for field in fields(self):  # type: ignore[arg-type]
            shape = np.shape(getattr(other, field.name))
            require_array(f"statistics {field.name}", getattr(self, field.name), shape)


# Parameters, statistics, and the intermediate results of an M-step, per statistic.
_COPIES = 4
# A number that is worked on by itself takes as long as this many products of numbers in
# products of matrices.
PASSING = 10

P = TypeVar("P", bound=Any)
S = TypeVar("S", bound=Any)
# What `Family.prepare` returns, and what `Family.evaluate` notes. Nobody looks into them
# but the family itself.
Prepared: TypeAlias = Any
Notes: TypeAlias = Any


class Point(ABC, Generic[P, S]):
    """A place in coordinates: its parameters, and how gradients come back to its vector.

    Attributes
    ----------
    vector : ndarray of shape (size,)
        The place.
    parameters : Parameters
        What the vector stands for.
    """

    vector: FloatArray
    parameters: P

    @abstractmethod
    def gradient(self, statistics: S) -> FloatArray:
        """Pull a gradient back to the vector.

        For a value ``f`` whose derivatives by the log densities are the weights ``r``,
        and statistics accumulated with these weights at the parameters of the point,
        this is the gradient of ``f`` (Fisher's identity covers missing values).
        """

    def prior_gradient(self) -> FloatArray:
        """Return the gradient of the log density of the prior; zero by default."""
        return np.zeros_like(self.vector)


class Coordinates(ABC, Generic[P, S]):
    """An unconstrained vector that stands for parameters, whitened at a start.

    At the zero vector the parameters are those of the start, and a step of length one
    changes the log-likelihood of the start by about one half in every direction.
    """

    size: int

    @abstractmethod
    def at(self, vector: FloatArray) -> Point[P, S]:
        """Return the point of a vector, whose parameters are built once for all uses."""

    def vector(self, parameters: P) -> FloatArray:
        """Return the vector that stands for parameters; `at` is the way back."""
        raise UnsupportedError(self, "a vector for given parameters", "Add `vector`.")

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest values of the vector; none by default."""
        return np.full(self.size, -np.inf), np.full(self.size, np.inf)


class Family(ABC, Generic[P, S]):
    """A kind of component density for a block of columns."""

    # What every family has ------------------------------------------------------------

    @abstractmethod
    def width(self, n_components: int, observed: BoolArray | None = None) -> int:
        """Return how many numbers a row occupies at the peak of an evaluation.

        The mask (d, n) of the rows to come shows how many holes to expect; None for none.
        """

    @abstractmethod
    def prepare(self, rows: Rows) -> Prepared:
        """Rearrange rows into what the other methods read; free of parameters."""

    @abstractmethod
    def evaluate(self, prepared: Prepared, parameters: P) -> tuple[FloatArray, Notes]:
        """Return the log densities (J, n) and notes that spare others the same work."""

    @abstractmethod
    def accumulate(
        self, prepared: Prepared, parameters: P, weights: FloatArray, notes: Notes
    ) -> S:
        """Return weighted sufficient statistics; the weights (J, n) may be negative."""

    @abstractmethod
    def zero_statistics(self, n_components: int) -> S:
        """Return empty statistics."""

    @abstractmethod
    def maximise(self, statistics: S) -> P:
        """Return the parameters of highest posterior density (the M-step).

        Empty statistics have to give valid parameters: those of the prior.
        """

    # What has a default ---------------------------------------------------------------

    def offers(self, capability: str) -> bool:
        """Return whether the family has an optional method of this name."""
        return overrides(self, Family, capability)

    @property
    def ties_components(self) -> bool:
        """Whether an M-step estimates a parameter that all components share."""
        return False

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a prepared row occupies, about."""
        return self.width(1, observed)

    def work(self, n_components: int, observed: BoolArray | None = None) -> int:
        """Return about how many multiplications the evaluation of a row takes.

        Those of products of matrices are meant; a number that is worked on by itself
        counts like `PASSING` of them.
        """
        return n_components * (self.kept_width(observed) + PASSING)

    def parameter_bytes(self, n_components: int) -> int:
        """Return about how many bytes parameters, statistics and an M-step occupy.

        The default takes parameters to be as large as the statistics, and an M-step to
        need twice that for intermediate results.
        """
        one = self.zero_statistics(1)
        numbers = sum(np.size(getattr(one, field.name)) for field in fields(one))
        return 8 * _COPIES * n_components * numbers

    def embed(self, rows: Rows) -> Rows:
        """Return rows whose real columns suit Euclidean distances, for k-means."""
        return rows

    def reads(self, real: list[int], codes: list[int]) -> bool:
        """Return whether any of these columns belongs to the family."""
        return bool(real)

    def summarise(self, rows: Rows, parameters: P, weights: FloatArray) -> S:
        """Return the statistics of any number of rows, chunk by chunk."""
        total = self.zero_statistics(len(weights))
        for chunk in row_chunks(rows.n_rows, self.width(len(weights), rows.observed)):
            prepared = self.prepare(rows[chunk])
            _, notes = self.evaluate(prepared, parameters)
            total.add(self.accumulate(prepared, parameters, weights[:, chunk], notes))
        return total

    def start(self, rows: Rows, weights: FloatArray) -> P:
        """Return parameters for rows with given component memberships (J, n).

        The default takes one M-step from the parameters of the prior. Where no
        statistics depend on the parameters, this is the best there is.
        """
        first = self.maximise(self.zero_statistics(len(weights)))
        return self.maximise(self.summarise(rows, first, weights))

    def log_prior(self, parameters: P) -> float:
        """Return the log density of the prior, up to a constant; none by default."""
        return 0.0

    def within_bounds(self, parameters: P) -> P:
        """Return the nearest parameters that `maximise` may lead to.

        The default returns the parameters as they are: the `bounds` of the coordinates
        have to be the same as those of `maximise`, if there are any.
        """
        return parameters

    def collapsed(self, parameters: P) -> BoolArray:
        """Return which components have shrunk to a point, (J,); none by default."""
        return np.zeros(parameters.n_components, dtype=bool)

    def concatenate(self, parts: list[P], counts: list[float]) -> P:
        """Join the components of several parameter sets; counts weigh shared arrays."""
        joined = {}
        for field in fields(parts[0]):
            arrays = [getattr(part, field.name) for part in parts]
            if parts[0].is_shared(field.name):
                joined[field.name] = np.average(arrays, axis=0, weights=counts)
            else:
                joined[field.name] = np.concatenate(arrays)
        return type(parts[0])(**joined)

    # What a family may offer ----------------------------------------------------------

    def expected_statistics(self, parameters: P, counts: FloatArray) -> S:
        """Return the mean statistics of this many (J,) complete rows."""
        raise UnsupportedError(self, "expected statistics", _NO_DAMPED_STEPS)

    def proper(self, statistics: S) -> BoolArray:
        """Return for which components (J,) signed statistics are those of a density."""
        raise UnsupportedError(self, "a check of signed statistics", _NO_DAMPED_STEPS)

    def conjugate(self) -> Conjugate:
        """Return the conjugate prior of the parameters of a component."""
        raise UnsupportedError(
            self,
            "a conjugate prior",
            "Use full or diagonal covariances of each component.",
        )

    def coordinates(self, start: P, counts: FloatArray) -> Coordinates[P, S]:
        """Return coordinates around a start, where components have these row counts."""
        raise UnsupportedError(self, "gradients", "Add `coordinates`, or train by EM.")

    def impute(self, rows: Rows, parameters: P, posterior: FloatArray) -> Rows:
        """Fill holes by conditional mean or mode, given component posteriors (J, n)."""
        raise UnsupportedError(self, "imputation", "Add `impute`.")

    def draw(
        self,
        rows: Rows,
        parameters: P,
        components: IntArray,
        generator: np.random.Generator,
    ) -> Rows:
        """Fill holes by draws, given the component of each row and what is observed."""
        raise UnsupportedError(self, "draws of missing values", "Add `draw`.")

    def sample(
        self, parameters: P, components: IntArray, generator: np.random.Generator
    ) -> Rows:
        """Draw a row from each of the given components."""
        raise UnsupportedError(self, "samples", "Add `sample`.")

    def marginal(
        self, parameters: P, real: list[int], codes: list[int]
    ) -> tuple[Family, Parameters]:
        """Return family and parameters of the marginal over some columns."""
        raise UnsupportedError(self, "marginal densities", "Add `marginal`.")

    def surprise(
        self, prepared: Prepared, parameters: P, notes: Notes
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Describe how log densities of a component's own rows are distributed.

        The energy of a row is minus its log density minus an offset, which is the least
        that this can be: half its squared Mahalanobis distance, or how much less probable
        its categories are than the most probable ones, in logarithms.

        Returns
        -------
        offset, mean, variance : ndarray of shape (J, n)
            The offset for the columns that each row has, and mean and variance of the
            energies of rows drawn from the component with these columns.
        """
        raise UnsupportedError(self, "the spread of its log densities", "Add `surprise`.")

    def n_parameters(self, n_components: int) -> int:
        """Return the number of free parameters."""
        raise UnsupportedError(self, "a number of parameters", "Add `n_parameters`.")

    def layout(self) -> tuple[int, tuple[int, ...]] | None:
        """Return the columns that the family reads, for checks of model files.

        Returns
        -------
        layout : (int, tuple of int) or None
            Number of real columns, and numbers of categories of the categorical ones;
            None, the default, if any columns will do.
        """
        return None

    def check_parameters(self, parameters: P, n_components: int) -> None:
        """Raise ValueError unless parameters belong to the family.

        The default asks for finite numbers for all components or, where they share an
        array, for one. `Parameters.check_consistent` looks at the values.
        """
        require_instance("a set of parameters", parameters, Parameters)
        for field in fields(parameters):
            array = getattr(parameters, field.name)
            count = 1 if parameters.is_shared(field.name) else n_components
            require_array(field.name, array, (count, *np.shape(array)[1:]))
        require(len(fields(parameters)) > 0, "a set of parameters is empty")


_NO_DAMPED_STEPS = "Add `expected_statistics` and `proper`, or use another solver."


def overrides(owner: object, base: type, name: str) -> bool:
    """Return whether an object has a method of its own in place of that of a base."""
    return getattr(type(owner), name, None) is not getattr(base, name, None)
