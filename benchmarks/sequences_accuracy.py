"""Classification of sequences, against time warping, MiniRocket and hmmlearn.

Spoken digits (fsdd): the official split; 27 and 5 training sequences per digit, drawn
several times; a speaker who was never heard, in six folds, also with the means of every
sequence removed. Japanese vowels (jv): the official split, and three more of all 640
sequences with the same numbers per speaker. BasicMotions: the official split. Holes are
in training and test sequences alike. With few labels the other training sequences are
there without their labels, which rivals have no use for.

``sequences_accuracy_splits.csv`` has a line for each split, and means over splits are in
``sequences_accuracy.csv``. Intervals have 95 %: the wider one of Wilson's, over the test
sequences of one split, and Student's over splits. Settings of all methods are fixed, or
chosen on training sequences. ``--settings`` and ``--methods`` choose some by a part of
their names; the results of the others are kept.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from common import (
    DEFAULT_RESULTS,
    MissingDataError,
    Options,
    Row,
    add_options,
    print_table,
    read_table,
    say,
    short,
    write_table,
)
from scipy import stats
from sequence_data import (
    Split,
    changed_frames,
    few_labels,
    fewer,
    load_split,
    means_removed,
    official,
    redrawn,
    unseen_speakers,
    with_deltas,
    with_holes,
)
from sequence_ours import LABELS_ALONE
from sequence_ours import methods as our_methods
from sequence_rivals import Answer, Method, rivals
from sklearn.metrics import log_loss

CONFIDENCE = 0.95
PACKAGES = ("hmmlearn", "aeon", "numba")
KEYS = ("setting", "method", "split")
HOLE_DRAWS, LABEL_DRAWS = 3, 10

Splits = Callable[[Path], Iterator[Split]]


def splits_of(
    name: str, make: Callable[..., Iterator[Split]] = official, *arguments: object
) -> Splits:
    return lambda data: make(load_split(data, name), *arguments)


def unheard(*changes: Callable[[np.ndarray], np.ndarray]) -> Splits:
    return lambda data: changed_frames(
        unseen_speakers(load_split(data, "fsdd_mfcc")), *changes
    )


# From cheap to expensive.
SETTINGS: dict[str, Splits] = {
    "basic_motions": splits_of("basic_motions"),
    "jv": splits_of("japanese_vowels"),
    "jv, three more splits": splits_of("japanese_vowels", redrawn, 3),
    "jv, 30 % of columns missing": splits_of(
        "japanese_vowels", with_holes, "columns", 0.3, HOLE_DRAWS
    ),
    "jv, 50 % of values missing": splits_of(
        "japanese_vowels", with_holes, "values", 0.5, HOLE_DRAWS
    ),
    "jv, 50 % of frames missing": splits_of(
        "japanese_vowels", with_holes, "frames", 0.5, HOLE_DRAWS
    ),
    "jv, 2 labels per class": splits_of("japanese_vowels", few_labels, 2, LABEL_DRAWS),
    "fsdd, 5 per digit": splits_of("fsdd_mfcc", fewer, 5, 10),
    "fsdd, 27 per digit": splits_of("fsdd_mfcc", fewer, 27, 5),
    "fsdd, 3 labels per class": splits_of("fsdd_mfcc", few_labels, 3, LABEL_DRAWS),
    "fsdd": splits_of("fsdd_mfcc"),
    "fsdd, deltas": lambda data: changed_frames(
        official(load_split(data, "fsdd_mfcc")), with_deltas
    ),
    "fsdd, 30 % of columns missing": splits_of(
        "fsdd_mfcc", with_holes, "columns", 0.3, HOLE_DRAWS
    ),
    "fsdd, 50 % of values missing": splits_of(
        "fsdd_mfcc", with_holes, "values", 0.5, HOLE_DRAWS
    ),
    "fsdd, 50 % of frames missing": splits_of(
        "fsdd_mfcc", with_holes, "frames", 0.5, HOLE_DRAWS
    ),
    "fsdd, unseen speaker": unheard(),
    "fsdd, unseen speaker, means removed": unheard(means_removed),
    "fsdd, unseen speaker, means removed, deltas": unheard(means_removed, with_deltas),
}
QUICK = ("basic_motions", "jv, 2 labels per class")


def figures(answer: Answer, y: np.ndarray) -> Row:
    row: Row = {"n": len(y), "correct": int(np.sum(answer.labels == y))}
    if answer.probabilities is not None:
        classes = np.arange(answer.probabilities.shape[1])
        row["log_loss"] = float(log_loss(y, answer.probabilities, labels=classes))
    return row


def measure(setting: str, number: int, split: Split, name: str, method: Method) -> Row:
    row: Row = dict(zip(KEYS, (setting, name, str(number)), strict=True))
    began = time.process_time()
    try:
        answer = method(split)
    except Exception as error:  # the others are still worth comparing
        print(f"LEFT OUT: {name} on {setting}: {short(error)}", flush=True)
        return row
    row |= figures(answer, split.test.y)
    row |= {"seconds": time.process_time() - began, "chosen": answer.chosen}
    return row


# Means and intervals --------------------------------------------------------------------


def interval(correct: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """Return a confidence interval of the share of correct answers.

    Splits that share test sequences say little about other sequences, and few splits
    may agree by chance: so the wider one of two intervals is given.
    """
    shares = correct / n
    share, size = shares.mean(), round(n.mean())
    found = stats.binomtest(round(share * size), size).proportion_ci(
        CONFIDENCE, method="wilson"
    )
    if len(n) == 1:
        return found.low, found.high
    reach = stats.t.ppf(0.5 + CONFIDENCE / 2, len(n) - 1) * stats.sem(shares)
    if 2 * reach < found.high - found.low:
        return found.low, found.high
    return max(share - reach, 0.0), min(share + reach, 1.0)


def summary(rows: Sequence[Row]) -> list[Row]:
    """Return means over splits, in per cent."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["setting"], row["method"]), []).append(row)
    lines: list[Row] = []
    for (setting, method), members in groups.items():
        if not all(row.get("n") for row in members):
            continue
        correct, n, seconds = (
            np.array([float(row[key]) for row in members])
            for key in ("correct", "n", "seconds")
        )
        losses = [float(row["log_loss"]) for row in members if row.get("log_loss")]
        low, high = interval(correct, n)
        lines.append(
            {
                "setting": setting,
                "method": method,
                "accuracy": 100.0 * float(np.mean(correct / n)),
                "low": 100.0 * low,
                "high": 100.0 * high,
                "log_loss": float(np.mean(losses)) if losses else None,
                "seconds": float(seconds.mean()),
                "splits": len(members),
            }
        )
    return lines


