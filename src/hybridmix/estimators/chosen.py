"""What a classifier chooses by itself, and what it publishes about the choice."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from hybridmix.estimators.components import committee_of
from hybridmix.training.leaderboard import leaderboard
from hybridmix.training.plan import Automatic
from hybridmix.training.record import Fitted

if TYPE_CHECKING:
    from hybridmix.estimators.classifier import HybridMixtureClassifier
    from hybridmix.estimators.labelled import LabelledRows

AUTO = "auto"
# What the hybrid objective is trained with where nothing chooses.
USUAL_TRADEOFF = 10.0


def automatic_options(estimator: HybridMixtureClassifier) -> Automatic:
    """Return which options are chosen; nothing, if training goes on from a model."""
    if not isinstance(estimator.init, str):
        return Automatic(False, False, False)
    return Automatic(
        is_auto(estimator.covariance_type),
        is_auto(estimator.n_components),
        is_auto(estimator.tradeoff) and estimator.objective == "hybrid",
    )


def is_auto(value: Any) -> bool:
    """Return whether an option is left to the classifier."""
    return isinstance(value, str) and value == AUTO


def search_attributes(
    estimator: HybridMixtureClassifier, fitted: Fitted, rows: LabelledRows
) -> dict[str, Any]:
    """Return what to publish about a search; nothing, if there was none."""
    if not fitted.trials:
        return {}
    found: dict[str, Any] = {
        "leaderboard_": leaderboard(fitted.trials),
        "n_searched_": fitted.n_searched,
    }
    if fitted.committee is not None:
        found["committee_"] = fitted.committee
        found["members_"] = [_member(estimator, own, rows) for own in fitted.members]
    return found


def _member(
    estimator: HybridMixtureClassifier, fitted: Fitted, rows: LabelledRows
) -> HybridMixtureClassifier:
    """Return a member of a committee as a classifier with explicit options."""
    member = copy(estimator)
    # Subclasses may have constructors that do not take these options.
    member.__dict__.update(fitted.options, calibrate=False)
    learned = member._learned_attributes(fitted, rows.classes)
    member._publish({**rows.attributes, **learned})
    return member


def described_members(estimator: Any) -> list[dict[str, Any]]:
    """Describe the members of a committee, the largest share first; none without one.

    Every member has its name in the leaderboard ("candidate"), its "share", its number of
    "components" in all classes, and its "temperature".
    """
    committee = committee_of(estimator)
    if committee is None or not hasattr(estimator, "leaderboard_"):
        # The only model of sequences whose options were given is a committee of one.
        return []
    voting = [row for row in estimator.leaderboard_ if row["share"] > 0.0]
    voting.sort(key=lambda row: row["share"], reverse=True)
    return [
        {
            "candidate": row["candidate"],
            "share": share,
            "components": member.n_components,
            "temperature": calibration.temperature,
        }
        for row, (member, share, calibration) in zip(
            voting, committee.voters(), strict=True
        )
    ]
