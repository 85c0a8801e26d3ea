"""Training and prediction times on MNIST-50, beside the RBF support vector machine.

The settings of the mixture are those that ``roth.py`` chooses; the machine has C=10 and a
gamma of one over the number of columns. Both run on all cores that the machine
has, as far as they can: LIBSVM uses one. Training of the mixture includes EM. The hybrid
must predict at least a hundred times as fast, and train faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from common import (
    MissingDataError,
    Options,
    Row,
    parse_options,
    print_table,
    ratio,
    say,
    wait_for_quiet,
    write_table,
)
from roth import n_parameters
from roth_data import Split, mnist50
from sklearn.svm import SVC

from hybridmix import HybridMixtureClassifier

PREDICTIONS = 5
LONGEST_WAIT = 60.0


def hybrid(split: Split) -> HybridMixtureClassifier:
    model = HybridMixtureClassifier(
        "hybrid",
        n_components=2,
        covariance_prior=1000.0,
        tradeoff=30.0,
        margin=20.0,
        loss="hinge",
        n_steps=200,
        class_prior="uniform",
        random_state=0,
    )
    return model.fit(split.X, split.y, X_val=split.X_val, y_val=split.y_val)


def machine(split: Split) -> SVC:
    gamma = 1.0 / split.X.shape[1]
    return SVC(C=10.0, gamma=gamma, cache_size=2000).fit(split.X, split.y)


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    wait_for_quiet(LONGEST_WAIT)
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def measured(name: str, train: Callable[[Split], Any], split: Split) -> Row:
    training, model = seconds(lambda: train(split))
    prediction = min(
        seconds(lambda: model.predict(split.X_test))[0] for _ in range(PREDICTIONS)
    )
    wrong = float((model.predict(split.X_test) != split.y_test).mean())
    return {
        "method": name,
        "training_seconds": training,
        "prediction_seconds": prediction,
        "error": 100.0 * wrong,
        "parameters": n_parameters(model),
    }


def run(options: Options) -> None:
    try:
        split = mnist50(options.data)
    except MissingDataError as problem:
        print(f"LEFT OUT: {problem}", flush=True)
        return
    split = split.thinned(2000) if options.quick else split
    rows = [
        measured("hybrid, full covariances", hybrid, split),
        measured("RBF SVM", machine, split.scaled()),
    ]
    for row in rows:
        for kind in ("training", "prediction"):
            name = f"{kind}_seconds"
            row[f"{kind}_ratio"] = ratio(row[name], rows[0][name])
    say(
        f"MNIST-50: {len(split.y)} rows to train on, {len(split.y_test)} to predict",
        {"ratio": "seconds, divided by those of the hybrid"},
    )
    print_table(rows)
    write_table("roth_time", rows, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
