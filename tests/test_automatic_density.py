"""Automatic choices of densities, imputers and detectors."""

import json
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import hybridmix
from hybridmix import MixtureDensity, MixtureImputer, MixtureOutlierDetector, progress
from hybridmix.data.rows import Rows
from hybridmix.training import density, selection
from hybridmix.training.candidates import Choice, TableSize, candidate_chains
from hybridmix.training.families import Structure
from hybridmix.training.holdout import distinct_numbers

ESTIMATORS = [MixtureDensity, MixtureImputer, MixtureOutlierDetector]


def punched(X, share, seed=0):
    X = np.array(X, dtype=float)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(c, 0.5, size=(80, 2)) for c in (0, 4, 8, 12)])


def chosen(model):
    [row] = [row for row in model.leaderboard_ if row["share"] == 1.0]
    return row


# What is chosen -----------------------------------------------------------------------


def test_the_leaderboard_says_what_was_chosen(clusters):
    model = MixtureDensity(random_state=0).fit(clusters)
    scores = [row["score"] for row in model.leaderboard_]
    assert scores == sorted(scores, reverse=True)
    assert model.n_components_ == 4
    assert chosen(model)["candidate"].startswith(
        f"{model.covariance_type_}, 4 components"
    )
    assert sum(row["share"] for row in model.leaderboard_) == 1.0
    assert all(row["seconds"] > 0.0 for row in model.leaderboard_)


def test_scores_are_log_densities_in_the_units_of_the_table(clusters):
    one = MixtureDensity(random_state=0).fit(clusters)
    other = MixtureDensity(random_state=0).fit(1000.0 * clusters)
    shift = 2.0 * np.log(1000.0)
    assert chosen(one)["score"] - shift == pytest.approx(chosen(other)["score"])
    assert chosen(one)["score"] == pytest.approx(one.score(clusters), abs=0.3)


def test_noise_gets_the_simplest_model():
    X = np.random.default_rng(0).normal(size=(100, 5))
    for estimator in ESTIMATORS:
        model = estimator(random_state=0).fit(X)
        assert (model.covariance_type_, model.n_components_) == ("diag", 1)


def test_an_imputer_without_anything_to_go_by_fills_in_means():
    rng = np.random.default_rng(1)
    X = punched(np.exp(2.0 * rng.normal(size=(120, 4))), 0.25)
    filled = MixtureImputer(random_state=0).fit_transform(X)
    means = np.broadcast_to(np.nanmean(X, axis=0), X.shape)
    np.testing.assert_allclose(filled[np.isnan(X)], means[np.isnan(X)])


def test_an_imputer_is_judged_by_hidden_cells():
    X = punched(load_iris().data, 0.2)
    row = chosen(MixtureImputer(random_state=0).fit(X))
    assert -0.5 < row["score"] < 0.0  # the means have -1


# What is given ------------------------------------------------------------------------


def test_given_options_are_fixed(clusters):
    by_type = MixtureDensity(covariance_type="diag", random_state=0).fit(clusters)
    assert {row["candidate"].split(",")[0] for row in by_type.leaderboard_} == {"diag"}
    by_number = MixtureDensity(3, random_state=0).fit(clusters)
    assert by_number.n_components_ == 3
    assert {row["candidate"].split(", ")[1] for row in by_number.leaderboard_} == {
        "3 components"
    }
    by_prior = MixtureDensity(covariance_prior=7.0, random_state=0).fit(clusters)
    assert by_prior.covariance_prior_ == 7.0
    assert not any("prior" in row["candidate"] for row in by_prior.leaderboard_)
    both = MixtureDensity(2, covariance_type="tied").fit(clusters)
    assert both.leaderboard_ == []


def test_given_numbers_are_chosen_by_bic_or_with_the_covariances(clusters):
    bic = MixtureDensity([2, 4], covariance_type="full", random_state=0).fit(clusters)
    assert set(bic.bic_) == {2, 4}
    assert bic.leaderboard_ == []
    free = MixtureDensity([2, 4], random_state=0).fit(clusters)
    assert free.n_components_ == 4
    assert len(free.leaderboard_) > 2


