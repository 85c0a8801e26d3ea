"""How long the page of `hybridmix explore` waits for its answers.

Models of 20 columns, 16 numbers and 4 categories, are fitted to 2,000 rows with a tenth
of the cells missing. Questions are asked over HTTP, one after the other, as the page asks
them: times have the server, the model and the JSON of question and answer in them, but
not the drawing. Processor times, of server and client together, do not depend on what
else the machine does. Rows vary, and half of the questions hide every other cell.
Sequences have 100 frames of 20 numbers.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from common import Options, Row, parse_options, print_table, say, write_table

import hybridmix
from hybridmix import (
    HybridHMMClassifier,
    HybridMixtureClassifier,
    MixtureDensity,
    MixtureRegressor,
)

N_REAL, N_CATEGORICAL, N_CLASSES = 16, 4, 3
MISSING = 0.1
LIMIT_MS = 100.0

Ask = Callable[[str, dict[str, Any]], Any]


def table(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(0)
    label = generator.integers(N_CLASSES, size=n_rows)
    mixing = generator.normal(size=(N_REAL, N_REAL)) / 4.0 + np.eye(N_REAL)
    real = (generator.normal(size=(n_rows, N_REAL)) + 0.4 * label[:, None]) @ mixing
    columns = {f"number_{j}": real[:, j] for j in range(N_REAL)}
    words = np.array(["red", "green", "blue", "grey", "white"])
    for j in range(N_CATEGORICAL):
        columns[f"word_{j}"] = words[generator.integers(3, size=n_rows) + label]
    frame = pd.DataFrame(columns)
    return frame.mask(generator.random(frame.shape) < MISSING), label


def sequences(n: int) -> tuple[list[np.ndarray], np.ndarray]:
    generator = np.random.default_rng(0)
    labels = np.arange(n) % N_CLASSES
    steps = np.repeat(np.arange(5), 20)[:, None]
    frames = [
        np.sin(steps + label) + generator.normal(size=(100, N_REAL + N_CATEGORICAL))
        for label in labels
    ]
    return frames, labels


def models(quick: bool) -> Iterator[tuple[str, Any, Any, Any]]:
    X, y = table(200 if quick else 2_000)
    effort = "fast" if quick else "balanced"
    single = {"n_components": 4, "covariance_type": "full", "random_state": 0}
    yield (
        "classifier, 4 full components per class",
        HybridMixtureClassifier(tradeoff=1.0, n_steps=10, **single).fit(X, y),
        X,
        y,
    )
    committee = HybridMixtureClassifier(effort=effort, random_state=0).fit(X, y)
    yield "classifier, committee", committee, X, y
    target = X["number_0"].fillna(0.0).to_numpy()
    rest = X.assign(number_0=X["number_1"].to_numpy())
    regressor = MixtureRegressor(effort=effort, random_state=0).fit(rest, target)
    yield "regressor, committee", regressor, rest, target
    density = MixtureDensity(8, covariance_type="full", random_state=0).fit(X)
    yield "density, 8 full components", density, X, None
    frames, labels = sequences(30 if quick else 120)
    chains = HybridHMMClassifier(
        5, topology="left-right", covariance_type="diag", tradeoff=1.0, random_state=0
    )
    yield "classifier of sequences", chains.fit(frames, labels), frames, labels


def questions(about: Row, ask: Ask, n: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the questions that the page asks while somebody works with it."""
    for number in range(n):
        found = ask("row", {"row": number % about["n_rows"]})
        if about["sequential"]:
            question = {"frames": found["frames"]}
            yield "answer", question
            yield "typicality", question
            continue
        cells = found["cells"]
        if number % 2:
            cells = [value if j % 2 else None for j, value in enumerate(cells)]
        yield "answer", {"cells": cells}
        yield "density, one column", {"columns": [number % 20]}
        yield "density, two columns", {"columns": [number % 20, (number + 7) % 20]}
        yield "sample", {"n": 8, "seed": number, "cells": cells}


def measure(name: str, model: Any, X: Any, y: Any, n: int) -> list[Row]:
    times: dict[str, list[tuple[float, float]]] = {}
    with hybridmix.explore(model, X, y) as explorer:
        host, token = explorer.url.removeprefix("http://").split("/")[:2]
        connection = http.client.HTTPConnection(host)

        def ask(question: str, content: dict[str, Any]) -> Any:
            connection.request("POST", f"/{token}/ask/{question}", json.dumps(content))
            return json.load(connection.getresponse())

        about = ask("describe", {})
        for kind, content in questions(about, ask, n):
            begin, busy = time.perf_counter(), time.process_time()
            ask(kind.partition(",")[0], content)
            taken = time.perf_counter() - begin, time.process_time() - busy
            times.setdefault(kind, []).append(taken)
        connection.close()
    return [
        {
            "model": name,
            "question": kind,
            "median_ms": 1000.0 * float(np.median(own, axis=0)[0]),
            "p95_ms": 1000.0 * float(np.quantile(own, 0.95, axis=0)[0]),
            "processor_ms": 1000.0 * float(np.median(own, axis=0)[1]),
            "limit_ms": LIMIT_MS,
        }
        for kind, own in times.items()
    ]


def run(options: Options) -> None:
    rows: list[Row] = []
    for name, model, X, y in models(options.quick):
        rows += measure(name, model, X, y, 4 if options.quick else 40)
    say("Answers of hybridmix explore, 20 columns, one connection")
    print_table(rows)
    write_table("explore", rows, options, ("pandas",))


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
