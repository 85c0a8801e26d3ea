"""Means, ranks and paired differences of contestants over tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import Row
from contestants import DEFAULT, NAMES, RANKED
from scipy.stats import t as student
from tables import SITUATIONS

MEASURES = {"error": "wrong", "log_loss": "losses"}
HALVES = ("all", "design", "reported only")
CONFIDENCE = 0.95
STANDARD_ERRORS = 2.0
SPLIT = ["seed", "fold"]


def as_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the rows whose split every contestant of the situation has tried."""
    frame = pd.DataFrame(rows)
    figures = [*MEASURES, "cpu_seconds"]
    frame[figures] = frame[figures].apply(pd.to_numeric)
    frame = frame[~frame["status"].str.startswith("failed")]
    present = frame.groupby("situation")["contestant"].transform("nunique")
    tried = frame.groupby(["situation", "table", *SPLIT])["contestant"].transform("size")
    return frame[tried == present]


def table_means(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return means over splits: tables down, contestants across; NaN if over time."""
    grouped = frame.groupby(["table", "contestant"])[value]
    means = grouped.agg(lambda own: own.mean(skipna=False)).unstack()
    return means[[name for name in NAMES if name in means]]


def best_of(means: pd.DataFrame, ours: str = DEFAULT) -> str | None:
    """Return the rival of the lowest mean, among those with figures on all tables."""
    whole = means.drop(columns=ours, errors="ignore").dropna(axis=1)
    return None if whole.empty else str(whole.mean().idxmin())


def interval(differences: np.ndarray) -> tuple[float, float, float]:
    """Return the mean, and both ends of its t interval over tables."""
    mean, n = float(np.mean(differences)), len(differences)
    if n < 2:
        return mean, float("nan"), float("nan")
    error = float(np.std(differences, ddof=1)) / np.sqrt(n)
    reach = float(student.ppf(0.5 + CONFIDENCE / 2.0, n - 1)) * error
    return mean, mean - reach, mean + reach


def ranks(means: pd.DataFrame) -> pd.DataFrame:
    """Return ranks within each table; those without a figure are last."""
    ranked = means[[name for name in RANKED if name in means]]
    return ranked.rank(axis=1, na_option="bottom")


def in_situation(frame: pd.DataFrame) -> list[Row]:
    """Return a row for each contestant of one situation."""
    means = {measure: table_means(frame, measure) for measure in MEASURES}
    seconds = table_means(frame, "cpu_seconds")
    ranked = {measure: ranks(own) for measure, own in means.items()}
    both = sum(ranked.values()) / len(ranked)
    result = []
    for name in means["error"]:
        row: Row = {"contestant": name, "tables": int(means["error"][name].count())}
        for measure, own in means.items():
            row[f"mean_{measure}"] = float(own[name].mean())
        for measure, own in {**ranked, "both": both}.items():
            label = "rank" if measure == "both" else f"rank_{measure}"
            row[label] = float(own[name].mean()) if name in own else None
        for measure, own in means.items():
            row |= over_best(own, name, measure)
        row["mean_cpu_seconds"] = float(seconds[name].mean())
        row["median_cpu_seconds"] = float(seconds[name].median())
        result.append(row)
    return result


def over_best(means: pd.DataFrame, name: str, measure: str) -> Row:
    """Compare a contestant with the best rival, on tables where both have figures."""
    best = best_of(means)
    row: Row = {f"best_{measure}": best}
    columns = [f"{measure}_over_best", f"{measure}_low", f"{measure}_high"]
    if best is None or best == name:
        return row | dict.fromkeys(columns)
    differences = (means[name] - means[best]).dropna().to_numpy()
    if not len(differences):
        return row | dict.fromkeys(columns)
    return row | dict(zip(columns, interval(differences), strict=True))


def overall(
    rows: Sequence[Row], keys: Sequence[str], value: str, ours: str, highest: bool = False
) -> list[Row]:
    """Return mean, mean rank and difference to the best rival over tables.

    Parameters
    ----------
    rows : list of dict
        One for each table, method and combination of the keys.
    keys : list of str
        Columns within whose values methods are compared.
    value : str
        Column to compare; methods without a figure on some table are left out.
    ours : str
        The method that is not a rival.
    highest : bool, default=False
        The highest value is the best one.
    """
    result = []
    for group, own in pd.DataFrame(rows).groupby(list(keys), sort=False):
        wide = own.pivot(index="table", columns="method", values=value).dropna(how="all")
        wide = wide[[name for name in own["method"].unique() if name in wide]]
        wide = wide.dropna(axis=1)
        sign = -1.0 if highest else 1.0
        best = best_of(sign * wide, ours)
        ranked = (sign * wide).rank(axis=1)
        for name in wide:
            row: Row = dict(zip(keys, group, strict=True))
            row |= {"method": name, "tables": len(wide), value: float(wide[name].mean())}
            row |= {"rank": float(ranked[name].mean()), "best_rival": best}
            compared = best is not None and name != best
            found = (
                interval((wide[name] - wide[best]).to_numpy())
                if compared
                else (None,) * 3
            )
            columns = ("over_best", "low", "high")
            result.append(row | dict(zip(columns, found, strict=True)))
    return result


def summarise(rows: Sequence[Row], over_time: str) -> list[Row]:
    """Summarise contestants in each situation, over all tables and over both halves."""
    if not rows:
        return []
    frame = as_frame(rows)
    result = []
    for half in HALVES:
        chosen = frame if half == "all" else frame[frame["half"] == half]
        for situation in SITUATIONS:
            own = chosen[chosen["situation"] == situation]
            late = own[own["status"] == over_time]
            for row in in_situation(own) if len(own) else []:
                missing = late[late["contestant"] == row["contestant"]]["table"].unique()
                head = {"half": half, "situation": situation}
                result.append(head | row | {"over_time": " ".join(missing)})
    return result


# Single tables --------------------------------------------------------------------------


def row_losses(
    frame: pd.DataFrame, name: str, kind: str, file: Callable[[Sequence[str]], Path]
) -> pd.Series | None:
    """Return the mean loss of each row of a table, over the splits that test it."""
    parts = []
    for row in frame[frame["contestant"] == name].itertuples():
        path = file((row.table, row.situation, row.seed, row.fold, name))
        if not path.is_file():
            return None
        with np.load(path) as arrays:
            parts.append(pd.Series(arrays[kind].astype(float), index=arrays["rows"]))
    return pd.concat(parts).groupby(level=0).mean()


def compared(
    frame: pd.DataFrame, measure: str, file: Callable[[Sequence[str]], Path]
) -> Row | None:
    """Compare the default with the best rival on one table, row by row."""
    means = table_means(frame, measure)
    others = means.drop(columns=DEFAULT).dropna(axis=1)
    if others.empty:
        return None
    best = str(others.iloc[0].idxmin())
    row: Row = {
        "measure": measure,
        "default": float(means[DEFAULT].iloc[0]),
        "best_rival": best,
        "rival": float(others[best].iloc[0]),
    }
    losses = [
        row_losses(frame, name, MEASURES[measure], file) for name in (DEFAULT, best)
    ]
    if losses[0] is None or losses[1] is None:
        return row | {"standard_error": None, "standard_errors": None}
    differences = (losses[0] - losses[1]).to_numpy()
    error = float(np.std(differences, ddof=1)) / np.sqrt(len(differences))
    number = float(np.mean(differences)) / error if error > 0.0 else 0.0
    return row | {"standard_error": error, "standard_errors": number}


def table_by_table(
    rows: Sequence[Row], file: Callable[[Sequence[str]], Path]
) -> list[Row]:
    """Compare the default with the best rival of each table.

    Differences are those of the same test rows; a row that several splits test counts
    once. The standard error is that over rows: it knows nothing of other training rows.
    The best rival is the one with the lowest figure on these rows, which favours it.
    """
    frame = as_frame(rows) if rows else pd.DataFrame(columns=["contestant"])
    if DEFAULT not in set(frame["contestant"]):
        return []
    result = []
    for (situation, table), own in frame.groupby(["situation", "table"], sort=False):
        lost = own.loc[own["contestant"] == DEFAULT, "error"].isna().any()
        for measure in () if lost else MEASURES:
            row = compared(own, measure, file)
            if row is not None:
                head = {"half": own["half"].iloc[0], "situation": situation}
                result.append({**head, "table": table, **row, "worse": verdict(row)})
    order = list(SITUATIONS)
    return sorted(result, key=lambda row: (order.index(row["situation"]), row["measure"]))


def verdict(row: Row) -> str:
    """Return whether the default is worse by more than two standard errors."""
    if row["default"] <= row["rival"]:
        return "no"
    if row["standard_errors"] is None:
        return "unknown"
    return "yes" if row["standard_errors"] > STANDARD_ERRORS else "no"
