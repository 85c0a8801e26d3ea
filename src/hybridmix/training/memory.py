"""Refusal of models that do not fit into memory, before any work is done."""

from __future__ import annotations

import os

import numpy as np

from hybridmix.families import VariancePrior
from hybridmix.training.families import Structure

# Statistics are held by each of a few threads and in their sum, next to the parameters.
_COPIES = 3


def check_memory(structure: Structure, n_columns: int, n_components: int) -> None:
    """Refuse covariances that the memory of this machine cannot hold.

    Parameters
    ----------
    structure : Structure
        Options of the components.
    n_columns : int
        Number of real columns.
    n_components : int
        Fewest components of all classes.
    """
    covariances = structure.covariances
    if covariances.needs_subspace or n_columns == 0:
        return
    family = covariances.family(VariancePrior(np.ones(n_columns)), None)
    needed = _COPIES * family.parameter_bytes(n_components)
    available = physical_memory()
    if needed > available:
        raise ValueError(
            f"covariance_type={covariances.name!r} needs about {needed / 2**30:.0f} GiB "
            f"for {n_components} component(s) of {n_columns} real columns, and this "
            f"machine has {available / 2**30:.0f} GiB. Use covariance_type='diag', or "
            "'subspace' for correlations between many columns."
        )


def physical_memory() -> float:
    """Return the memory of this machine in bytes; infinite where it is not known."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
