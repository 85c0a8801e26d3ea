"""Which mixtures of rows and targets a regressor tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hybridmix.training.budget import Budget
from hybridmix.training.candidates import Candidate, Choice, TableSize
from hybridmix.training.families import Structure

# With more real columns than this, correlations are those of a subspace. The noise around
# it is that of each column: a common one would be that of the target as well.
_WIDE = 60
# Rows with holes have a system of equations each. With more multiplications than this for
# one component, strong tradeoffs take too long.
_LONG = 1e7
# A component should have at least this many rows.
_ROWS_PER_COMPONENT = 12
# Without a search, it should have this many for every column.
_ROWS_PER_COLUMN = 5
_NUMBERS = (1, 2, 4, 8, 16, 32)
_MORE_NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# A strong prior of the covariances makes components alike, and many of them pointless.
_MOST_WITH_STRONG_PRIOR = 8
_WEAK = 1.0
# About how many multiplications an iteration of EM may take for one start of a candidate,
# and for all of them.
_COSTLY, _COSTLY_THOROUGH, _CHEAP = 2e8, 2e9, 2e8
_MOST_STARTS, _MOST_STARTS_THOROUGH = 2, 4
# Weights of the predictive likelihood. Strong ones serve complete tables.
TRADEOFFS = (1.0, 10.0)
_FEWEST_DIAGONAL = 8


@dataclass(frozen=True)
class Plan:
    """What to try.

    Attributes
    ----------
    candidates : list of Candidate
        Structures and numbers of components, the simplest first.
    tradeoffs : tuple of float
        Weights of the predictive likelihood, in ascending order, after EM.
    is_given : bool
        Whether the user has given the tradeoff; otherwise all compete.
    starts : mapping of str to int
        How many starts of each candidate are averaged, by its name.
    """

    candidates: list[Candidate]
    tradeoffs: tuple[float, ...]
    is_given: bool
    starts: Mapping[str, int]

    @property
    def given_tradeoff(self) -> float:
        """The tradeoff that the user has given; 0, which is EM alone, for none."""
        return self.tradeoffs[-1] if self.is_given and self.tradeoffs else 0.0

    @property
    def is_single(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.candidates) == 1 and (self.is_given or not self.tradeoffs)


def planned(
    choice: Choice,
    structure: Structure,
    n_components: list[int],
    tradeoff: float | str,
    n_starts: int | str,
    size: TableSize,
    budget: Budget,
) -> Plan:
    """Return what to try.

    Parameters
    ----------
    choice : Choice
        What is free.
    structure : Structure
        Options; those that are free are replaced.
    n_components : list of int
        Numbers to try, if they are not free.
    tradeoff : float or "auto"
        Weight of the predictive likelihood.
    n_starts : int or "auto"
        How many starts of each candidate to average.
    size : TableSize
        Of the rows that candidates are fitted to.
    budget : Budget
        How much effort it may take.
    """
    is_given = not isinstance(tradeoff, str)
    tradeoffs = _tradeoffs(tradeoff, size, budget)
    found: list[Candidate] = []
    for one in _structures(choice, structure, size, budget):
        numbers = _numbers(one, budget, size) if choice.n_components else n_components
        says_prior = one.covariance_prior != structure.covariance_prior
        kept = _affordable(numbers, one.covariance_type, size, budget)
        found += [Candidate(one, k, says_prior, size.n_real > 0) for k in kept]
    found.sort(key=lambda candidate: candidate.n_components)
    plan = Plan(found, tradeoffs, is_given, {})
    most = _MOST_STARTS_THOROUGH if budget.is_thorough else _MOST_STARTS
    most = 1 if plan.is_single else most
    starts = {own.name: _starts_of(own, size, n_starts, most) for own in found}
    return replace(plan, starts=starts)


def _tradeoffs(given: float | str, size: TableSize, budget: Budget) -> tuple[float, ...]:
    """Return the weights of the predictive likelihood to train with after EM."""
    if not isinstance(given, str):
        return (float(given),) if given else ()
    takes_long = size.has_holes and size.cost("full", 1) > _LONG
    if not budget.searches or (takes_long and not budget.is_thorough):
        return ()
    return TRADEOFFS


def _affordable(
    numbers: Sequence[int], covariance_type: str, size: TableSize, budget: Budget
) -> Sequence[int]:
    """Return the numbers of components that do not take too long; at least one."""
    limit = _COSTLY_THOROUGH if budget.is_thorough else _COSTLY
    kept = [k for k in numbers if size.cost(covariance_type, k) <= limit]
    return kept or numbers[:1]


def _structures(
    choice: Choice, structure: Structure, size: TableSize, budget: Budget
) -> list[Structure]:
    """Return the structures to try."""
    if choice.covariance_type:
        structure = replace(structure, covariance_type="full")
        if size.n_real > _WIDE:
            structure = replace(structure, covariance_type="subspace", noise="columns")
    if not budget.searches:
        return [structure]
    found = [structure]
    is_free = choice.is_free and isinstance(structure.covariance_prior, str)
    if structure.covariance_type == "full" and is_free:
        strong = structure.prior_strength(size.n_real)
        found = [replace(structure, covariance_prior=own) for own in (strong, _WEAK)]
    if choice.covariance_type:
        found.append(replace(structure, covariance_type="diag"))
    return found


def _numbers(own: Structure, budget: Budget, size: TableSize) -> list[int]:
    """Return the numbers of components to try with a structure."""
    if not budget.searches:
        enough = size.n_free / (_ROWS_PER_COLUMN * max(size.n_real, 1))
        return [max(k for k in _NUMBERS if k <= max(enough, 1.0))]
    numbers = _MORE_NUMBERS if budget.is_thorough else _NUMBERS
    most = max(1, int(size.n_free / _ROWS_PER_COMPONENT))
    if own.covariance_type == "full" and own.covariance_prior not in (_WEAK, "auto"):
        most = min(most, _MOST_WITH_STRONG_PRIOR)
    # Within a diagonal component, the target does not depend on the row.
    fewest = _FEWEST_DIAGONAL if own.covariance_type == "diag" else 1
    return [k for k in numbers if fewest <= k <= most]


def _starts_of(
    candidate: Candidate, size: TableSize, wanted: int | str, most: int
) -> int:
    """Return how many starts of a candidate are averaged."""
    if candidate.n_components == 1:
        return 1  # they would all end in the same place
    if not isinstance(wanted, str):
        return int(wanted)
    cost = size.cost(candidate.structure.covariance_type, candidate.n_components)
    return max(1, min(most, candidate.n_components, int(_CHEAP / max(cost, 1.0))))
