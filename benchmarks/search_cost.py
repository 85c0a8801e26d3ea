"""What the search over settings takes, against scikit-learn's grid search.

Both choose from the same settings by the same five folds, with one job: covariance types,
numbers of components, margins and tradeoffs of the hybrid objective. Ours runs EM once
for each covariance type and number of components, and goes on along ascending tradeoffs
from one result to the next; the grid search trains every setting from the beginning. So
their models differ a little, and may lead to different choices: the accuracy of both
choices on rows that neither has seen is given, too.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    DISTURBED,
    Contestant,
    Measure,
    MissingDataError,
    Options,
    Row,
    load_xy,
    parse_options,
    print_table,
    race,
    ratio,
    say,
    write_table,
)
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split

from hybridmix import HybridMixtureClassifier, HybridMixtureClassifierCV

COMPONENTS = (1, 2, 4)
TRADEOFFS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)
MARGINS_PER_COLUMN = (0.2, 0.4, 0.8)
COVARIANCES = ("full", "diag")
N_FOLDS = 5
TEST_SHARE = 0.3
OURS, THEIRS = "HybridMixtureClassifierCV", "GridSearchCV"


# Tables ---------------------------------------------------------------------------


def breast_cancer(_: Path) -> tuple[np.ndarray, np.ndarray]:
    return load_breast_cancer(return_X_y=True)


def wine(_: Path) -> tuple[np.ndarray, np.ndarray]:
    return load_wine(return_X_y=True)


def segmentation(data: Path) -> tuple[np.ndarray, np.ndarray]:
    return load_xy(data, "segmentation")


TABLES: list[Callable[[Path], tuple[np.ndarray, np.ndarray]]] = [
    wine,
    breast_cancer,
    segmentation,
]


def settings(n_columns: int, quick: bool) -> dict[str, list[Any]]:
    """Return the candidates of each parameter."""
    margins = [round(share * n_columns, 1) for share in MARGINS_PER_COLUMN]
    if quick:
        return {
            "covariance_type": ["diag"],
            "n_components": [1, 2],
            "margin": margins[:1],
            "tradeoff": [0.0, 10.0],
        }
    return {
        "covariance_type": list(COVARIANCES),
        "n_components": list(COMPONENTS),
        "margin": margins,
        "tradeoff": list(TRADEOFFS),
    }


# Measuring ------------------------------------------------------------------------


def measured_with_figures(contestant: Contestant) -> dict[str, Any] | None:
    """Measure once, in a process of its own; return seconds and what else it found.

    The function that sets the contestant up has an argument ``figures``: the file that
    it writes the rest to. None if it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        arguments = {**contestant.arguments, "figures": path}
        asked = replace(contestant, arguments=arguments)
        sample = race([asked], repeats=1, warm_ups=0).get(contestant.name)
        if sample is None:
            return None
        found = json.loads(path.read_text())
    return {**found, "seconds": sample.median, "disturbed": sample.disturbed}


def split(name: str, data: Path) -> list[np.ndarray]:
    """Return training rows, test rows and their labels."""
    table = next(table for table in TABLES if table.__name__ == name)
    X, y = table(data)
    return train_test_split(X, y, test_size=TEST_SHARE, stratify=y, random_state=0)


def set_up_search(who: str, name: str, data: Path, quick: bool, figures: Path) -> Measure:
    X, X_test, y, y_test = split(name, data)
    candidates = settings(X.shape[1], quick)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    splits = list(folds.split(X, y))
    template = HybridMixtureClassifier(loss="hinge", n_jobs=1, random_state=0)
    search: Any = GridSearchCV(template, candidates, cv=splits, n_jobs=1)
    if who == OURS:
        search = HybridMixtureClassifierCV(
            template, **candidates, cv=splits, n_jobs=1, random_state=0
        )

    def measure() -> float:
        start = time.perf_counter()
        search.fit(X, y)
        taken = time.perf_counter() - start
        found = {
            "cv": 100.0 * float(search.best_score_),
            "test": 100.0 * float(search.score(X_test, y_test)),
            "chosen": " ".join(str(search.best_params_[key]) for key in candidates),
        }
        figures.write_text(json.dumps(found))
        return taken

    return measure


def compare(name: str, options: Options) -> Row | None:
    """Run both searches on one table; None if either failed."""
    X, _, _, _ = split(name, options.data)
    sizes = [len(values) for values in settings(X.shape[1], options.quick).values()]
    found = {}
    for who in (OURS, THEIRS):
        arguments = {
            "who": who,
            "name": name,
            "data": options.data,
            "quick": options.quick,
        }
        found[who] = measured_with_figures(
            Contestant(who, set_up_search, arguments, threads=1)
        )
    ours, theirs = found[OURS], found[THEIRS]
    if ours is None or theirs is None:
        return None
    return {
        "table": name.replace("_", " "),
        "rows": len(X),
        "columns": X.shape[1],
        "settings": int(np.prod(sizes)),
        "our_seconds": ours["seconds"],
        "grid_seconds": theirs["seconds"],
        "grid_over_ours": ratio(theirs["seconds"], ours["seconds"]),
        "our_cv": ours["cv"],
        "grid_cv": theirs["cv"],
        "our_test": ours["test"],
        "grid_test": theirs["test"],
        "our_choice": ours["chosen"],
        "grid_choice": theirs["chosen"],
        "disturbed": max(ours["disturbed"], theirs["disturbed"]),
    }


def run(options: Options) -> None:
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in TABLES[:2] if options.quick else TABLES:
            try:
                row = compare(table.__name__, options)
            except MissingDataError as error:
                print(f"LEFT OUT: {error}", flush=True)
                continue
            if row is not None:
                rows.append(row)
                write_table("search_cost", rows, options)
    say(
        "Search over settings by five folds, one job",
        {
            "cv, test": "accuracy in per cent, over the folds and on rows held out",
            "choice": ", ".join(settings(1, True)),
            "disturbed": DISTURBED,
        },
    )
    print_table(rows)
    write_table("search_cost", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
