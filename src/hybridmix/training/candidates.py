"""What an automatic choice chooses from: covariance types, priors, components."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybridmix.training.families import Structure

# A component should have at least this many rows to itself, and with a covariance of its
# own this many times as many as columns.
_ROWS_PER_COMPONENT, _ROWS_PER_COLUMN = 10, 2
_NUMBERS = (1, 2, 4, 8, 16, 32)
_MORE_NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# In up to this many columns, full covariances do as well as a subspace, and are faster.
_NARROW = 32
# About how many multiplications an iteration of EM may take for a candidate.
_CHEAP, _COSTLY, _TOO_COSTLY = 1e7, 5e7, 2e9
# Without a search, full covariances are for at most this many columns.
_WIDE = 64


@dataclass(frozen=True)
class TableSize:
    """What the candidates depend on.

    Attributes
    ----------
    n_rows : int
        Rows that a candidate is fitted to.
    n_free : float
        How many of them say something of their own: distinct rows, or all of them in
        tables of nothing but categories.
    n_real, n_categorical : int
        Columns.
    has_holes : bool
        Whether real cells are missing.
    """

    n_rows: int
    n_free: float
    n_real: int
    n_categorical: int
    has_holes: bool

    def most_components(self, covariance_type: str) -> int:
        """Return how many components the rows are enough for, at least 1."""
        needed = _ROWS_PER_COMPONENT
        if covariance_type == "full":
            needed = max(needed, _ROWS_PER_COLUMN * self.n_real)
        return max(1, int(self.n_free / needed))

    def cost(self, covariance_type: str, n_components: int) -> float:
        """Return about how many multiplications an iteration takes."""
        cells = float(self.n_rows * n_components * max(self.n_real, 1))
        if covariance_type not in ("full", "tied"):
            return cells
        # With holes, every row has a system of equations of its own.
        return cells * self.n_real * (0.25 * self.n_real if self.has_holes else 1.0)

    def is_cheap(self, covariance_type: str, n_components: int) -> bool:
        """Return whether several starts take little time."""
        return self.cost(covariance_type, n_components) <= _CHEAP


@dataclass(frozen=True)
class Candidate:
    """A structure and a number of components.

    Attributes
    ----------
    structure : Structure
        What components look like.
    n_components : int
        How many there are.
    says_prior : bool
        Whether the name includes the strength of the prior, since there are several.
    has_real : bool
        Whether there are real columns, and hence covariances.
    """

    structure: Structure
    n_components: int
    says_prior: bool = False
    has_real: bool = True

    @property
    def name(self) -> str:
        """What to call it in a table."""
        plural = "" if self.n_components == 1 else "s"
        name = f"{self.n_components} component{plural}"
        if self.has_real:
            name = f"{self.structure.covariance_type}, {name}"
        if self.says_prior:
            name += f", prior {self.structure.covariance_prior:g}"
        return name

    @property
    def options(self) -> dict[str, object]:
        """The values of the options that it stands for."""
        return {
            "covariance_type": self.structure.covariance_type,
            "covariance_prior": self.structure.covariance_prior,
            "n_components": self.n_components,
        }


Chain = list[Candidate]


@dataclass(frozen=True)
class Choice:
    """Which options are free; the others are fixed by what was given.

    Attributes
    ----------
    covariance_type, n_components : bool
        Whether to choose them. A number of components that is not free may still be a
        list, which is then tried.
    """

    covariance_type: bool = False
    n_components: bool = False

    @property
    def is_free(self) -> bool:
        """Whether there is anything to choose."""
        return self.covariance_type or self.n_components


def candidate_chains(
    choice: Choice,
    structure: Structure,
    n_components: list[int],
    size: TableSize,
    is_thorough: bool,
) -> list[Chain]:
    """Return chains of candidates, each of ascending numbers of components.

    Parameters
    ----------
    choice : Choice
        What is free.
    structure : Structure
        Options; those that are free are replaced.
    n_components : list of int
        Numbers to try, if they are not free.
    size : TableSize
        Of the rows that candidates are fitted to.
    is_thorough : bool
        Whether to try more numbers, and more costly ones.
    """
    numbers = list(n_components)
    if choice.n_components:
        numbers = list(_MORE_NUMBERS if is_thorough else _NUMBERS)
    limit = _TOO_COSTLY if is_thorough else _COSTLY
    chains = []
    for one in _structures(choice, structure, size):
        kind = one.covariance_type
        # One component with a tied covariance is one with a full covariance.
        is_double = choice.covariance_type and kind == "tied"
        wanted = [k for k in numbers if k > 1 or not is_double]
        if choice.n_components:
            most = size.most_components(kind)
            wanted = [k for k in wanted if k <= most]
        kept = [k for k in wanted if size.cost(kind, k) <= limit]
        says_prior = one.covariance_prior != structure.covariance_prior
        chains.append([Candidate(one, k, says_prior, size.n_real > 0) for k in kept])
    return [chain for chain in chains if chain]


def _structures(choice: Choice, structure: Structure, size: TableSize) -> list[Structure]:
    """Return the structures to try."""
    kinds = [structure.covariance_type]
    if choice.covariance_type:
        # The best one is mostly full, and what is clearly behind it ends early.
        kinds = ["full", "tied", "diag"] if size.n_real > 1 else ["diag"]
        kinds += ["subspace"] if size.n_real > _NARROW else []
    found = []
    for kind in kinds:
        own = replace(structure, covariance_type=kind)
        is_free = isinstance(structure.covariance_prior, str)
        if kind != "full" or not is_free or size.n_real < 2:
            found.append(own)
            continue
        # Few rows call for a prior of as many rows as there are columns; redundant
        # columns, whose correlations it would wash out, for a weak one.
        strong = own.prior_strength(size.n_real)
        found += [replace(own, covariance_prior=strength) for strength in (strong, 1.0)]
    return found


def fixed_candidate(
    choice: Choice, structure: Structure, n_components: list[int], size: TableSize
) -> Candidate:
    """Return what to fit without a search."""
    if choice.covariance_type:
        is_cheap = size.n_real <= _WIDE and size.cost("full", 1) <= _TOO_COSTLY
        kind = "full" if is_cheap else "subspace"
        structure = replace(
            structure, covariance_type=kind if size.n_real > 1 else "diag"
        )
    number = n_components[0] if n_components else 1
    if choice.n_components:
        number = _plausible_number(size)
    return Candidate(structure, number, has_real=size.n_real > 0)


def _plausible_number(size: TableSize) -> int:
    """Return a power of two that leaves every component enough rows."""
    n_columns = size.n_real + size.n_categorical
    most = min(8, int(size.n_free / (10 * n_columns + 50)))
    return max(1, 1 << (most.bit_length() - 1)) if most else 1
