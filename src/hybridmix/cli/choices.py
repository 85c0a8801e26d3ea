"""Which estimator the options of a command line ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hybridmix
from hybridmix.cli.labels import REGRESS
from hybridmix.cli.tables import InputError
from hybridmix.data.cells import number_of
from hybridmix.training.budget import check_effort

# What is fitted if there is a target.
MIXTURE, NETWORK = METHODS = ("mixture", "network")


@dataclass(frozen=True)
class Options:
    """Options of estimators that were given; None for those that were not."""

    components: tuple[int, ...] | None = None
    covariance: str | None = None
    objective: str | None = None
    tradeoff: float | None = None
    calibrate: bool = False
    tune: bool = False
    seed: int = 0
    jobs: int | None = None
    effort: str | float | None = None
    method: str = MIXTURE
    states: int | None = None
    topology: str | None = None
    exits: bool = False
    autoregressive: bool = False

    @property
    def in_blocks(self) -> bool:
        """Whether the estimator can be fitted to a table in blocks; regressors cannot."""
        return self.method == MIXTURE and not self.tune

    def for_rows(self, task: str | None) -> Any:
        """Return an estimator of rows; a density if there is no target."""
        refuse(
            {
                "--states": self.states,
                "--topology": self.topology,
                "--exits": self.exits,
                "--autoregressive": self.autoregressive,
            },
            "is for sequences: add --sequence NAME.",
        )
        return (
            self.density(hybridmix.MixtureDensity)
            if task is None
            else self.for_target(task)
        )

    def for_target(self, task: str) -> Any:
        """Return an estimator that predicts classes or numbers."""
        return self.regressor() if task == REGRESS else self.classifier()

    def regressor(self) -> Any:
        """Return a regressor."""
        refuse(
            {"--objective": self.objective, "--tune": self.tune},
            "is for classifiers, and the target is predicted as a number: leave it out, "
            "or add --task classify.",
        )
        if self.method == NETWORK:
            refuse(
                {"--tradeoff": self.tradeoff, "--calibrate": self.calibrate},
                "is not an option of a network that predicts a number: leave it out, or "
                "leave out --method network.",
            )
            return hybridmix.MixtureNetworkRegressor(
                random_state=self.seed, **self._structure()
            )
        return hybridmix.MixtureRegressor(
            random_state=self.seed, **self._structure(), **self._training()
        )

    def classifier(self) -> Any:
        """Return a classifier, or a search for one."""
        if self.tune and self.effort is not None:
            raise InputError(
                "--tune has neither --effort nor --seconds; leave out either it or them."
            )
        if self.tune and self.method == NETWORK:
            raise InputError(
                "--tune searches among mixtures; leave out either it or --method network."
            )
        kinds = {
            MIXTURE: hybridmix.HybridMixtureClassifier,
            NETWORK: hybridmix.MixtureNetworkClassifier,
        }
        given = {"objective": self.objective, **self._structure(), **self._training()}
        if self.tune:
            given["n_jobs"] = None
        estimator = kinds[self.method](
            unlabelled=None, random_state=self.seed, **_without_none(given)
        )
        return self._search(estimator) if self.tune else estimator

    def _structure(self) -> dict[str, Any]:
        """Return the options that all estimators have, as far as they are given."""
        return _without_none(
            {
                "n_components": _number_or_range(self.components),
                "covariance_type": self.covariance,
                "effort": self.effort,
                "n_jobs": self.jobs,
            }
        )

    def _training(self) -> dict[str, Any]:
        """Return the options of discriminative training, as far as they are given."""
        return _without_none(
            {"tradeoff": self.tradeoff, "calibrate": self.calibrate or None}
        )

    def _search(self, estimator: Any) -> Any:
        if self.objective is not None:
            raise InputError(
                "--tune searches along hybrid objectives; leave out --objective."
            )
        given = {
            "n_components": self.components,
            "covariance_type": self.covariance and [self.covariance],
            "tradeoff": None if self.tradeoff is None else [self.tradeoff],
            "n_jobs": self.jobs,
        }
        return hybridmix.HybridMixtureClassifierCV(
            estimator, random_state=self.seed, **_without_none(given)
        )

    def for_sequences(self, task: str | None) -> Any:
        """Return an estimator of sequences; a density if there is no target."""
        refuse(
            {
                "--task regress": task == REGRESS,
                "--tune": self.tune,
                f"--method {self.method}": self.method != MIXTURE,
            },
            "is not for sequences: leave it out.",
        )
        if self.components is not None and len(self.components) > 1:
            raise InputError(
                "--components: of sequences, give the number of components per state."
            )
        structure = {
            "n_states": self.states,
            "topology": self.topology,
            "exits": self.exits or None,
            "autoregressive": self.autoregressive or None,
            **self._structure(),
        }
        given = _without_none(structure)
        if task is None:
            self._refuse_of_targets()
            return hybridmix.HMMDensity(random_state=self.seed, **given)
        given |= _without_none({"objective": self.objective, **self._training()})
        return hybridmix.HybridHMMClassifier(
            unlabelled=None, random_state=self.seed, **given
        )

    def density(self, kind: type) -> Any:
        """Return an estimator of a class that needs no labels."""
        self._refuse_of_targets()
        return kind(random_state=self.seed, **self._structure())

    def _refuse_of_targets(self) -> None:
        """Refuse the options of estimators that have a target."""
        refuse(
            {
                "--objective": self.objective,
                "--tradeoff": self.tradeoff,
                "--calibrate": self.calibrate,
                "--tune": self.tune,
                f"--method {self.method}": self.method != MIXTURE,
            },
            "needs a target: add --target NAME.",
        )


def refuse(given: dict[str, Any], reason: str) -> None:
    """Refuse options that have a value; flags that are False have none."""
    for option, value in given.items():
        if value is not None and value is not False:
            raise InputError(f"{option} {reason}")


def parse_components(text: str | None) -> tuple[int, ...] | None:
    """Read ``3`` or ``1,2,4``."""
    if text is None:
        return None
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise InputError(
            f"--components {text}: give a number, or several to choose from (1,2,4)."
        )
    return numbers


def parse_effort(text: str | None, seconds: float | None = None) -> str | float | None:
    """Return an effort: a word or a number of seconds."""
    if text is not None and seconds is not None:
        raise InputError("--seconds is an --effort of its own: leave out either of them.")
    if text is None:
        return seconds
    value = number_of(text)
    effort = text if value is None else value
    try:
        check_effort("--effort", effort)
    except ValueError as error:
        raise InputError(str(error)) from None
    return effort


def _number_or_range(components: tuple[int, ...] | None) -> Any:
    is_single = components is not None and len(components) == 1
    return components[0] if components and is_single else components


def _without_none(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
