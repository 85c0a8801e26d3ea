"""Columns that models can learn nothing from: identifiers, and dates as text."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from sklearn import datasets

from hybridmix import HMMDensity, MixtureDensity, MixtureRegressor
from hybridmix.exceptions import ColumnWarning

N_ROWS = 40
SUSPECTS = {
    "patient_id": np.random.default_rng(0).permutation(N_ROWS) + 1000,
    "row": np.arange(N_ROWS) + 7,
    "name": [f"p{number}" for number in range(N_ROWS)],
    "day": ["2024-01-31", "2024-02-01"] * (N_ROWS // 2),
}


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(N_ROWS, 2))
    return pd.DataFrame(x, columns=["x", "y"]).assign(kind=["a", "b"] * (N_ROWS // 2))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("patient_id", "'patient_id' looks like an identifier: its whole numbers name"),
        ("row", "'row' looks like an identifier: its whole numbers count the rows"),
        ("name", "'name' looks like an identifier: it has 40 different values in 40"),
        ("day", "'day' holds dates as text"),
    ],
)
def test_suspects_are_named(frame, name, words):
    frame[name] = SUSPECTS[name]
    labels = np.arange(N_ROWS) % 2
    with pytest.warns(ColumnWarning, match=words):
        plain_classifier("likelihood").fit(frame, labels)
    with pytest.warns(ColumnWarning, match=words):
        MixtureDensity(1, covariance_type="diag").fit(frame)
    quick_chain = {"covariance_type": "diag", "topology": "ergodic"}
    quick = {"covariance_type": "diag", "tradeoff": 0.0, "calibrate": False}
    with pytest.warns(ColumnWarning, match=words):
        MixtureRegressor(1, **quick).fit(frame, frame["x"].to_numpy())
    with pytest.warns(ColumnWarning, match=words):
        HMMDensity(1, **quick_chain).fit(frame, lengths=[20, 20])


def test_categories_that_are_meant_are_not_suspected(frame):
    frame = frame.assign(name=SUSPECTS["name"], day=SUSPECTS["day"])
    density = MixtureDensity(1, covariance_type="diag", categorical_features=[3, 4])
    density.fit(frame)


def test_usual_columns_are_not_suspected(frame):
    density = MixtureDensity(1, covariance_type="diag")
    density.fit(frame)
    density.fit(frame.assign(age=np.arange(N_ROWS) // 2, idle=SUSPECTS["patient_id"]))
    density.fit(pd.DataFrame({"year": np.arange(1980, 1980 + N_ROWS)}))  # all there is
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        for load in ("iris", "wine", "breast_cancer", "diabetes", "linnerud"):
            table = getattr(datasets, f"load_{load}")(as_frame=True).frame
            density.fit(table)
