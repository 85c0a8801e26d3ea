"""The components of fitted estimators, in the units of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridmix._typing import FloatArray


def component_moments(
    estimator: Any, places: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Return the exact marginal moments of the components of a fitted estimator.

    Parameters
    ----------
    estimator : MixtureEstimator
        With real columns.
    places : sequence of int, of length k
        Columns, counted among the real ones.

    Returns
    -------
    means : ndarray of shape (J, k)
        In the units of the table.
    covariances : ndarray of shape (J, k, k)
        For any ``covariance_type``.
    """
    places = list(places)
    means = estimator.means_[:, places]
    given = estimator.covariances_
    identity = np.eye(len(places))
    kind = estimator.covariance_type
    if kind == "spherical":
        covariances = given[:, None, None] * identity
    elif kind == "diag":
        covariances = given[:, places, None] * identity
    elif kind == "subspace":
        loading = estimator.loading_[places]
        noise = estimator.noise_variances_[places] * identity
        covariances = loading @ given @ loading.T + noise
    else:  # "full", or "tied" with one for all
        covariances = given[..., places, :][..., places]
    return means, np.broadcast_to(covariances, (len(means), *identity.shape))
