"""Which mixtures of rows and targets a regressor tries."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybridmix.training.budget import Budget
from hybridmix.training.candidates import Candidate, Choice, TableSize
from hybridmix.training.families import Structure

# With more real columns than this, correlations are those of a subspace; holes, which
# give every row a system of equations of its own, make it fewer columns.
_WIDE, _WIDE_WITH_HOLES = 60, 40
# A component should have at least this many rows.
_ROWS_PER_COMPONENT = 12
_NUMBERS = (1, 2, 4, 8, 16, 32)
_MORE_NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# A strong prior of the covariances makes components alike, and many of them pointless.
_MOST_WITH_STRONG_PRIOR = 8
_WEAK = 1.0
# About how many multiplications an iteration of EM may take for one start of a candidate,
# and for all of them.
_COSTLY, _COSTLY_THOROUGH, _CHEAP = 2e8, 2e9, 2e8
_MOST_STARTS = 4


@dataclass(frozen=True)
class Plan:
    """What to try.

    Attributes
    ----------
    candidates : list of Candidate
        Structures and numbers of components, the simplest first.
    tradeoffs : tuple of float
        Weights of the predictive likelihood, in ascending order, after EM.
    """

    candidates: list[Candidate]
    tradeoffs: tuple[float, ...]


def planned(
    choice: Choice,
    structure: Structure,
    n_components: list[int],
    tradeoff: float | str,
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
    size : TableSize
        Of the rows that candidates are fitted to.
    budget : Budget
        How much effort it may take.
    """
    if isinstance(tradeoff, str):
        tradeoffs: tuple[float, ...] = (1.0,) if budget.searches else ()
    else:
        tradeoffs = (float(tradeoff),) if tradeoff else ()
    structures = _structures(choice, structure, size, budget)
    found: list[Candidate] = []
    most = max(1, int(size.n_free / _ROWS_PER_COMPONENT))
    limit = _COSTLY_THOROUGH if budget.is_thorough else _COSTLY
    for one in structures:
        numbers = list(n_components)
        if choice.n_components:
            numbers = [k for k in _numbers(one, budget, size) if k <= most]
        kind = one.covariance_type
        kept = [k for k in numbers if size.cost(kind, k) <= limit] or numbers[:1]
        says_prior = one.covariance_prior != structure.covariance_prior
        found += [Candidate(one, k, says_prior, size.n_real > 0) for k in kept]
    found.sort(key=lambda candidate: candidate.n_components)
    return Plan(found, tradeoffs)


def _structures(
    choice: Choice, structure: Structure, size: TableSize, budget: Budget
) -> list[Structure]:
    """Return the structures to try."""
    if choice.covariance_type:
        is_wide = size.n_real > (_WIDE_WITH_HOLES if size.has_holes else _WIDE)
        kind = "subspace" if is_wide else "full"
        structure = replace(structure, covariance_type=kind)
    kinds = [structure]
    if not budget.searches:
        return kinds
    if structure.covariance_type == "full" and isinstance(
        structure.covariance_prior, str
    ):
        strong = structure.prior_strength(size.n_real)
        kinds = [replace(structure, covariance_prior=own) for own in (strong, _WEAK)]
    if choice.covariance_type:
        kinds.append(replace(structure, covariance_type="diag"))
    return kinds


def _numbers(own: Structure, budget: Budget, size: TableSize) -> list[int]:
    """Return the numbers of components to try with a structure."""
    if not budget.searches:
        return [k for k in _NUMBERS if k == 1 or k * 5 * size.n_real <= size.n_free][-1:]
    numbers = _MORE_NUMBERS if budget.is_thorough else _NUMBERS
    if own.covariance_type == "diag":
        # Within such a component the target does not depend on the row.
        return [k for k in numbers if k >= 4]
    if own.covariance_type == "full" and own.covariance_prior not in (_WEAK, "auto"):
        return [k for k in numbers if k <= _MOST_WITH_STRONG_PRIOR]
    return list(numbers)


def starts_of(candidate: Candidate, size: TableSize, wanted: int | str) -> int:
    """Return how many starts of a candidate are averaged."""
    if candidate.n_components == 1:
        return 1  # they would all end in the same place
    if not isinstance(wanted, str):
        return int(wanted)
    cost = size.cost(candidate.structure.covariance_type, candidate.n_components)
    return max(1, min(_MOST_STARTS, int(_CHEAP / max(cost, 1.0))))