def test_a_start_fixes_what_it_has(clusters):
    first = MixtureDensity(2, covariance_type="tied", random_state=0).fit(clusters)
    again = MixtureDensity(init=first).fit(clusters)
    assert (again.covariance_type_, again.n_components_) == ("tied", 2)
    centres = MixtureDensity(init=[[0.0, 0.0], [8.0, 8.0], [12.0, 12.0]]).fit(clusters)
    assert centres.n_components_ == 3


def test_the_models_of_version_0_1_can_be_had(clusters):
    old = {"covariance_type": "full", "covariance_prior": 1.0, "random_state": 0}
    model = MixtureImputer((1, 2, 4, 8), **old).fit(clusters)
    assert set(model.bic_) >= {1, 2, 4}


# Effort -------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fast_does_not_search(estimator, clusters):
    model = estimator(effort="fast", random_state=0).fit(clusters)
    assert model.leaderboard_ == []
    assert model.covariance_type_ == "full"


def test_seconds_end_a_search(clusters):
    model = MixtureDensity(effort=1e-3, random_state=0).fit(clusters)
    assert len(model.leaderboard_) == 1


def test_wrong_efforts_are_refused(clusters):
    with pytest.raises(ValueError, match="effort='slow' is not one of fast"):
        MixtureDensity(effort="slow").fit(clusters)


def test_thorough_tries_more(clusters):
    options = {"covariance_type": "diag", "random_state": 0}
    thorough = MixtureDensity(effort="thorough", **options).fit(clusters)
    balanced = MixtureDensity(**options).fit(clusters)
    assert len(thorough.leaderboard_) > len(balanced.leaderboard_)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 15])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_tiny_tables(estimator, n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 3))
    X[::2, 1] = np.nan
    X[0, 1] = 1.0
    model = estimator(random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()


def test_wide_tables_with_holes_do_without_full_covariances():
    size = TableSize(3000, 3000, 200, 0, has_holes=True)
    structure = Structure("full", "auto", "common", "auto", 1e-6, 1.0)
    chains = candidate_chains(Choice(True, True), structure, [1], size, False)
    types = {one.structure.covariance_type for chain in chains for one in chain}
    assert types == {"diag", "subspace"}


def test_what_takes_too_long_is_not_compared(monkeypatch, clusters):
    monkeypatch.setattr("hybridmix.training.candidates._COSTLY", 0.0)
    given = MixtureDensity(3, random_state=0).fit(clusters)
    assert (given.n_components_, given.leaderboard_) == (3, [])
    free = MixtureDensity(covariance_type="full", random_state=0).fit(clusters)
    assert (free.n_components_, free.leaderboard_) == (1, [])


# Rows --------------------------------------------------------------------------------


def test_weights_are_repetitions(clusters):
    X = punched(clusters[::3], 0.1)
    weights = np.random.default_rng(0).integers(0, 3, size=len(X))
    model = MixtureDensity(random_state=0)
    weighted = clone(model).fit(X, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0))
    for one, other in zip(weighted.leaderboard_, repeated.leaderboard_, strict=True):
        assert one["candidate"] == other["candidate"]
        assert one["score"] == pytest.approx(other["score"], rel=1e-6)


def test_equal_rows_have_one_number():
    real = np.array([[1.0, 0.0, 1.0, 0.0], [2.0, 2.0, 2.0, 0.0]])
    observed = np.array([[True, True, True, True], [True, True, True, False]])
    numbers = distinct_numbers(Rows(real, observed, np.zeros((0, 4), int)))
    assert numbers[0] == numbers[2]
    assert len(set(numbers.tolist())) == 3


def test_same_seed_same_choice(clusters):
    one, other = (MixtureDensity(random_state=3).fit(clusters) for _ in range(2))
    np.testing.assert_array_equal(one.means_, other.means_)
    assert [row["score"] for row in one.leaderboard_] == [
        row["score"] for row in other.leaderboard_
    ]


def test_large_tables_are_sampled(monkeypatch, clusters):
    monkeypatch.setattr(selection, "_MOST_ROWS", 100)
    model = MixtureDensity(random_state=0).fit(clusters)
    assert model.n_components_ == 4


def test_mixed_and_categorical_tables():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=200)
    X = np.column_stack(
        [kind, (kind + (rng.random(200) < 0.1)) % 2, rng.integers(3, size=200)]
    )
    model = MixtureImputer(categorical_features=[0, 1, 2], random_state=0).fit(X)
    assert model.covariance_type_ is None
    assert model.n_components_ > 1
    mixed = MixtureDensity(categorical_features=[0, 1], random_state=0).fit(X)
    assert mixed.covariance_type_ == "diag"


