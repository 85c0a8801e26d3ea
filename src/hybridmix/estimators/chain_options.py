"""The options that estimators of sequences share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridmix._checks import (
    check_flag,
    check_jobs,
    check_number,
    check_seed,
    check_verbosity,
)
from hybridmix._parallel import workers
from hybridmix._typing import IntArray
from hybridmix.data import Schema
from hybridmix.data.sequence_source import SequenceTable
from hybridmix.data.shape_options import check_shape_option
from hybridmix.estimators.chain_blocks import (
    learn_sequence_blocks,
    refuse_arrays,
    refuse_tables,
)
from hybridmix.estimators.chain_fitted import FittedChainsEstimator
from hybridmix.estimators.chain_published import state_attributes
from hybridmix.estimators.chain_reading import (
    TrainingSequences,
    read_training_sequences,
)
from hybridmix.estimators.chosen import is_auto
from hybridmix.estimators.published import require_derived, require_record
from hybridmix.models.chains import Chains
from hybridmix.progress import printing
from hybridmix.training.budget import check_effort
from hybridmix.training.chain_plan import AutomaticChains, usual_options
from hybridmix.training.chain_record import ChainOptions, FittedChains
from hybridmix.training.chain_search import fit_chosen
from hybridmix.training.chain_starts import ChainShape
from hybridmix.training.chains import fit_chains
from hybridmix.training.classes import Estimation
from hybridmix.training.covariances import COVARIANCE_TYPES
from hybridmix.training.discriminative import Discrimination, likelihood_only
from hybridmix.training.families import Structure
from hybridmix.training.leaderboard import leaderboard
from hybridmix.training.topologies import check_topology


@dataclass(eq=False, repr=False, kw_only=True)
class ChainEstimator(FittedChainsEstimator):
    """Base of the estimators of sequences: the options that these share.

    They are documented in `HybridHMMClassifier`.
    """

    n_components: int = 1
    topology: Any = "auto"
    covariance_type: str = "auto"
    exits: bool = False
    autoregressive: bool | str = False
    transition_prior: float = 0.1
    n_factors: int | float | str = "auto"
    noise: str = "common"
    covariance_prior: float | str = "auto"
    variance_floor: float = 1e-3
    smoothing: float = 1.0
    categorical_features: Sequence[int | str | bool] | None = None
    column_shapes: Any = "plain"
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-4
    effort: str | float = "balanced"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    # Checks before work -----------------------------------------------------------------

    def _check_options(self) -> None:
        """Refuse options that make no sense, as far as that shows without sequences."""
        n_states = self._given_states()
        check_number("n_states", n_states, 1, 1000, whole=True, or_word="auto")
        check_number("n_components", self.n_components, 1, 10_000, whole=True)
        if not is_auto(self.topology):
            check_topology(self.topology, None if is_auto(n_states) else n_states)
        check_flag("exits", self.exits)
        self._check_autoregressive()
        check_number("transition_prior", self.transition_prior, 1e-10, 1e9)
        check_seed(self.random_state)
        check_jobs(self.n_jobs)
        check_verbosity(self.verbose)
        check_effort("effort", self.effort)
        check_shape_option(self.column_shapes)
        self._chain_options()

    def _check_autoregressive(self) -> None:
        check_flag("autoregressive", self.autoregressive, or_word="auto")
        if is_auto(self.autoregressive):
            return
        if self.autoregressive and self.covariance_type not in ("auto", "full", "tied"):
            raise ValueError(
                f"autoregressive=True needs covariances between a frame and the one "
                f"before, which covariance_type={self.covariance_type!r} does not have: "
                "use 'full' or 'tied'."
            )

    def _given_states(self) -> Any:
        """Return the option n_states, or what a mask of transitions says."""
        n_states = self.get_params(deep=False)["n_states"]
        is_mask = not isinstance(self.topology, str)
        return (
            len(np.asarray(self.topology)) if is_mask and is_auto(n_states) else n_states
        )

    def _chain_options(self) -> ChainOptions:
        """Return the options of training; those that are automatic have usual values."""
        autoregressive = not is_auto(self.autoregressive) and bool(self.autoregressive)
        usual = usual_options(autoregressive)
        n_states = self._given_states()
        return ChainOptions(
            ChainShape(
                usual.n_states if is_auto(n_states) else int(n_states),
                int(self.n_components),
                usual.topology if is_auto(self.topology) else self.topology,
                self.exits,
                autoregressive,
                float(self.transition_prior),
            ),
            Structure(
                usual.covariance_type
                if is_auto(self.covariance_type)
                else self.covariance_type,
                self.n_factors,
                self.noise,
                self.covariance_prior,
                self.variance_floor,
                self.smoothing,
            ),
            Estimation(self.n_init, self.max_iter, self.tol),
            self._discrimination(),
            *self._class_options(),
        )

    def _discrimination(self) -> Discrimination:
        """Return what follows EM: nothing, for a density."""
        return likelihood_only()

    def _class_options(self) -> tuple[Any, ...]:
        """Return length power, class prior, unlabelled weight and calibration."""
        return 0.0, "empirical", 1.0, False

    def _automatic(self) -> AutomaticChains:
        """Return which options are chosen."""
        return AutomaticChains(
            is_auto(self._given_states()),
            is_auto(self.topology),
            is_auto(self.covariance_type),
            is_auto(self.covariance_type) and is_auto(self.autoregressive),
            tradeoff=False,
        )

    # Training ---------------------------------------------------------------------------

    @contextmanager
    def _learning(
        self, X: Any, y: Any, lengths: Any, sample_weight: Any
    ) -> Iterator[TrainingSequences]:
        """Read training sequences, in memory or in blocks, and close them at the end."""
        refuse_tables(self, X)
        covariance_type = self._chain_options().structure.covariance_type
        options = (
            self.categorical_features,
            self.column_shapes,
            COVARIANCE_TYPES[covariance_type].scaling,
        )
        if not isinstance(X, SequenceTable):
            labels = self._numbered(y, sample_weight)
            yield read_training_sequences(self, X, lengths, *labels, *options)
            return
        refuse_arrays(lengths=lengths)
        learned, attributes = learn_sequence_blocks(
            X,
            y,
            sample_weight,
            *options,
            getattr(self, "unlabelled", None),
            getattr(self, "class_weight", None),
        )
        with closing(learned.dataset) as dataset:
            yield TrainingSequences(dataset, learned.schema, learned.classes, attributes)

    def _numbered(
        self, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, IntArray | None, Any]:
        """Return labels, class numbers and weights of sequences in memory."""
        return np.zeros(1, np.intp), None, sample_weight

    def _fit_read(self, read: TrainingSequences, options: ChainOptions) -> FittedChains:
        """Fit what is given, or choose what is automatic."""
        automatic, n_classes = self._automatic(), len(read.classes)
        generator = np.random.default_rng(self._seed())
        with workers(self.n_jobs) as pool, printing(self.verbose):
            if not automatic:
                return fit_chains(
                    options, read.dataset, read.schema, n_classes, generator, pool
                )
            return fit_chosen(
                options,
                automatic,
                self.effort,
                read.dataset,
                read.schema,
                n_classes,
                generator,
                pool,
            )

    def _learned_attributes(self, fitted: FittedChains) -> dict[str, Any]:
        """Return what training has learned, as it is published."""
        shape, structure = fitted.options.shape, fitted.options.structure
        learned = {
            **self._derived_attributes(fitted.model, fitted.schema),
            "schema_": fitted.schema,
            "model_": fitted.model,
            "n_states_": shape.n_states,
            "topology_": shape.topology,
            "covariance_type_": structure.covariance_type if fitted.schema.real else None,
            "converged_": fitted.converged,
            "interrupted_": fitted.interrupted,
            "n_iter_": fitted.n_iter,
            "history_": dict(fitted.history),
            "trace_": fitted.history.get("value", np.empty(0)),
        }
        if fitted.trials:
            learned["leaderboard_"] = leaderboard(fitted.trials)
            learned["n_searched_"] = fitted.n_searched
        return learned

    def _derived_attributes(self, model: Chains, schema: Schema) -> dict[str, Any]:
        """Return the published attributes that the model determines."""
        return state_attributes(model, schema)

    def check_consistent(self) -> None:
        """Raise ValueError unless a fit could have published all of it."""
        super().check_consistent()
        self._check_options()
        require_derived(vars(self), self._derived_attributes(self.model_, self.schema_))
        require_record(vars(self))
