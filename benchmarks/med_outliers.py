"""Outlier detection by maximum entropy discrimination, against a one-class SVM.

Tables, splits and settings are those of ``outliers.py``, without holes that were punched
(the few holes of a table are filled by column means for all but the mixture). Nothing is
tuned: every method has its default options, in standardised columns; the one-class SVM is
there also with a nu of 0.1.

``med_outliers.csv`` has a line for each table, setting and method, as a mean over seeds
or over the classes that were anomalies in turn; ``med_outliers_summary.csv`` has means
over tables, and the mean difference to our detector with its standard error over tables.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from common import Options, Row, means_of, parse_options, print_table, say, write_table
from outliers import SHARES, Split, Task, figures, filled, split, tasks
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM

from hybridmix import MEDOutlierDetector, MixtureOutlierDetector

OURS = "MEDOutlierDetector"


def contestants(seed: int) -> dict[str, Callable[[Split], np.ndarray]]:
    """Return functions that give anomaly scores, high for anomalies."""

    def scores_of(detector: object, fill: bool = True) -> Callable[[Split], np.ndarray]:
        def scores(parts: Split) -> np.ndarray:
            train, test = filled(parts) if fill else (parts.train, parts.test)
            return -detector.fit(train).score_samples(test)  # type: ignore[attr-defined]

        return scores

    mixture = MixtureOutlierDetector(effort="fast", random_state=seed)
    return {
        OURS: scores_of(MEDOutlierDetector()),
        "OneClassSVM": scores_of(OneClassSVM()),
        "OneClassSVM, nu=0.1": scores_of(OneClassSVM(nu=0.1)),
        "IsolationForest": scores_of(IsolationForest(random_state=seed)),
        "MixtureOutlierDetector, fast": scores_of(mixture, fill=False),
    }


def measure(task: Task, setting: str, seed: int) -> list[Row]:
    """Compare all methods on one split."""
    parts, rows = split(task, setting, 0.0, seed), []
    for name, scores in contestants(seed).items():
        began = time.process_time()
        found = figures(scores(parts), parts.is_anomaly)
        seconds = time.process_time() - began
        key = {"table": task.name, "setting": setting, "method": name}
        rows.append({**key, **found, "seconds": seconds})
    return rows


def summary(table: Sequence[Row]) -> list[Row]:
    """Return means over tables, and paired differences to our detector."""
    lines: list[Row] = []
    for setting in SHARES:
        part = [row for row in table if row["setting"] == setting]
        own = np.array([row["auc"] for row in part if row["method"] == OURS])
        for method in dict.fromkeys(row["method"] for row in part):
            rows = [row for row in part if row["method"] == method]
            gain = np.array([row["auc"] for row in rows]) - own
            several = len(gain) > 1
            lines.append(
                {
                    "setting": setting,
                    "method": method,
                    "auc": float(np.mean([row["auc"] for row in rows])),
                    "average_precision": float(
                        np.mean([row["average_precision"] for row in rows])
                    ),
                    "seconds": float(np.mean([row["seconds"] for row in rows])),
                    "auc - ours": float(gain.mean()),
                    "error": float(gain.std(ddof=1) / len(gain) ** 0.5)
                    if several
                    else None,
                    "tables": len(rows),
                }
            )
    return lines


def run(options: Options) -> None:
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task, n_seeds in tasks(options.data, options.quick):
            for setting in SHARES:
                for seed in range(n_seeds):
                    rows += measure(task, setting, seed)
    values = ["auc", "average_precision", "seconds"]
    table = means_of(rows, ["table", "setting", "method"], values)
    say("One class: area under the ROC curve and average precision, nothing tuned")
    print_table(table)
    write_table("med_outliers", table, options)
    lines = summary(table)
    say("Means over tables", {"error": "standard error of the difference over tables"})
    print_table(lines)
    write_table("med_outliers_summary", lines, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
