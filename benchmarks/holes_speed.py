"""Default training on a table with holes, against boosting that takes holes.

`HybridMixtureClassifier()` searches: it tries several structures with two tradeoffs each,
calibrates them, and trains a committee. scikit-learn's `HistGradientBoostingClassifier`,
with its defaults, grows a hundred trees for each class. Both get 5,000 rows of about 36
columns, half of whose cells are missing, and are scored on other rows with as many holes.

On two threads the time is that of the clock. On one thread it is that of the processor,
which other processes disturb less.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from common import (
    DISTURBED,
    Contestant,
    Measure,
    MissingDataError,
    Options,
    Row,
    disturbance,
    load_arrays,
    load_xy,
    parse_options,
    print_table,
    punch_holes,
    race,
    say,
    verdict,
    write_table,
)
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from hybridmix import HybridMixtureClassifier

MISSING = 0.5
N_ROWS, N_TEST_ROWS = 5_000, 2_500
TARGET, REPEATS = 2.0, 3
N_LARGEST_CLASSES, BANDS = 6, (20, 60, 110, 160)
OURS, THEIRS = "hybridmix", "boosting"

Table = tuple[np.ndarray, np.ndarray]


# Tables ---------------------------------------------------------------------------


def satellite(data: Path) -> Table:
    """Return four bands of each pixel and of its eight neighbours, six classes."""
    loaded = load_arrays(data, "indian_pines")
    labels = loaded["gt"]
    padded = np.pad(loaded["cube"][:, :, BANDS], ((1, 1), (1, 1), (0, 0)), mode="edge")
    height, width = labels.shape
    shifted = [padded[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    sizes = np.bincount(labels.ravel())[1:]
    is_chosen = np.isin(labels, 1 + np.argsort(-sizes)[:N_LARGEST_CLASSES])
    return np.concatenate(shifted, axis=2)[is_chosen].astype(float), labels[is_chosen]


def digits(data: Path) -> Table:
    """Return digits as means of six by six squares of pixels."""
    loaded = load_arrays(data, "mnist")
    images = loaded["X_train"][:, 2:26, 2:26].astype(float)
    X = images.reshape(-1, 6, 4, 6, 4).mean(axis=(2, 4)).reshape(-1, 36)
    return X, loaded["y_train"]


def ailerons(data: Path) -> Table:
    """Return readings of an aeroplane, with thirds of the target as classes."""
    X, y = load_xy(data, "ailerons")
    return X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


TABLES: dict[str, Callable[[Path], Table]] = {
    "satellite": satellite,
    "digits": digits,
    "ailerons": ailerons,
}


def parts(name: str, data: Path, quick: bool) -> tuple[Table, Table]:
    """Return rows to train on and other rows, all with holes."""
    X, y = TABLES[name](data)
    order = np.random.default_rng(1).permutation(len(y))
    X, y = punch_holes(X[order], MISSING), y[order]
    n_rows = 300 if quick else N_ROWS
    stop = n_rows + N_TEST_ROWS
    return (X[:n_rows], y[:n_rows]), (X[n_rows:stop], y[n_rows:stop])


# Measuring ------------------------------------------------------------------------


def set_up_fit(
    who: str, name: str, data: Path, quick: bool, threads: int, figures: Path
) -> Measure:
    (X, y), (X_test, y_test) = parts(name, data, quick)
    clock = time.process_time if threads == 1 else time.perf_counter

    def measure() -> float:
        model = (
            HybridMixtureClassifier(random_state=0)
            if who == OURS
            else HistGradientBoostingClassifier(random_state=0)
        )
        start = clock()
        model.fit(X, y)
        taken = clock() - start
        found = {
            f"{who}_error": 1.0 - float(model.score(X_test, y_test)),
            f"{who}_log_loss": float(log_loss(y_test, model.predict_proba(X_test))),
        }
        (figures / f"{who}.json").write_text(json.dumps(found))
        return taken

    return measure


def measured(name: str, threads: int, options: Options) -> Row:
    (X, y), _ = parts(name, options.data, options.quick)
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder)
        same = {
            "name": name,
            "data": options.data,
            "quick": options.quick,
            "threads": threads,
            "figures": figures,
        }
        samples = race(
            [
                Contestant(who, set_up_fit, {**same, "who": who}, threads=threads)
                for who in (OURS, THEIRS)
            ],
            repeats=1 if options.quick else REPEATS,
        )
        scores: Row = {}
        for who in (OURS, THEIRS):
            scores |= json.loads((figures / f"{who}.json").read_text())
    # Others hardly change what a single thread takes of the processor.
    disturbed = disturbance(samples) if threads > 1 else 0.0
    ours, theirs = samples[OURS].median, samples[THEIRS].median
    return {
        "table": name,
        "rows": len(X),
        "columns": X.shape[1],
        "classes": len(np.unique(y)),
        "threads": threads,
        "hybridmix_seconds": ours,
        "boosting_seconds": theirs,
        "times_boosting": ours / theirs,
        "verdict": verdict(ours / theirs, TARGET, disturbed=disturbed),
        **scores,
        "disturbed": disturbed,
    }


def run(options: Options) -> None:
    rows: list[Row] = []
    names = list(TABLES)[:1] if options.quick else list(TABLES)
    for threads, name in itertools.product((1, 2), names):
        try:
            rows.append(measured(name, threads, options))
        except MissingDataError as error:
            print(f"LEFT OUT: {error}", flush=True)
        write_table("holes_speed", rows, options, silent=True)
    say(
        "Default training with half of the cells missing",
        {
            "seconds": "of the clock; on one thread, of the processor",
            "error, log_loss": "on other rows",
            "disturbed": DISTURBED,
        },
    )
    print_table(rows)
    write_table("holes_speed", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
