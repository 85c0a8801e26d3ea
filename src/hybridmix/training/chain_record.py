"""Options and results of the training of hidden Markov models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hybridmix._checks import check_flag, check_number
from hybridmix._typing import FloatArray
from hybridmix.data import Schema
from hybridmix.models.calibration import Calibration
from hybridmix.models.chain_committee import ChainCommittee
from hybridmix.models.chains import Chains
from hybridmix.training.chain_starts import ChainShape
from hybridmix.training.classes import Estimation
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.families import Structure
from hybridmix.training.leaderboard import Trial
from hybridmix.training.record import INTERRUPTED


@dataclass(frozen=True)
class ChainOptions:
    """The options of the training of hidden Markov models; checked when made.

    Attributes
    ----------
    shape : ChainShape
        States, components and topology.
    structure : Structure
        What components look like.
    estimation : Estimation
        Options of EM; the tolerance is per frame.
    discrimination : Discrimination
        Options of what follows EM; the tradeoff is per frame.
    length_power : float
        Log joint densities are divided by this power of the length where classes are
        compared.
    class_prior : str or ndarray of shape (C,)
        "empirical", "uniform" or class probabilities.
    unlabelled_weight : float or "auto"
        What an unlabelled sequence counts, compared with a labelled one.
    calibrate : bool
        Whether class probabilities are corrected by held-out sequences.
    """

    shape: ChainShape
    structure: Structure
    estimation: Estimation
    discrimination: Discrimination
    length_power: float
    class_prior: str | FloatArray
    unlabelled_weight: float | str
    calibrate: bool

    def __post_init__(self) -> None:
        check_number("length_power", self.length_power, 0.0, 2.0)
        weight = self.unlabelled_weight
        check_number("unlabelled_weight", weight, 0.0, 1e9, or_word="auto")
        check_flag("calibrate", self.calibrate)
        if self.shape.autoregressive and not self.can_be_autoregressive:
            raise ValueError(
                f"solver={self.discrimination.solver!r} needs damped M-steps, which "
                "autoregressive emissions do not have: use solver='lbfgs' or "
                "autoregressive=False."
            )

    @property
    def can_be_autoregressive(self) -> bool:
        """Whether the solver can train frames that depend on the frame before."""
        return "damped" not in self.discrimination.needs


@dataclass(frozen=True)
class FittedChains:
    """Trained hidden Markov models and how they came about; not to be changed.

    Attributes
    ----------
    schema : Schema
        Of the frames.
    model : Chains
        The models, in the scale of the schema.
    options : ChainOptions
        Of the training; what a search has chosen is in them.
    converged : bool
        Whether the last solver met its tolerance.
    n_iter : int
        Iterations of the last solver.
    history : mapping of str to ndarray
        What changed over these iterations, as means per sequence in the units of the
        table.
    unlabelled_weight : float
        What an unlabelled sequence counted.
    calibration : Calibration
        Of the class probabilities.
    messages : tuple of str
        What the user should be warned about.
    trials : tuple of Trial
        What a search has tried; empty without a search.
    committee : ChainCommittee or None
        What is asked for the class, instead of the model.
    n_searched : int
        How many sequences the search has looked at; 0 without a search.
    """

    schema: Schema
    model: Chains
    options: ChainOptions
    converged: bool
    n_iter: int
    history: Mapping[str, FloatArray]
    unlabelled_weight: float = 1.0
    calibration: Calibration = field(default_factory=Calibration)
    messages: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    committee: ChainCommittee | None = None
    n_searched: int = 0

    @property
    def interrupted(self) -> bool:
        """Whether the user ended training before it was done."""
        return INTERRUPTED in self.messages
