"""Which networks suit a table of some size: what a search tries."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hybridmix.training.budget import Budget
from hybridmix.training.discriminative import Discrimination
from hybridmix.training.plan import Automatic, Candidate, TableSize, structures
from hybridmix.training.run import ClassifierOptions


@dataclass(frozen=True)
class NetworkStation(Discrimination):
    """A training of a network that goes on from the one before.

    Attributes
    ----------
    training : str
        "stages" or "joint".
    """

    training: str = "stages"

    @classmethod
    def of(cls, given: Discrimination, training: str) -> NetworkStation:
        """Return a station of this training, with the options of another one."""
        values = {field.name: getattr(given, field.name) for field in fields(given)}
        return cls(**values, training=training)


@dataclass(frozen=True, eq=False)
class NetworkCandidate(Candidate):
    """A structure, and the trainings of a network that follow its EM."""

    def values(self, station: int) -> dict[str, object]:
        """Return the options that distinguish it, after this many of its stations."""
        values = super().values(station)
        values.pop("objective", None)
        values.pop("tradeoff", None)
        if station:
            values["training"] = self._training(station)
        return values

    def name(self, station: int = 0) -> str:
        """Return what to call it, after this many of its stations."""
        words, _, _ = super().name(0).rpartition(", ")
        return f"{words}, {self._training(station) if station else 'mixture'}"

    def _training(self, station: int) -> str:
        trained = self.stations[station - 1]
        assert isinstance(trained, NetworkStation), "networks have stations of their own"
        return trained.training


def network_candidates(
    options: ClassifierOptions, automatic: Automatic, size: TableSize, budget: Budget
) -> list[Candidate]:
    """Return the networks to try, from the simplest to the largest.

    Their structures are those of a classifier. See `candidates` for the parameters.
    """
    assert options.network is not None, "the options are those of a network"
    trainings: tuple[str, ...] = (options.network.training,)
    if budget.searches and options.network.chooses_training:
        trainings = ("stages", "joint")
    if not budget.searches:
        # What the options have suits the number of rows.
        automatic = Automatic(False, False, False)
    stations = tuple(NetworkStation.of(options.discrimination, t) for t in trainings)
    return [
        NetworkCandidate(own, stations)
        for own in structures(options, automatic, size, budget)
    ]
