"""Filling of hidden values in sequences, against interpolation in time.

Japanese vowels: models are trained on the complete training sequences. In test sequences,
a fifth of the values, a fifth of the frames, or three of ten columns of each sequence are
hidden. Errors are root mean squares over the hidden values, in standard deviations of the
training columns, as means over draws of what is hidden. A column that is hidden as a
whole cannot be interpolated, and gets its mean. `IterativeImputer` sees single frames.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    parse_options,
    print_table,
    say,
    verdict,
    write_table,
)
from sequence_data import (
    Frames,
    Sequences,
    Split,
    column_statistics,
    interpolated,
    load_split,
    punched,
)
from sequence_ours import available

import hybridmix

INTERPOLATION = "interpolation in time"
# What is hidden and how much; the largest error, as a multiple of interpolation's.
HIDDEN = {"values": (0.2, 1.1), "frames": (0.2, 1.1), "columns": (0.3, 0.5)}
DRAWS = 5

Fill = Callable[[Frames], Frames]


def column_means(train: Sequences) -> Fill:
    means, _ = column_statistics(train.X)
    return lambda X: [np.where(np.isnan(frames), means, frames) for frames in X]


def interpolation(train: Sequences) -> Fill:
    means, _ = column_statistics(train.X)
    return partial(interpolated, column_means=means)


def iterative_imputer(train: Sequences) -> Fill:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    imputer = IterativeImputer(random_state=0).fit(np.concatenate(train.X))
    return lambda X: [imputer.transform(frames) for frames in X]


def density(train: Sequences, autoregressive: bool) -> Fill:
    model = hybridmix.HMMDensity(autoregressive=autoregressive, random_state=0)
    return model.fit(train.X).impute


def classifier(train: Sequences, autoregressive: bool) -> Fill:
    model = hybridmix.HybridHMMClassifier(autoregressive=autoregressive, random_state=0)
    return model.fit(train.X, train.y).impute


def methods() -> dict[str, Callable[[Sequences], Fill]]:
    found: dict[str, Callable[[Sequences], Fill]] = {
        INTERPOLATION: interpolation,
        "column means": column_means,
        "IterativeImputer": iterative_imputer,
    }
    for name, make in {"HMMDensity": density, "HybridHMMClassifier": classifier}.items():
        if available(name):
            found[name] = partial(make, autoregressive=False)
            found[f"{name}, autoregressive"] = partial(make, autoregressive=True)
    return found


def error(filled: Frames, test: Sequences, holed: Sequences, scale: np.ndarray) -> float:
    """Return the root mean square error of the hidden values."""
    errors = [
        ((x - truth) / scale)[np.isnan(holes)]
        for x, truth, holes in zip(filled, test.X, holed.X, strict=True)
    ]
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def measure(name: str, fill: Fill, split: Split, draws: int) -> Row:
    _, scale = column_statistics(split.train.X)
    row: Row = {"method": name}
    for kind, (share, _) in HIDDEN.items():
        found = []
        for seed in range(draws):
            holed = punched(split.test, kind, share, seed)
            found.append(error(fill(holed.X), split.test, holed, scale))
        row[kind] = float(np.mean(found))
    return row


def with_verdicts(rows: Sequence[Row]) -> list[Row]:
    """Compare the errors of our methods with interpolation's."""
    reference = next(row for row in rows if row["method"] == INTERPOLATION)
    compared = []
    for row in rows:
        line = dict(row)
        for kind, (_, target) in HIDDEN.items():
            line[f"{kind}_ratio"] = row[kind] / reference[kind]
            if row["method"].startswith("H"):
                line[f"{kind}_verdict"] = verdict(line[f"{kind}_ratio"], target)
        compared.append(line)
    return compared


def run(options: Options) -> None:
    try:
        split = load_split(options.data, "japanese_vowels")
    except MissingDataError as missing:
        print(f"LEFT OUT: {missing}", flush=True)
        return
    draws = 1 if options.quick else DRAWS
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in methods().items():
            rows.append(measure(name, make(split.train), split, draws))
    rows = with_verdicts(rows)
    say(
        "Hidden values of Japanese vowels, in standard deviations",
        {"..._ratio": "to interpolation in time"},
    )
    print_table(rows)
    write_table("sequences_filling", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