def merged(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Replace lines by new ones of the same key, in the order of the settings."""
    rows = {tuple(row[key] for key in KEYS): row for row in [*old, *new]}
    order = list(SETTINGS)
    known = [row for row in rows.values() if row["setting"] in order]
    return sorted(known, key=lambda row: order.index(row["setting"]))


def run(options: Options, settings: Sequence[str], wanted: Sequence[str]) -> None:
    methods = our_methods() | rivals()
    chosen = {
        name: method
        for name, method in methods.items()
        if not wanted or any(part in name for part in wanted)
    }
    rows = read_table("sequences_accuracy_splits", options)
    for setting in settings:
        try:
            splits = SETTINGS[setting](options.data)
            for number, split in enumerate(islice(splits, 1 if options.quick else None)):
                found = partial(measure, setting, number, split)
                suited = {
                    name: method
                    for name, method in chosen.items()
                    if name != LABELS_ALONE or split.train.has_unlabelled
                }
                rows = merged(rows, [found(name, m) for name, m in suited.items()])
        except MissingDataError as error:
            print(f"LEFT OUT: {setting}: {error}", flush=True)
            continue
        say(setting, {"seconds": "processor time of training and prediction"})
        print_table([line for line in summary(rows) if line["setting"] == setting])
        write_table("sequences_accuracy_splits", rows, options, PACKAGES, silent=True)
        write_table("sequences_accuracy", summary(rows), options, PACKAGES, silent=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_options(parser)
    parser.add_argument("--settings", nargs="+", default=[])
    parser.add_argument("--methods", nargs="+", default=[])
    parsed = parser.parse_args(arguments)
    results = parsed.results or (None if parsed.quick else DEFAULT_RESULTS)
    settings = [
        name
        for name in (QUICK if parsed.quick else SETTINGS)
        if not parsed.settings or any(part in name for part in parsed.settings)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(Options(parsed.data, results, parsed.quick), settings, parsed.methods)


if __name__ == "__main__":
    main()
