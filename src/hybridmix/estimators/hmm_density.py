"""The density of sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin

from hybridmix._parallel import workers
from hybridmix._registered import registered
from hybridmix.data import Schema
from hybridmix.estimators.chain_options import ChainEstimator
from hybridmix.estimators.chain_published import state_attributes
from hybridmix.estimators.options import warn_of
from hybridmix.models.chains import Chains
from hybridmix.progress import printing
from hybridmix.training.chain_search import fit_chosen
from hybridmix.training.chains import fit_chains


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class HMMDensity(DensityMixin, ChainEstimator):
    n_states: int | str = field(default="auto", kw_only=False)

    def fit(
        self, X: Any, y: Any = None, lengths: Any = None, sample_weight: Any = None
    ) -> Self:
        self._check_options()
        read = self._learn_sequences(X, lengths, None, sample_weight)
        options, automatic = self._chain_options(), self._automatic()
        generator = np.random.default_rng(self._seed())
        with workers(self.n_jobs) as pool, printing(self.verbose):
            if automatic:
                fitted = fit_chosen(
                    options,
                    automatic,
                    self.effort,
                    read.dataset,
                    read.schema,
                    1,
                    generator,
                    pool,
                )
            else:
                fitted = fit_chains(
                    options, read.dataset, read.schema, 1, generator, pool
                )
        self._publish({**read.attributes, **self._learned_attributes(fitted)})
        warn_of(fitted.messages)
        return self

    def _derived_attributes(self, model: Chains, schema: Schema) -> dict[str, Any]:
        return state_attributes(model, schema, has_classes=False)