# Around it ----------------------------------------------------------------------------


def test_no_warnings_of_candidates():
    X = np.repeat(np.eye(3), 8, axis=0)  # three distinct rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for estimator in ESTIMATORS:
            estimator(random_state=0).fit(X)


def test_an_interrupt_keeps_what_was_found(clusters, monkeypatch):
    scores = []

    def interrupted(self, candidate, number):
        scores.append(candidate)
        if len(scores) == 4:
            raise KeyboardInterrupt
        return fitted(self, candidate, number)

    fitted = selection._Race._fitted
    monkeypatch.setattr(selection._Race, "_fitted", interrupted)
    with pytest.warns(UserWarning, match="Interrupted"):
        model = MixtureDensity(random_state=0).fit(clusters)
    assert model.interrupted_
    assert 1 <= len(model.leaderboard_) <= 2


def test_an_interrupt_before_anything_is_an_interrupt(clusters, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(selection._Race, "_fitted", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MixtureDensity(random_state=0).fit(clusters)


def test_progress_is_announced(clusters):
    steps = []
    with progress.listening(steps.append):
        MixtureDensity(random_state=0).fit(clusters)
    search = [step for step in steps if step.task == "search"]
    assert search[-1].done == search[-1].total
    assert all(step.done <= step.total for step in search)
    first = [step.task for step in steps].index("EM")
    assert {step.task for step in steps[:first]} == {"search"}


def test_choices_are_saved(clusters, tmp_path):
    model = MixtureDensity(random_state=0).fit(clusters)
    hybridmix.save(model, tmp_path / "model.hmx")
    loaded = hybridmix.load(tmp_path / "model.hmx")
    assert loaded.leaderboard_ == model.leaderboard_
    assert loaded.covariance_type_ == model.covariance_type_


@pytest.mark.parametrize(
    "damage",
    [
        lambda table: table.append("x"),
        lambda table: table[0].pop("score"),
        lambda table: table[0].update(score=float("nan")),
        lambda table: table[0].update(candidate=3),
    ],
)
def test_damaged_leaderboards_are_refused(damage, clusters):
    model = MixtureDensity(3, random_state=0).fit(clusters)
    damage(model.leaderboard_)
    with pytest.raises(ValueError, match="leaderboard_"):
        model.check_consistent()


def test_reports_show_the_leaderboard(clusters):
    model = MixtureDensity(3, random_state=0).fit(clusters)
    page = hybridmix.report(model, clusters).html
    assert "Candidates that were tried" in page
    assert chosen(model)["candidate"] in page


# Command line ---------------------------------------------------------------------------


def test_the_command_line_shows_the_leaderboard(clusters, tmp_path, capsys):
    pytest.importorskip("typer")
    from hybridmix.cli import main

    table, model = tmp_path / "table.csv", tmp_path / "model.hmx"
    np.savetxt(table, clusters[::3] + 0.001, delimiter=",", header="a,b", comments="")
    assert main(["fit", str(table), "-o", str(model), "--components", "2"]) == 0
    assert "candidates were compared on held-out rows" in capsys.readouterr().err
    assert main(["inspect", str(model)]) == 0
    shown = capsys.readouterr().out
    assert "candidate" in shown
    assert "100 %" in shown
    assert main(["inspect", str(model), "--json"]) == 0
    [first, *_] = json.loads(capsys.readouterr().out)["leaderboard"]
    assert set(first) == {"candidate", "score", "standard_error", "seconds", "share"}
    assert main(["fit", str(table), "-o", str(model), "--effort", "fast"]) == 0
    assert hybridmix.load(model).leaderboard_ == []
    assert main(["fit", str(table), "-o", str(model), "--effort", "slow"]) == 2
    assert "--effort='slow' is not one of fast" in capsys.readouterr().err


def test_large_tables_start_from_a_fit_to_a_sample(monkeypatch, clusters):
    monkeypatch.setattr(density, "_LARGE", 200)
    monkeypatch.setattr(density, "_SAMPLE", 150)
    model = MixtureDensity(random_state=0).fit(clusters)
    assert model.n_components_ == 4
    assert model.converged_
