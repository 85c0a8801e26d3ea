"""Hidden Markov models of sequences, one for each class."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybridmix._registered import registered
from hybridmix._require import (
    require,
    require_array,
    require_instance,
    require_log_probabilities,
    require_positive,
)
from hybridmix._typing import BoolArray, FloatArray, IntArray
from hybridmix.data.sequence_rows import SequenceRows
from hybridmix.families.base import Family, Parameters
from hybridmix.models.base import Model
from hybridmix.models.chain_coordinates import ChainCoordinates
from hybridmix.models.chain_evaluation import (
    ChainEvaluation,
    chain_weights,
    evaluated,
    log_emissions,
)
from hybridmix.models.chain_statistics import ChainStatistics, components_of
from hybridmix.models.damping import damped_components, damped_logs
from hybridmix.models.forward_backward import most_probable_paths
from hybridmix.models.packed import PreparedSequences

# What the methods of chains need of their family.
_NEEDED_OF_FAMILY = {
    "coordinates": ("coordinates",),
    "damped": ("expected_statistics", "proper"),
}
# Occupations need not be more accurate than this many steps of a chain show.
_MOST_STEPS = 1000


@registered
@dataclass(frozen=True, eq=False)
class Chains(Model[PreparedSequences, ChainStatistics]):
    r"""Classes that are hidden Markov models with ``K`` states each.

    .. math:: p(x_{1:T}, c) = \pi_c \sum_{s_{1:T}} a_{c s_1}
              \prod_{t=2}^{T} A_{c s_{t-1} s_t}
              \prod_{t=1}^{T} \sum_{m=1}^{M} \alpha_{c s_t m}\, p(x_t \mid c, s_t, m)
              \; [\, e_{c s_T} \,]

    The last factor is there only if ends are modelled. The components of all states of
    all classes stand in one row: those of a state side by side, then those of a class.

    Attributes
    ----------
    family : Family
        Kind of the component densities.
    components : Parameters
        Parameters of all ``C K M`` components.
    log_mixing : ndarray of shape (C, K, M)
        Log proportions of the components within their state.
    log_start : ndarray of shape (C, K)
        Log probabilities of the first state.
    log_moves : ndarray of shape (C, K, K) or (C, K, K + 1)
        Log probabilities of the next state and, if ends are modelled, last of an end.
        Minus infinity where the topology has no transition.
    log_class_prior : ndarray of shape (C,)
        Log class probabilities.
    mean_lengths : ndarray of shape (C,)
        Mean number of frames of the sequences of each class.
    concentration : float
        What the Dirichlet priors add to every count.
    autoregressive : bool
        Whether the family reads each frame after the frame before it.
    """

    family: Family
    components: Parameters
    log_mixing: FloatArray
    log_start: FloatArray
    log_moves: FloatArray
    log_class_prior: FloatArray
    mean_lengths: FloatArray
    concentration: float
    autoregressive: bool = False

    def check_consistent(self) -> None:
        """Raise ValueError unless components, tables and classes fit together."""
        require_instance("the family", self.family, Family)
        is_ranked = isinstance(self.log_mixing, np.ndarray) and self.log_mixing.ndim == 3
        require(is_ranked, "log_mixing is not an array of 3 axes")
        n_classes, n_states, _ = self.log_mixing.shape
        require_array("log_class_prior", self.log_class_prior, (n_classes,))
        require_array("mean_lengths", self.mean_lengths, (n_classes,), positive=True)
        shapes = [self.log_mixing.shape, (n_classes, n_states)]
        columns = n_states + 1 if self.models_ends else n_states
        shapes.append((n_classes, n_states, columns))
        for name, logs, shape in zip(
            ("log_mixing", "log_start", "log_moves"), self.tables, shapes, strict=False
        ):
            # Impossible moves have the logarithm minus infinity.
            require_instance(name, logs, np.ndarray)
            finite = np.where(np.isneginf(logs), -1.0, logs)
            require_array(name, finite, shape)
            require_log_probabilities(name, logs)
        require_log_probabilities("log_class_prior", self.log_class_prior)
        require_positive("concentration", self.concentration)
        require_instance("autoregressive", self.autoregressive, bool)
        self.family.check_parameters(self.components, self.n_components)

    # Shape ------------------------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.log_mixing.shape[0]

    @property
    def n_states(self) -> int:
        """Number of states of each class."""
        return self.log_mixing.shape[1]

    @property
    def n_mixed(self) -> int:
        """Number of components of each state."""
        return self.log_mixing.shape[2]

    @property
    def n_components(self) -> int:
        """Number of components of all classes."""
        return self.log_mixing.size

    @property
    def models_ends(self) -> bool:
        """Whether sequences end by chance, after states that have exits."""
        return self.log_moves.shape[2] > self.n_states

    @property
    def log_transition(self) -> FloatArray:
        """Log probabilities (C, K, K) of the next state."""
        return self.log_moves[:, :, : self.n_states]

    @property
    def log_exit(self) -> FloatArray | None:
        """Log probabilities (C, K) of an end after each state; None if not modelled."""
        return self.log_moves[:, :, self.n_states] if self.models_ends else None

    @property
    def tables(self) -> tuple[FloatArray, ...]:
        """The tables of log probabilities, each of which sums to one by row."""
        return self.log_mixing, self.log_start, self.log_moves, self.log_class_prior

    def table_counts(self, statistics: ChainStatistics) -> tuple[FloatArray, ...]:
        """Return what the tables are counted from, in their order."""
        moves = statistics.transitions
        if self.models_ends:
            moves = np.concatenate([moves, statistics.exits[:, :, None]], axis=2)
        return statistics.counts, statistics.starts, moves, statistics.classes

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        free = sum(int(np.isfinite(logs).sum()) for logs in self.tables)
        rows = sum(logs[..., 0].size for logs in self.tables)
        return self.family.n_parameters(self.n_components) + free - rows

    def occupation(self) -> FloatArray:
        """Return how many frames of a sequence of mean length each state has, (C, K)."""
        share = np.exp(self.log_start)
        steps = np.exp(self.log_transition)
        total = np.zeros_like(share)
        n_steps = int(min(np.ceil(self.mean_lengths.max()), _MOST_STEPS))
        for time in range(n_steps):
            total += share * (time < self.mean_lengths)[:, None]
            share = np.matmul(share[:, None], steps)[:, 0]
            share /= share.sum(axis=1, keepdims=True)
        return total * (self.mean_lengths / total.sum(axis=1))[:, None]

    # Evaluation -------------------------------------------------------------------------

    def width(self, observed: BoolArray | None = None) -> int:
        """Return how many numbers a frame occupies at the peak of an evaluation."""
        own = self.family.width(self.n_components, self._read_mask(observed))
        return own + 3 * self.n_classes * self.n_states

    def kept_width(self, observed: BoolArray | None = None) -> int:
        """Return about how many numbers a prepared frame occupies."""
        return self.family.kept_width(self._read_mask(observed))

    def work(self, observed: BoolArray | None = None) -> int:
        """Return about how many multiplications the evaluation of a frame takes."""
        own = self.family.work(self.n_components, self._read_mask(observed))
        return own + 2 * self.n_classes * self.n_states**2

    def _read_mask(self, observed: BoolArray | None) -> BoolArray | None:
        """Return the mask of what the family reads of frames."""
        if observed is None or not self.autoregressive:
            return observed
        return np.vstack([observed, observed])

    def prepare(self, rows: SequenceRows) -> PreparedSequences:  # type: ignore[override]
        """Rearrange sequences into what passes over them read."""
        return PreparedSequences(rows, self.family, self.n_classes, self.autoregressive)

    def evaluate(self, prepared: PreparedSequences) -> ChainEvaluation:
        """Evaluate the log joint densities of all classes."""
        return evaluated(self, prepared.all_classes)

    def evaluate_own(
        self, prepared: PreparedSequences, labels: IntArray
    ) -> ChainEvaluation:
        """Evaluate the log joint densities of the sequences' own classes."""
        return evaluated(self, prepared.own_classes(labels))

    def paths(
        self, prepared: PreparedSequences, labels: IntArray
    ) -> tuple[FloatArray, IntArray]:
        """Return the most probable paths of states in given classes.

        Parameters
        ----------
        prepared : PreparedSequences
            The sequences.
        labels : ndarray of shape (n,)
            Their classes.

        Returns
        -------
        scores : ndarray of shape (n,)
            Log joint density of each sequence, its class and its path.
        states : ndarray of shape (F,)
            State of each frame, one sequence after the other.
        """
        packed = prepared.own_classes(labels)
        packing = packed.packing
        scores, states = most_probable_paths(
            packing, log_emissions(self, packed), chain_weights(self, packed)
        )
        by_frame = np.empty(packing.n_frames, np.intp)
        by_frame[packing.source] = states[0]
        return scores[0][packing.inverse] + self.log_class_prior[labels], by_frame

    def state_probabilities(
        self, prepared: PreparedSequences, labels: IntArray
    ) -> FloatArray:
        """Return the probabilities (F, K) of states given sequences and their classes.

        Frames stand one sequence after the other. See `paths` for the parameters.
        """
        packed = prepared.own_classes(labels)
        states, _ = evaluated(self, packed).state_posterior()
        by_frame = np.empty((packed.packing.n_frames, self.n_states))
        by_frame[packed.packing.source] = states[0].T
        return by_frame

    def zero_statistics(self) -> ChainStatistics:
        """Return the statistics of no sequences."""
        n_classes, n_states = self.n_classes, self.n_states
        return ChainStatistics(
            np.zeros(n_classes),
            np.zeros((n_classes, n_states)),
            np.zeros((n_classes, n_states, n_states)),
            np.zeros((n_classes, n_states)),
            np.zeros(self.log_mixing.shape),
            self.family.zero_statistics(self.n_components),
        )

    def log_prior_density(self) -> float:
        """Return the log density of the priors of components and tables."""
        total = self.family.log_prior(self.components)
        for logs in self.tables[:3]:
            total += self.concentration * float(logs[np.isfinite(logs)].sum())
        return total

    def offers(self, capability: str) -> bool:
        """Return whether a method of this name can be called: some need the family's."""
        needed = _NEEDED_OF_FAMILY.get(capability)
        if needed is None:
            return super().offers(capability)
        return all(map(self.family.offers, needed))

    # Training ---------------------------------------------------------------------------

    def coordinates(
        self, n_rows: float, learn_class_prior: bool = True
    ) -> ChainCoordinates:
        """Return coordinates around this model, whitened for this many sequences."""
        return ChainCoordinates(self, n_rows, learn_class_prior)

    def of_class(self, label: int) -> Chains:
        """Return the part of one class; its joint density keeps the class probability."""
        own = self.part(label)
        per_class = self.n_states * self.n_mixed
        return replace(
            self,
            components=self.components.take(components_of(own, per_class)),
            log_mixing=self.log_mixing[own],
            log_start=self.log_start[own],
            log_moves=self.log_moves[own],
            log_class_prior=self.log_class_prior[own],
            mean_lengths=self.mean_lengths[own],
        )

    def part(self, label: int) -> slice:
        """Return the run of classes that one class is."""
        return slice(label, label + 1)

    def maximised(
        self, statistics: ChainStatistics, learn_class_prior: bool = True
    ) -> Chains:
        """Return the model that expected statistics call for (the M-step)."""
        counts = self.table_counts(statistics)
        logs = [
            _log_proportions(own, self.concentration, np.isfinite(table))
            for own, table in zip(counts[:3], self.tables[:3], strict=True)
        ]
        log_class_prior = self.log_class_prior
        if learn_class_prior:
            tiny = np.finfo(float).tiny
            known = np.ones(self.n_classes, dtype=bool)
            log_class_prior = _log_proportions(statistics.classes, tiny, known)
        return replace(
            self,
            components=self.family.maximise(statistics.components),
            log_mixing=logs[0],
            log_start=logs[1],
            log_moves=logs[2],
            log_class_prior=log_class_prior,
        )

    def within_bounds(self) -> Chains:
        """Return the nearest model that an M-step may lead to."""
        return replace(self, components=self.family.within_bounds(self.components))

    def damped(
        self,
        statistics: ChainStatistics,
        factor: float,
        *,
        shared: bool,
        learn_class_prior: bool,
    ) -> Chains:
        """Return the model after an M-step that is damped by this model.

        The tables have a damping of their own in every row, also if `shared`.
        """
        components, _ = damped_components(
            self.family, self.components, statistics.components, factor, shared
        )
        counts = self.table_counts(statistics)
        logs = [
            _damped_rows(table, own + self.concentration, factor)
            for own, table in zip(counts[:3], self.tables[:3], strict=True)
        ]
        log_class_prior = self.log_class_prior
        if learn_class_prior:
            log_class_prior = _damped_rows(log_class_prior, counts[3], factor)
        return replace(
            self,
            components=components,
            log_mixing=logs[0],
            log_start=logs[1],
            log_moves=logs[2],
            log_class_prior=log_class_prior,
        )


def _log_proportions(
    counts: FloatArray, concentration: float, is_free: BoolArray
) -> FloatArray:
    """Return logs of proportions of counts along the last axis."""
    shares = np.where(is_free, np.maximum(counts, 0.0) + concentration, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(shares / shares.sum(axis=-1, keepdims=True))


def _damped_rows(logs: FloatArray, counts: FloatArray, factor: float) -> FloatArray:
    """Damp the rows of a table one by one, over what is possible in each."""
    result = logs.copy()
    for place in np.ndindex(logs.shape[:-1]):
        free = np.isfinite(logs[place])
        if free.sum() > 1:
            result[place][free] = damped_logs(
                logs[place][free], counts[place][free], factor
            )
    return result
