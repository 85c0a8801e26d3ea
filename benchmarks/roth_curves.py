"""What the tradeoff does, and what the iterations do (figures 4.6 and 4.7 of the thesis).

MNIST in 50 principal components, 16 diagonal components per class, a desired log margin
of 8, as in the thesis: likelihood, hinge loss and error against the tradeoff,
after 100 iterations; and along the iterations, with a tradeoff of 64. Nothing is stopped
early. The thesis runs 5000 iterations of L-BFGS without whitened coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from common import (
    MissingDataError,
    Options,
    Row,
    parse_options,
    print_table,
    say,
    write_table,
)
from pictures import image_folder, prepare_pictures, save
from roth_data import Split, mnist50

from hybridmix import HybridMixtureClassifier
from hybridmix.objectives import Margin

MARGIN = 8.0
TRADEOFFS = [0.0, 0.125, 0.5, 1.0, 2.0, 8.0, 32.0, 128.0, 512.0]
ALONG = 64.0
N_STEPS = 100
MEASURES = ("negative log-likelihood", "hinge loss", "error in per cent")


def trained(
    split: Split, start: HybridMixtureClassifier, tradeoff: float, **options: Any
) -> HybridMixtureClassifier:
    if tradeoff == 0.0:
        return start
    further = {"objective": "hybrid", "tradeoff": tradeoff, "loss": "hinge"}
    further |= {"margin": MARGIN, "n_steps": N_STEPS, "init": start}
    model = HybridMixtureClassifier(**(start.get_params() | further))
    return model.fit(split.X, split.y, **options)


def measures(model: HybridMixtureClassifier, X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return what MEASURES names, means over rows."""
    log_joint = model.predict_joint_log_proba(X)
    hinge = Margin(margin=MARGIN, width=0.5 * MARGIN)
    values, _ = hinge.values_and_weights(log_joint.T.copy(), y)
    wrong = log_joint.argmax(axis=1) != y
    own = log_joint[np.arange(len(y)), y]
    return [-float(own.mean()), -float(values.mean()), 100.0 * float(wrong.mean())]


def along_tradeoffs(split: Split, start: HybridMixtureClassifier) -> list[Row]:
    rows = []
    for tradeoff in TRADEOFFS:
        model = trained(split, start, tradeoff)
        for part, X, y in (
            ("training", split.X, split.y),
            ("validation", split.X_val, split.y_val),
        ):
            figures = dict(zip(MEASURES, measures(model, X, y), strict=True))
            rows.append({"tradeoff": tradeoff, "rows": part, **figures})
    return rows


def along_iterations(split: Split, start: HybridMixtureClassifier) -> list[Row]:
    validation = {"X_val": split.X_val, "y_val": split.y_val}
    start = start.set_params(patience=N_STEPS)
    history = trained(split, start, ALONG, **validation).history_
    return [
        {
            "iteration": iteration,
            MEASURES[0]: -history["likelihood"][iteration],
            MEASURES[1]: -history["margin"][iteration],
            "training error in per cent": 100.0 * history["training_error"][iteration],
            "validation error in per cent": 100.0
            * history["validation_error"][iteration],
        }
        for iteration in range(len(history["value"]))
    ]


def draw(by_tradeoff: list[Row], by_iteration: list[Row], options: Options) -> None:
    folder = image_folder(options)
    if folder is None:
        return
    plt = prepare_pictures()
    figure, panels = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
    for axes, measure in zip(panels[0], MEASURES, strict=True):
        for part, style in (("training", "o-"), ("validation", "s--")):
            own = [row for row in by_tradeoff if row["rows"] == part]
            axes.plot(
                [row["tradeoff"] for row in own],
                [row[measure] for row in own],
                style,
                label=part,
            )
        axes.set_xscale("symlog", linthresh=0.125)
        axes.set(title=measure, xlabel="tradeoff")
    panels[0, 0].legend()
    for axes, measure in zip(panels[1, :2], MEASURES, strict=False):
        axes.plot([row[measure] for row in by_iteration])
        axes.set(title=f"{measure} (training)", xlabel="iteration")
    for part, style in (("training", "-"), ("validation", "--")):
        errors = [row[f"{part} error in per cent"] for row in by_iteration]
        panels[1, 2].plot(errors, style, label=part)
    panels[1, 2].set(title=MEASURES[2], xlabel="iteration")
    panels[1, 2].legend()
    save(figure, "roth_curves", folder)


def run(options: Options) -> None:
    try:
        split = mnist50(options.data)
    except MissingDataError as problem:
        print(f"LEFT OUT: {problem}", flush=True)
        return
    split = split.thinned(2000) if options.quick else split
    start = HybridMixtureClassifier(
        "likelihood",
        covariance_type="diag",
        n_components=2 if options.quick else 16,
        class_prior="uniform",
        random_state=0,
    ).fit(split.X, split.y)
    by_tradeoff = along_tradeoffs(split, start)
    say(f"After {N_STEPS} iterations, by tradeoff")
    print_table(by_tradeoff)
    write_table("roth_tradeoffs", by_tradeoff, options)
    by_iteration = along_iterations(split, start)
    say(f"Along the iterations, with a tradeoff of {ALONG:g}")
    print_table(by_iteration[::10])
    write_table("roth_iterations", by_iteration, options)
    draw(by_tradeoff, by_iteration, options)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
