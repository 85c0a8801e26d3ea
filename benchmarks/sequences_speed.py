"""Time of one EM iteration of hidden Markov models, against hmmlearn and dynamax.

All begin with the same parameters on the same sequences, one model for each class, and
their log-likelihoods at the start are compared. Times are processor seconds on one
thread, medians of measurements in turn; an iteration is the difference of a longer and a
shorter fit. hmmlearn computes with scaled probabilities or, by default, with logarithms;
dynamax is compiled, in double precision, and gets sequences of equal length.

The second table has a million frames, in a thousand sequences or in one, and the memory
that a fit takes: the peak as a multiple of the frames, these included. The third one has
the training of the classifier on spoken digits.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import (
    DISTURBED,
    Contestant,
    Measure,
    MissingDataError,
    Options,
    Row,
    data_file,
    disturbance,
    measured_alone,
    milliseconds,
    parse_options,
    print_table,
    race,
    ratio,
    say,
    verdict,
    write_table,
)
from scaling import forget_peak, memory_bytes
from sequence_data import Sequences, load_split
from sequence_models import ENGINES, start_of
from sequence_ours import DIAGONAL, available
from sequence_rivals import prepared

import hybridmix

PACKAGES = ("hmmlearn", "dynamax", "jax")
SAME_LIKELIHOOD = 1e-9
FIT_SECONDS, MILLION_SECONDS, MEMORY = 5.0, 2.0, 3.0


@dataclass(frozen=True)
class Case:
    """A problem to iterate on.

    Attributes
    ----------
    source : str
        Name of a data set, or ``generated n,T,d`` for Gaussian frames of one class.
    covariance : str
    n_states, n_mixed : int
    targets : dict of str to float
        How many times faster than these rivals ours should be.
    """

    source: str
    covariance: str
    n_states: int
    n_mixed: int
    targets: dict[str, float]


ON_DIGITS = {"hmmlearn_scaling": 5.0, "hmmlearn_log": 20.0}
ELSEWHERE = {"hmmlearn_scaling": 1.0, "hmmlearn_log": 5.0}
CASES = [
    Case("basic_motions", "diag", 5, 1, ELSEWHERE),
    Case("basic_motions", "full", 5, 1, ELSEWHERE),
    Case("japanese_vowels", "diag", 5, 1, ELSEWHERE),
    Case("japanese_vowels", "full", 5, 1, ELSEWHERE),
    Case("fsdd_mfcc", "diag", 5, 1, ON_DIGITS),
    Case("fsdd_mfcc", "full", 5, 1, ON_DIGITS),
    Case("fsdd_mfcc", "diag", 5, 4, ON_DIGITS),
    Case("generated 267,30,13", "diag", 5, 1, {"dynamax": 1.8}),
    Case("generated 267,30,13", "full", 5, 1, {"dynamax": 1.8}),
]
MILLION = [
    Case("generated 1000,1000,13", "diag", 8, 1, {}),
    Case("generated 1,1000000,13", "diag", 8, 1, {}),
]
QUICK = [CASES[0], Case("generated 20,30,4", "diag", 3, 1, {"dynamax": 1.8})]
QUICK_MILLION = [Case("generated 10,100,4", "diag", 3, 1, {})]


def sequences_of(source: str, data: Path) -> Sequences:
    """Return standardised training sequences."""
    kind, _, shape = source.partition(" ")
    if kind != "generated":
        return prepared(load_split(data, source)).train
    n, length, d = map(int, shape.split(","))
    generator = np.random.default_rng(0)
    # A slow wave, so that states differ.
    wave = np.sin(2 * np.pi * (np.arange(length)[:, None] / 30 + np.arange(d) / d))
    X = [generator.standard_normal((length, d)) + wave for _ in range(n)]
    return Sequences(X, np.zeros(n, np.intp))


def set_up(
    library: str,
    what: str,
    source: str,
    data: Path,
    covariance: str,
    n_states: int,
    n_mixed: int,
    extra: int,
) -> Measure:
    """Set up a library to measure ``"seconds"`` or the ``"log_likelihood"``."""
    sequences = sequences_of(source, data)
    start = start_of(sequences, n_states, n_mixed)
    engine = ENGINES[library](sequences, start, covariance)
    if what == "log_likelihood":
        return engine.log_likelihood

    def cpu_seconds(iterations: int) -> float:
        began = time.process_time()
        engine.iterate(iterations)
        return time.process_time() - began

    def measure() -> float:
        cpu_seconds(1)
        short = cpu_seconds(1)
        return (cpu_seconds(1 + extra) - short) / extra

    return measure


def contestant(library: str, what: str, case: Case, data: Path, extra: int) -> Contestant:
    arguments = {
        "library": library,
        "what": what,
        "source": case.source,
        "data": data,
        "covariance": case.covariance,
        "n_states": case.n_states,
        "n_mixed": case.n_mixed,
        "extra": extra,
    }
    return Contestant(library, set_up, arguments, threads=1)


def measure(case: Case, options: Options, libraries: Sequence[str]) -> Row:
    repeats = 2 if options.quick else 7
    extra = {"ours": 10, "dynamax": 10}
    samples = race(
        [
            contestant(name, "seconds", case, options.data, extra.get(name, 2))
            for name in libraries
        ],
        repeats,
    )
    row: Row = {
        "sequences": case.source,
        "covariance": case.covariance,
        "K,M": f"{case.n_states},{case.n_mixed}",
    }
    times = {name: sample.median for name, sample in samples.items()}
    for name in libraries:
        row[f"{name}_ms"] = milliseconds(times.get(name))
    row["disturbed"] = disturbance(samples)
    return row


def compare(case: Case, options: Options) -> Row:
    """Compare ours with the rivals that there is a target for."""
    if not case.source.startswith("generated"):
        data_file(options.data, f"{case.source}.npz")
    row = measure(case, options, ["ours", *case.targets])
    for name, target in case.targets.items():
        faster = ratio(row[f"{name}_ms"], row["ours_ms"])
        row[f"{name}_to_ours"] = faster
        row[f"{name}_target"] = target
        row[f"{name}_verdict"] = verdict(faster, target, at_least=True)
    return row | likelihoods(case, options)


def likelihoods(case: Case, options: Options) -> Row:
    """Say how far log-likelihoods of the same parameters are apart, relatively."""
    found = [
        measured_alone(contestant(name, "log_likelihood", case, options.data, 1))
        for name in ["ours", *case.targets]
    ]
    if found[0] is None or None in found:
        return {"likelihood_difference": None}
    difference = max(abs(x - found[0]) for x in found if x is not None) / abs(found[0])
    return {
        "likelihood_difference": difference,
        "likelihood_verdict": verdict(difference, SAME_LIKELIHOOD),
    }


# A million frames -----------------------------------------------------------------------


def set_up_memory(source: str, data: Path, n_states: int) -> Measure:
    """Measure the peak of a fit over the frames, as a multiple of their size."""
    model = hybridmix.HMMDensity(
        n_states=n_states,
        topology="ergodic",
        covariance_type="diag",
        max_iter=2,
        random_state=0,
    )
    model.fit([x[:2000] for x in sequences_of("generated 10,200,13", data).X])
    sequences = sequences_of(source, data).X

    def peak() -> float:
        gc.collect()
        forget_peak()
        before = memory_bytes("VmRSS")
        model.fit(sequences)
        size = sum(x.nbytes for x in sequences)
        return 1.0 + (memory_bytes("VmHWM") - before) / size

    return peak


def million(case: Case, options: Options) -> Row:
    row = measure(case, options, ["ours", "hmmlearn_scaling"])
    seconds = row["ours_ms"] and row["ours_ms"] / 1e3
    row |= {"seconds_target": MILLION_SECONDS}
    row["seconds_verdict"] = verdict(seconds, MILLION_SECONDS)
    if available("HMMDensity"):
        arguments = {
            "source": case.source,
            "data": options.data,
            "n_states": case.n_states,
        }
        peak = measured_alone(Contestant("memory", set_up_memory, arguments, threads=1))
        row |= {"memory": peak, "memory_target": MEMORY}
        row["memory_verdict"] = verdict(peak, MEMORY)
    return row


# Training -------------------------------------------------------------------------------


def set_up_fit(data: Path, name: str, tradeoff: float | str) -> Measure:
    train = load_split(data, name).train
    model = hybridmix.HybridHMMClassifier(
        tradeoff=tradeoff, random_state=0, n_jobs=1, **DIAGONAL
    )

    def cpu_seconds() -> float:
        began = time.process_time()
        model.fit(train.X, train.y)
        return time.process_time() - began

    return cpu_seconds


def training(options: Options) -> list[Row]:
    if not available():
        return []
    name = "basic_motions" if options.quick else "fsdd_mfcc"
    try:
        data_file(options.data, f"{name}.npz")
    except MissingDataError as error:
        print(f"LEFT OUT: {error}", flush=True)
        return []
    rows = []
    # Chosen by held-out sequences, the tradeoff takes several fits and has no target.
    for tradeoff, target in ((30.0, FIT_SECONDS), ("auto", None)):
        arguments = {"data": options.data, "name": name, "tradeoff": tradeoff}
        samples = race(
            [Contestant("fit", set_up_fit, arguments, threads=1)], repeats=3, warm_ups=0
        )
        seconds = samples["fit"].median if samples else None
        row = {"sequences": name, "tradeoff": tradeoff, "cpu_seconds": seconds}
        if target is not None:
            row |= {"target": target, "verdict": verdict(seconds, target)}
        rows.append(row | {"disturbed": disturbance(samples)})
    return rows


def run(options: Options) -> None:
    notes = {
        "K,M": "states, components of each state",
        "likelihood_difference": "largest relative difference to ours, same parameters",
        "disturbed": DISTURBED,
    }
    rows = []
    for case in QUICK if options.quick else CASES:
        try:
            rows.append(compare(case, options))
        except MissingDataError as error:
            print(f"LEFT OUT: {error}", flush=True)
    say("One EM iteration, processor time of one thread", notes)
    print_table(rows)
    write_table("sequences_speed", rows, options, PACKAGES)
    rows = [
        million(case, options) for case in (QUICK_MILLION if options.quick else MILLION)
    ]
    say("A million frames", {"memory": "peak of a fit, as a multiple of the frames"})
    print_table(rows)
    write_table("sequences_speed_million", rows, options, PACKAGES)
    rows = training(options)
    say("Training of the classifier, diagonal covariances, 5 states, one thread")
    print_table(rows)
    write_table("sequences_speed_training", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
