"""Fit random tables; only results and documented errors are allowed.

``python tests/fuzz.py --tables 5000 --seed 0`` fits that many tables and prints every
distinct failure once, with the number of the first case that shows it.
``python tests/fuzz.py --seed 0 --case 17`` runs one case again, with its traceback.

Allowed are finite results, and errors that tell users what is wrong: a ValueError,
TypeError or UnsupportedError that hybridmix or scikit-learn's validation raises. Anything
else is a failure: other errors, errors that come out of NumPy or pandas, errors after a
fit that succeeded, NaN, warnings of other kinds than UserWarning, and taking too long.
"""

import argparse
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import narwhals as nw
import numpy as np
from fuzz_tables import make_case
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import hybridmix as hm
from hybridmix.exceptions import UnsupportedError

DOCUMENTED = (ValueError, TypeError, UnsupportedError)
# These are subclasses of ValueError, but tell users nothing.
LEAKING = (np.linalg.LinAlgError, UnicodeError)
WARNINGS = (UserWarning, ConvergenceWarning, DataConversionWarning)
MOST_SECONDS = 30.0


class WrongResultError(Exception):
    """A result that no model can have."""


class TooSlowError(Exception):
    """A case did not end in time."""


@dataclass(frozen=True)
class Failure:
    """What went wrong in a case, and where."""

    number: int
    stage: str
    kind: str
    message: str
    place: str
    details: str

    @property
    def key(self):
        """What failures of the same origin have in common."""
        return self.kind, self.place

    def __str__(self):
        message = " ".join(self.message.split())[:160]
        return (
            f"{self.kind} at {self.place} in {self.stage} (case {self.number}): {message}"
        )


def expect(condition, what):
    """Raise WrongResultError if a result is not as it should be."""
    if not condition:
        raise WrongResultError(what)


# One case -------------------------------------------------------------------------


def run(seed, number):
    """Run a case; return its failures and whether the fit succeeded."""
    case = make_case(seed, number)
    failures = []
    model = case.estimator

    def attempt(stage, action, may_refuse):
        try:
            with warnings.catch_warnings(record=True) as caught, _time_limit():
                warnings.simplefilter("always")
                action()
        except Exception as error:
            if not (may_refuse and is_documented(error)):
                failures.append(_failure(number, stage, error))
            return False
        finally:
            failures.extend(_leaks(number, stage, caught))
        return True

    options = {} if case.sample_weight is None else {"sample_weight": case.sample_weight}
    fitted = attempt("fit", lambda: model.fit(case.X, case.y, **options), may_refuse=True)
    if fitted:
        attempt("attributes", lambda: check_attributes(model), False)
        for name, check in METHODS.items():
            attempt(name, lambda check=check: check(model, case.X), False)
            attempt(
                f"{name}, new rows", lambda check=check: check(model, case.X_new), True
            )
        attempt("sample", lambda: check_sample(model), False)
        attempt("save", lambda: check_saved(model, case.X), False)
    return failures, fitted


