"""One more table with holes: predict a number, with an interval.

The table is scikit-learn's diabetes data (442 patients, ten measurements, and how far the
disease has progressed a year later). Of all cells, 30 % are removed at random, from
training and test rows alike, and a fifth of the training rows lose their target. Every
method has its default options. Others get medians for missing cells, except for the
boosted trees, and conformal intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hybridmix
from hybridmix.cli.models import Model
from hybridmix.data.holes import punch_holes, random_holes

TARGET = "progression"
MISSING = 0.3
WITHOUT_TARGET = 0.2
HEADINGS = ("RMSE", "coverage", "interval score")


@dataclass(frozen=True)
class Patients:
    """Training and test rows, as data frames with holes, and their targets."""

    train: Any
    test: Any
    y_train: Any
    y_test: Any

    @classmethod
    def drawn(cls, seed: int = 0) -> Patients:
        """Draw training rows, test rows, holes and the targets that are missing."""
        from sklearn.datasets import load_diabetes
        from sklearn.model_selection import train_test_split

        X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        generator = np.random.default_rng(seed)
        X = punch_holes(X, random_holes(X.shape, MISSING, generator))
        train, test, y_train, y_test = train_test_split(
            X, y.rename(TARGET), test_size=0.4, random_state=seed
        )
        is_lost = generator.random(len(y_train)) < WITHOUT_TARGET
        return cls(train, test, y_train.mask(is_lost), y_test)


def compare(patients: Patients) -> tuple[hybridmix.MixtureRegressor, dict[str, Any]]:
    """Return our model, and scores of it and of others on the test rows."""
    from hybridmix.metrics import regression_scores
    from hybridmix.tasks.baselines import regression_baselines
    from hybridmix.tasks.regress import forecasts_of

    ours = hybridmix.MixtureRegressor(random_state=0)
    models = {"MixtureRegressor()": ours.fit(patients.train, patients.y_train)}
    known = patients.y_train.notna()
    columns = list(range(patients.train.shape[1]))
    rivals = regression_baselines(ours.schema_, columns, int(known.sum()), seed=0)
    X, y = patients.train[known].to_numpy(), patients.y_train[known].to_numpy()
    models |= {name: make().fit(X, y) for name, make in rivals.items()}
    targets = patients.y_test.to_numpy()
    scores = {}
    for name, model in models.items():
        rows = patients.test if model is ours else patients.test.to_numpy()
        found = regression_scores(targets, forecasts_of(model, rows, targets))
        scores[name] = tuple(found[heading].value for heading in HEADINGS)
    return ours, scores


def write_files(
    patients: Patients, model: hybridmix.MixtureRegressor, folder: Path
) -> dict[str, Path]:
    """Write the tables, the model and a report on the test rows; return their paths."""
    names = (
        "patients.csv",
        "new_patients.csv",
        "regressor.hmx",
        "regression_report.html",
    )
    paths = {name: folder / name for name in names}
    for name, rows, targets in (
        ("patients.csv", patients.train, patients.y_train),
        ("new_patients.csv", patients.test, patients.y_test),
    ):
        rows.assign(**{TARGET: targets}).to_csv(paths[name], index=False)
    Model(model, target=TARGET).save(paths["regressor.hmx"])
    title = "Progression of diabetes, from a table with holes"
    report = hybridmix.report(
        model, patients.test, patients.y_test, title=title, baselines=False
    )
    report.save(paths["regression_report.html"])
    return paths
