"""Columns that are not what they seem: identifiers, dates, marks of missing values."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import plain_classifier
from sklearn import datasets

from hybridmix import HMMDensity, MixtureDensity, MixtureRegressor
from hybridmix.data.stand_ins import StandIns, stand_ins
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


@pytest.mark.parametrize(
    ("usual", "mark"),
    [
        (np.arange(60.0, 120.0), 9999),
        (np.arange(-20.0, 40.0), -999),
        (np.arange(1.0, 6.0), 99),
        (np.arange(15.0, 40.0, 0.5), -1),
        (np.arange(0.0, 30.0), -1),
        (np.array([0.0, 1.0]), -9),
    ],
)
def test_numbers_that_stand_for_missing_values(usual, mark):
    numbers = np.concatenate([np.tile(usual, 3), [mark, np.nan, mark]])
    assert stand_ins(numbers) == {mark: 2}
    assert stand_ins(numbers[:-1]) == {}  # once may be an error, or an unusual value
    in_parts = StandIns()
    for part in np.array_split(numbers, 4):
        in_parts.add(part)
    assert in_parts.found == {mark: 2}


@pytest.mark.parametrize(
    "numbers",
    [
        np.tile([-1.0, 0.0, 1.0], 9),
        np.tile([-1.0, 1.0], 9),
        np.tile(np.arange(1.0, 10.0), 9),
        np.tile(np.arange(90.0, 110.0), 9),
        np.tile(np.arange(-9.0, 60.0), 9),
        np.r_[np.full(50, -1.0), np.arange(20.0)],  # most of them
        np.random.default_rng(0).lognormal(3.0, 1.0, 500).round(),
        np.array([]),
        np.array([99.0, 99.0]),
    ],
)
def test_numbers_among_others(numbers):
    assert stand_ins(numbers) == {}


def test_data_frames_with_marks_of_missing_values(frame):
    frame["age"] = np.r_[np.arange(20, 58), 999, 999]
    with pytest.warns(
        ColumnWarning, match=r"'age' holds 999 again and again, far from all"
    ):
        MixtureDensity(1, covariance_type="diag").fit(frame)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", r"such as '10' but for 'unknown'"),
        ("{}.5", r"such as '10.5'"),
        ("€{},000.00", r"such as '€10,000.00'"),
        ("{} %", r"such as '10 %'"),
    ],
)
def test_numbers_as_text(frame, text, words):
    cells = [text.format(10 + k // 2 % 25) for k in range(len(frame))] * 2
    frame = pd.concat([frame, frame], ignore_index=True).assign(glucose=cells)
    frame.loc[7::9, "glucose"] = "unknown"
    with pytest.warns(ColumnWarning, match="'glucose' holds numbers as text, " + words):
        MixtureDensity(1, covariance_type="diag").fit(frame)


def test_codes_are_not_numbers_as_text(frame):
    frame = pd.concat([frame] * 3, ignore_index=True)
    codes = [f"{k % 30:03d}" for k in range(len(frame))]
    density = MixtureDensity(1, covariance_type="diag")
    density.fit(frame.assign(code=codes))
    density.fit(frame.assign(code=[f"A{code}" for code in codes]))
    density.fit(frame.assign(code=[str(k % 15) for k in range(len(frame))]))
