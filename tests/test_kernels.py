"""Compiled kernels against NumPy, how they are chosen, and how they are built."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sequence_helpers import transition_tables

import hybridmix
from hybridmix import MixtureDensity, _kernels
from hybridmix._kernels import build
from hybridmix.data.rows import Rows
from hybridmix.families import FullGaussian, VariancePrior, patterns
from hybridmix.families.compiled import CompiledRows
from hybridmix.families.moments import FullParameters
from hybridmix.models.forward_backward import (
    ChainWeights,
    backward,
    forward,
    most_probable_paths,
    posteriors,
)
from hybridmix.models.packing import Packing

VARIANTS = _kernels.variants()
SOURCES = Path(build.__file__).parent
needs_kernels = pytest.mark.skipif(not VARIANTS, reason="kernels are not compiled here")
needs_compiler = pytest.mark.skipif(
    build._compiler() is None, reason="there is no C compiler here"
)
each_variant = pytest.mark.parametrize("variant", VARIANTS)


def assert_close(found, expected):
    """Arrays are equal up to 1e-10 of the largest number."""
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    finite = np.isfinite(expected)
    largest = np.abs(expected[finite]).max(initial=0.0)
    difference = np.abs(found[finite] - expected[finite]).max(initial=0.0)
    assert difference <= 1e-10 * largest


# Rows that miss different columns -------------------------------------------------------


def rows_with_holes(n, d, missing, seed=0):
    rng = np.random.default_rng(seed)
    observed = rng.random((d, n)) >= missing
    real = np.where(observed, rng.normal(size=(d, n)), 0.0)
    return Rows(real, observed, np.empty((0, n), np.int32))


def gaussians(n_components, d, tied, spread=1.0):
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(1 if tied else n_components, d, 2 * d)) / np.sqrt(2 * d)
    covariances = spread * (factors @ np.swapaxes(factors, 1, 2) + 0.1 * np.eye(d))
    return FullParameters.of(rng.normal(size=(n_components, d)), covariances)


def everything(family, rows, parameters, weights):
    prepared = family.prepare(rows)
    log_density, notes = family.evaluate(prepared, parameters)
    statistics = family.accumulate(prepared, parameters, weights, notes)
    posterior = np.full(log_density.shape, 1.0 / len(log_density))
    return {
        "log densities": log_density,
        "counts": statistics.counts,
        "first moments": statistics.first,
        "second moments": statistics.second,
        "fills": family.impute(rows, parameters, posterior).real,
        "surprise": np.stack(family.surprise(prepared, parameters, notes)),
    }


@each_variant
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.15, 0.5, 0.9])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 3), (40, 9), (121, 23)])
def test_scattered_rows(variant, tied, missing, n, d):
    rows, parameters = rows_with_holes(n, d, missing), gaussians(3, d, tied)
    family = FullGaussian(VariancePrior(np.ones(d)), tied)
    weights = np.random.default_rng(2).normal(size=(3, n))
    weights[:, ::3] = 0.0
    with _kernels.using("0"):
        expected = everything(family, rows, parameters, weights)
    with _kernels.using(variant):
        assert all(
            isinstance(group, CompiledRows) and group.kernels.name == variant
            for group in family.prepare(rows)
        )
        found = everything(family, rows, parameters, weights)
    for name in expected:
        assert_close(found[name], expected[name])


@each_variant
@pytest.mark.parametrize("spread", [1e-60, 1e60])
def test_extreme_variances(variant, spread):
    """Products of pivots neither overflow nor vanish."""
    rows, parameters = rows_with_holes(50, 24, 0.5), gaussians(2, 24, False, spread)
    family = FullGaussian(VariancePrior(np.ones(24)))
    log_densities = []
    for name in ("0", variant):
        with _kernels.using(name):
            log_densities.append(family.evaluate(family.prepare(rows), parameters)[0])
    assert_close(*log_densities)


@each_variant
def test_nearly_singular_systems(variant):
    """What is left of a variance is positive, whatever rounding makes of it."""
    parameters = gaussians(1, 6, False)
    singular = np.ones((1, 6, 6)) + 1e-13 * np.eye(6)
    parameters = FullParameters(parameters.means, singular, parameters.whiteners)
    rows = rows_with_holes(30, 6, 0.7)
    family = FullGaussian(VariancePrior(np.ones(6)))
    with _kernels.using(variant):
        log_density, _ = family.evaluate(family.prepare(rows), parameters)
    assert np.isfinite(log_density).all()


@needs_kernels
def test_frequent_patterns_are_not_scattered(monkeypatch):
    monkeypatch.setattr(patterns, "_FREQUENT", 10)
    rows = rows_with_holes(40, 5, 0.3)
    rows.observed[:, :20] = rows.observed[:, :1]
    with _kernels.using(VARIANTS[-1]):
        kinds = [type(group).__name__ for group in patterns.group_rows(rows)]
    assert "UniformRows" in kinds
    assert "CompiledRows" in kinds


@needs_kernels
def test_fits_agree_and_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr("hybridmix.evaluation._SMALL", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12)) + 4.0 * rng.integers(2, size=(3000, 1))
    X[rng.random(X.shape) < 0.3] = np.nan

    def fit(name, n_jobs):
        with _kernels.using(name):
            density = MixtureDensity(
                2, covariance_type="full", max_iter=5, tol=0.0, random_state=0
            )
            with pytest.warns(UserWarning, match="converge"):
                return density.set_params(n_jobs=n_jobs).fit(X)

    one, two, numpy = fit(VARIANTS[-1], 1), fit(VARIANTS[-1], 2), fit("0", 1)
    np.testing.assert_array_equal(one.covariances_, two.covariances_)
    np.testing.assert_array_equal(one.means_, two.means_)
    np.testing.assert_allclose(
        one.covariances_, numpy.covariances_, rtol=1e-8, atol=1e-10
    )


# Sequences ------------------------------------------------------------------------------

LENGTHS = {
    "one long": [200],
    "few": [40, 3, 17],
    "many": list(range(1, 30)),
    "a frame each": [1, 1, 1],
}


def passes(packing, log_emission, chains, weights):
    passed = forward(packing, log_emission.copy(), chains)
    back = backward(passed)
    alpha = passed.alpha.copy()
    states, transitions = posteriors(passed, back, weights)
    score, _ = most_probable_paths(packing, log_emission.copy(), chains)
    return {
        "log likelihood": passed.log_likelihood,
        "alpha": alpha,
        "scale": passed.scale,
        "arriving": back.arriving[:, :, packing.n_sequences :],
        "states": states,
        "transitions": transitions,
        "score": score,
    }


@each_variant
@pytest.mark.parametrize("topology", ["ergodic", "left-right"])
@pytest.mark.parametrize("n_states", [1, 3, 8, 13])
@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_passes_over_sequences(variant, topology, n_states, n_groups, lengths):
    rng = np.random.default_rng(0)
    lengths = np.array(LENGTHS[lengths])
    groups = rng.integers(n_groups, size=len(lengths))
    packing = Packing(lengths, groups, n_groups)
    n_planes = 2 if n_groups == 1 else 1
    tables = [
        transition_tables(topology, n_states, True, rng)
        for _ in range(n_groups * n_planes)
    ]
    shape = (n_groups, n_planes, n_states)
    moves = np.stack([own for _, own in tables]).reshape(*shape, n_states + 1)
    chains = ChainWeights(
        np.stack([start for start, _ in tables]).reshape(shape),
        moves[..., :-1],
        moves[..., -1],
    )
    log_emission = rng.normal(size=(n_planes, n_states, packing.n_frames))
    weights = rng.normal(size=(n_planes, len(lengths)))
    found = {}
    for name in ("0", variant):
        with _kernels.using(name):
            found[name] = passes(packing, log_emission, chains, weights)
            path = most_probable_paths(packing, log_emission.copy(), chains)[1]
            found[name]["path"] = path.astype(float)
    for name in found["0"]:
        assert_close(found[variant][name], found["0"][name])


@each_variant
def test_of_equal_paths_the_first_state_is_taken(variant):
    packing = Packing(np.array([5]))
    chains = ChainWeights(np.zeros((1, 1, 3)), np.zeros((1, 1, 3, 3)), None)
    with _kernels.using(variant):
        _, path = most_probable_paths(packing, np.zeros((1, 3, 5)), chains)
    np.testing.assert_array_equal(path, np.zeros((1, 5)))


# The choice -----------------------------------------------------------------------------


def test_versions_say_which_kernels_are_used(capsys):
    with _kernels.using("0"):
        hybridmix.show_versions()
    shown = capsys.readouterr().out
    assert f"hybridmix     {hybridmix.__version__}\n" in shown
    assert "kernels       NumPy (HYBRIDMIX_KERNELS says so)\n" in shown
    hybridmix.show_versions()
    assert f"kernels       {_kernels.describe()}\n" in capsys.readouterr().out


def described(folder=None, **variables):
    """Let a new process say which kernels it uses."""
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from hybridmix import _kernels as k; print(k.describe())",
        ],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(folder or SOURCES.parents[1]), **variables},
    )
    return run.stdout or run.stderr


def test_the_environment_chooses_kernels():
    assert described(HYBRIDMIX_KERNELS="0") == "NumPy (HYBRIDMIX_KERNELS says so)\n"
    for name in VARIANTS:
        assert described(HYBRIDMIX_KERNELS=name).startswith("C, with ")
    if VARIANTS:
        assert "the best that this processor has" in described(HYBRIDMIX_KERNELS="")
        wrong = described(HYBRIDMIX_KERNELS="mmx")
        assert "HYBRIDMIX_KERNELS is 'mmx'; here it can be one of 0, plain" in wrong


@pytest.fixture
def copied(tmp_path):
    """A copy of the package without its library."""
    ignored = shutil.ignore_patterns("*.so", "*.dll", "__pycache__")
    shutil.copytree(SOURCES.parent, tmp_path / "hybridmix", ignore=ignored)
    return tmp_path


def build_in(folder, **variables):
    return subprocess.run(
        [sys.executable, str(folder / "hybridmix" / "_kernels" / "build.py")],
        capture_output=True,
        text=True,
        env=variables,
    )


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PATH": ""}, "no C compiler was found"),
        ({"CC": "/there/is/none"}, "/there/is/none could not be run"),
        ({"CC": f"{sys.executable} -c 1/0"}, "failed: Traceback"),
    ],
)
def test_without_a_compiler_numpy_is_used(copied, variables, message):
    run = build_in(copied, **variables)
    assert (run.returncode, run.stderr) == (1, "")
    assert message in run.stdout
    assert described(copied) == (
        "NumPy (there was no C compiler when hybridmix was installed)\n"
    )


@needs_compiler
def test_kernels_are_built_without_warnings(copied):
    run = build_in(
        copied, CC=" ".join([*build._compiler(), "-Werror"]), PATH="/usr/bin:/bin"
    )
    assert run.returncode == 0, run.stdout
    assert described(copied).startswith("C, with ")
    folder = copied / "hybridmix" / "_kernels"
    assert {path.suffix for path in folder.iterdir()} <= {
        ".c",
        ".h",
        ".py",
        ".so",
        ".dll",
        "",
    }


@needs_compiler
def test_libraries_that_do_not_fit_are_not_used(copied):
    source = copied / "hybridmix" / "_kernels" / "kernels.c"
    source.write_text(
        re.sub(r"#define INTERFACE \d+", "#define INTERFACE 0", source.read_text())
    )
    assert build_in(copied, PATH="/usr/bin:/bin").returncode == 0
    assert "was built by another version; install again" in described(copied)
    library = copied / "hybridmix" / "_kernels" / build.LIBRARY.name
    library.write_bytes(b"not a library")
    assert "cannot be loaded" in described(copied)


def test_kernels_refuse_arrays_with_gaps():
    with pytest.raises(ValueError, match="not contiguous"):
        _kernels.address(np.zeros((4, 4))[:, ::2])
