"""The table of a search, the rule of one standard error, and efforts."""

from __future__ import annotations

import numpy as np
import pytest

from hybridmix.training.budget import Budget, check_effort
from hybridmix.training.leaderboard import (
    Trial,
    leaderboard,
    mean_and_error,
    simplest_within_noise,
    with_shares,
)


def test_the_table_is_sorted_and_plain() -> None:
    trials = [Trial("diag", -2.0, 0.1, 1.0), Trial("full", -1.0, 0.2, 2.0)]
    table = leaderboard(with_shares(trials, {"full": 1.0}))
    assert [row["candidate"] for row in table] == ["full", "diag"]
    assert [row["share"] for row in table] == [1.0, 0.0]
    assert list(table[0]) == ["candidate", "score", "standard_error", "seconds", "share"]


def test_a_weight_of_two_is_two_rows() -> None:
    scores = np.array([1.0, 4.0, 2.0])
    weighted = mean_and_error(scores, np.array([2.0, 1.0, 3.0]))
    repeated = mean_and_error(np.repeat(scores, [2, 1, 3]))
    assert weighted == pytest.approx(repeated)


def test_differences_are_paired() -> None:
    generator = np.random.default_rng(0)
    rows = 10.0 * generator.normal(size=100)  # rows differ much more than candidates
    simple, better = rows, rows + 0.1 + 0.01 * generator.normal(size=100)
    assert simplest_within_noise([simple, better]) == 1
    noisy = rows + 0.1 + 2.0 * generator.normal(size=100)
    noisy += rows.mean() + 0.1 - noisy.mean()
    assert simplest_within_noise([simple, noisy]) == 0
    assert simplest_within_noise([better, simple]) == 0


def test_a_single_row_never_tells_candidates_apart() -> None:
    assert simplest_within_noise([np.array([0.0]), np.array([9.0])]) == 0


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough", 3, 0.5])
def test_efforts_are_words_or_seconds(effort: str | float) -> None:
    check_effort("effort", effort)


@pytest.mark.parametrize("effort", ["slow", 0, -1.0, True, None, float("nan"), np.inf])
def test_other_efforts_are_refused(effort: object) -> None:
    with pytest.raises(ValueError, match="effort="):
        check_effort("effort", effort)


def test_only_seconds_run_out() -> None:
    assert Budget(1e-6).is_spent()
    assert not Budget(1000.0).is_spent()
    assert Budget(1000.0).is_spent(reserve=2000.0)
    assert not Budget("thorough").is_spent(reserve=2000.0)
    assert not Budget("fast").searches