@contextmanager
def _time_limit():
    """Raise TooSlowError after seconds of work, whatever else the machine does."""

    def stop(*_):
        raise TooSlowError(f"more than {MOST_SECONDS:.0f} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def is_documented(error):
    """Return whether an error is one that users are meant to see."""
    if not isinstance(error, DOCUMENTED) or isinstance(error, LEAKING):
        return False
    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    return bool(str(error)) and ("/hybridmix/" in raised_in or "/sklearn/" in raised_in)


def _failure(number, stage, error):
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/hybridmix/" in f.filename] or frames
    place = f"{own[-1].filename.split('/hybridmix/')[-1]}:{own[-1].lineno}"
    if isinstance(error, WrongResultError | TooSlowError):
        place = f"{stage.split(',')[0]}: {error}"
    details = "".join(traceback.format_exception(error))
    return Failure(number, stage, type(error).__name__, str(error), place, details)


def _leaks(number, stage, caught):
    """Return the warnings that should not have reached the user."""
    for warning in caught:
        place = f"{warning.filename.split('/hybridmix/')[-1]}:{warning.lineno}"
        foreign = "/sklearn/cluster" in warning.filename
        if warning.category not in WARNINGS or foreign:
            kind, message = warning.category.__name__, str(warning.message)
            yield Failure(number, stage, kind, message, place, f"{place}: {message}")


# What is checked after a fit ------------------------------------------------------


def check_attributes(model):
    for name in ("mixing_", "means_", "class_prior_", "trace_"):
        if hasattr(model, name):
            expect(np.isfinite(getattr(model, name)).all(), f"{name} is not finite")
    if hasattr(model, "covariances_"):
        # Variances of columns near the largest float may be infinite.
        expect(not np.isnan(model.covariances_).any(), "covariances_ has NaN")


def check_predict(model, X):
    if isinstance(model, hm.MixtureImputer):
        return
    labels = model.predict(X)
    expect(labels.shape == (n_rows(X),), "predict has another shape")
    if hasattr(model, "classes_"):
        expect(np.isin(labels, model.classes_).all(), "predict returns no class")


def check_predict_proba(model, X):
    if not hasattr(model, "predict_proba"):
        return
    probabilities = model.predict_proba(X)
    expect(np.isfinite(probabilities).all(), "predict_proba has NaN")
    expect((probabilities >= 0).all(), "predict_proba is negative")
    sums = probabilities.sum(axis=1)
    expect(np.allclose(sums, 1.0, rtol=0, atol=1e-9), "predict_proba does not sum to one")


def check_score_samples(model, X):
    scores = model.score_samples(X)
    expect(scores.shape == (n_rows(X),), "score_samples has another shape")
    expect(not np.isnan(scores).any(), "score_samples has NaN")
    expect(not np.isposinf(scores).any(), "score_samples is infinite")


def check_typicality(model, X):
    values = model.typicality(X)
    expect(not np.isnan(values).any(), "typicality has NaN")
    expect((values <= 1e-9).all(), "typicality is positive")


def check_impute(model, X):
    for draw in (False, True):
        filled = model.impute(X, draw=draw, random_state=0)
        _check_filled(model, X, filled)
    if isinstance(model, hm.MixtureImputer) and model.n_draws:
        for table in model.draw(X, random_state=0):
            _check_filled(model, X, table)


def _check_filled(model, X, filled):
    expect(filled.shape == X.shape, "impute changes the shape")
    for i, (before, after) in enumerate(zip(cells(X), cells(filled), strict=True)):
        kept = [(a, b) for a, b in zip(before, after, strict=True) if a is not None]
        expect(all(a == b for a, b in kept), f"impute changes observed cells of {i}")
        known = i in model.schema_.real or i in model.schema_.categorical
        expect(not known or None not in after, "impute leaves holes")
        real = [v for v in after if isinstance(v, float)]
        expect(bool(np.isfinite(real).all()), "impute fills infinity")


def check_marginal(model, X):
    if not hasattr(model, "marginal"):
        return
    known = sorted(model.schema_.real + model.schema_.categorical)
    part = model.marginal(known[:1])
    single = (
        X[:, known[:1]] if isinstance(X, np.ndarray) else nw.from_native(X)[:, known[:1]]
    )
    single = single if isinstance(X, np.ndarray) else single.to_native()
    scores = part.score_samples(single)
    expect(not np.isnan(scores).any(), "score_samples of the marginal has NaN")


METHODS = {
    "predict": check_predict,
    "predict_proba": check_predict_proba,
    "score_samples": check_score_samples,
    "typicality": check_typicality,
    "impute": check_impute,
    "marginal": check_marginal,
}


def check_sample(model):
    if not hasattr(model, "sample"):
        return
    X, y = model.sample(5, random_state=0)
    expect(X.shape == (5, model.n_features_in_), "sample has another shape")
    expect(len(y) == 5, "sample has another number of labels")
    model.score_samples(X)


def check_saved(model, X):
    if isinstance(model, hm.HybridMixtureClassifierCV):
        model = model.best_estimator_
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hmx"
        hm.save(model, path)
        loaded = hm.load(path)
    same = np.array_equal(model.score_samples(X), loaded.score_samples(X), equal_nan=True)
    expect(same, "a loaded model has other scores")


def n_rows(X: Sized):
    """Return the number of rows of any table."""
    return len(X)


def cells(X):
    """Return the columns of any table as lists, with None in holes."""
    if isinstance(X, np.ndarray):
        columns = [X[:, i].tolist() for i in range(X.shape[1])]
    else:
        frame = nw.from_native(X)
        columns = [frame[name].to_list() for name in frame.columns]
    return [[None if _is_hole(v) else v for v in column] for column in columns]


def _is_hole(value):
    # NaN and pandas.NA differ from themselves, each in a way of its own.
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "<NA>"))


# Many cases -----------------------------------------------------------------------


def fuzz(seed, numbers, on_case=lambda number: None):
    """Run cases; return all failures and how many fits succeeded."""
    failures, n_fitted = [], 0
    for number in numbers:
        on_case(number)
        found, fitted = run(seed, number)
        failures += found
        n_fitted += fitted
    return failures, n_fitted


def distinct(failures):
    """Return the first failure of each kind and place, with the number of cases.

    NaN that arises somewhere is seen in many places: of the warnings of a case, and of
    its wrong results, the first one counts.
    """
    firsts = {}
    for failure in failures:
        follows = failure.kind in ("RuntimeWarning", "WrongResultError")
        firsts.setdefault((failure.number, "NaN" if follows else failure.key), failure)
    groups = {}
    for failure in firsts.values():
        groups.setdefault(failure.key, []).append(failure)
    return sorted(
        ((len(group), group[0]) for group in groups.values()),
        key=lambda item: (item[1].place, item[1].kind),
    )


def main():
    """Fit random tables, and print what fails."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--tables", type=int, default=500, help="number of cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this case only, and show it")
    options = parser.parse_args()
    if options.case is not None:
        print(make_case(options.seed, options.case).described())
        failures, fitted = run(options.seed, options.case)
        print("fitted" if fitted else "not fitted")
        print("\n".join(f"--- {f.stage}\n{f.details}" for f in failures))
        return int(bool(failures))
    start = time.perf_counter()
    numbers = range(options.first, options.first + options.tables)
    failures, n_fitted = fuzz(options.seed, numbers)
    for count, failure in distinct(failures):
        print(f"\n{count} case(s): {failure}")
        print(make_case(options.seed, failure.number).described())
        print(f"python tests/fuzz.py --seed {options.seed} --case {failure.number}")
    print(
        f"\n{options.tables} tables, {n_fitted} fitted, "
        f"{len({f.number for f in failures})} with failures, {len(distinct(failures))} "
        f"distinct, in {time.perf_counter() - start:.0f} s"
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
