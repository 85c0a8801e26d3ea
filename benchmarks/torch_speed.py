"""Hybrid training against the same objective in PyTorch, with automatic derivatives.

The first 50,000 digits of MNIST, projected onto 50 principal components; two components
with full covariances for each class; likelihood plus 30 times the soft hinge of a log
margin of 20. All start from the same result of EM. The time is that until the objective
is as high as ours at the iteration of the lowest validation error (on the 10,000 digits
left of the training file), which our own run of the same number of iterations takes.

PyTorch runs its L-BFGS with the line search for strong Wolfe conditions, double precision
and two threads, over chunks of rows that fit into memory. "whitened" has the coordinates
that we use, "plain" those that come to mind first: means and Cholesky factors of the
covariances, with logarithms on the diagonal. Both evaluate densities by one matrix
product for all components. Values at the start are checked to agree with ours.
"""

from __future__ import annotations

import contextlib
import json
import math
import pickle
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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
    load_arrays,
    parse_options,
    print_table,
    ratio,
    rival,
    say,
    verdict,
    write_table,
)
from scaling import forget_peak, memory_bytes
from search_cost import measured_with_figures
from sklearn.decomposition import PCA

from hybridmix import HybridMixtureClassifier

N_TRAIN, N_QUICK = 50_000, 5_000
N_PRINCIPAL = 50
TRADEOFF, MARGIN = 30.0, 20.0
# What the classifier makes of this margin, and its sharpness of the soft maximum.
WIDTH, SHARPNESS = 10.0, 10.0
THREADS = 2
CHUNK = 4096
WALL_TARGET = 90.0
# PyTorch is stopped after this many times our seconds.
PATIENCE = 30.0
MOST_ITERATIONS = 1000
AGREEMENT = 1e-8
PACKAGES = ("torch",)


def classifier(**options: Any) -> HybridMixtureClassifier:
    return HybridMixtureClassifier(
        n_components=2,
        tradeoff=TRADEOFF,
        loss="hinge",
        margin=MARGIN,
        n_jobs=THREADS,
        random_state=0,
        **options,
    )


@dataclass(frozen=True)
class Digits:
    """Projected digits for training, validation and test."""

    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load_digits(data: Path, quick: bool) -> Digits:
    arrays = load_arrays(data, "mnist")
    n_train = N_QUICK if quick else N_TRAIN
    n_all = 2 * N_QUICK if quick else len(arrays["X_train"])
    # Pixels from 0 to 1; the learned scale of the columns makes up for it anyway.
    images = arrays["X_train"].reshape(len(arrays["X_train"]), -1)[:n_all] / 255.0
    test = arrays["X_test"].reshape(len(arrays["X_test"]), -1) / 255.0
    pca = PCA(N_PRINCIPAL, svd_solver="covariance_eigh").fit(images[:n_train])
    projected, labels = pca.transform(images), arrays["y_train"][:n_all]
    return Digits(
        projected[:n_train],
        labels[:n_train],
        projected[n_train:],
        labels[n_train:],
        pca.transform(test),
        arrays["y_test"],
    )


def kept(value: Any, path: Path) -> Path:
    """Keep something for other processes."""
    path.write_bytes(pickle.dumps(value))
    return path


def read(path: Path) -> Any:
    return pickle.loads(path.read_bytes())


# hybridmix ------------------------------------------------------------------------


def set_up_whole(digits: Path, figures: Path) -> Measure:
    """Measure EM and hybrid training, with early stopping by validation rows."""
    data: Digits = read(digits)

    def measure() -> float:
        forget_peak()
        before = memory_bytes("VmRSS")
        start = time.perf_counter()
        model = classifier(objective="hybrid", n_steps=100)
        model.fit(data.X, data.y, X_val=data.X_val, y_val=data.y_val)
        taken = time.perf_counter() - start
        peak = memory_bytes("VmHWM") - before
        errors = model.history_["validation_error"]
        found = {
            "best_iteration": int(np.argmin(errors)),
            "iterations": model.n_iter_,
            "start_validation_error": 100.0 * float(errors[0]),
            "validation_error": 100.0 * float(errors.min()),
            "test_error": 100.0 * (1.0 - float(model.score(data.X_test, data.y_test))),
            "megabytes": peak / 2**20,
        }
        figures.write_text(json.dumps(found))
        return taken

    return measure


def set_up_ours(digits: Path, start: Path, n_steps: int, figures: Path) -> Measure:
    """Measure hybrid training from the result of EM."""
    data: Digits = read(digits)
    model = classifier(objective="hybrid", n_steps=1, init=read(start))
    model.fit(data.X, data.y)  # warms up
    model.set_params(n_steps=n_steps)

    def measure() -> float:
        forget_peak()
        before = memory_bytes("VmRSS")
        began = time.perf_counter()
        model.fit(data.X, data.y)
        taken = time.perf_counter() - began
        peak = memory_bytes("VmHWM") - before
        # The rows are scaled in training; values are given for scaled rows.
        log_volume = float(np.log(model.schema_.scale).sum())
        found = {
            "iterations": model.n_iter_,
            "start_value": float(model.trace_[0]) + log_volume,
            "value": float(model.trace_[-1]) + log_volume,
            "megabytes": peak / 2**20,
        }
        figures.write_text(json.dumps(found))
        return taken

    return measure


# PyTorch --------------------------------------------------------------------------


class _ReachedError(Exception):
    """The value is high enough, or time is up."""


class TorchObjective:
    """The hybrid objective of a mixture, and its parameters as tensors.

    Parameters
    ----------
    torch : module
        PyTorch.
    X : ndarray of shape (n, d)
        Scaled rows.
    y : ndarray of shape (n,)
        Class numbers.
    start : Mixture
        Result of EM, for scaled rows.
    whitened : bool
        Kind of the coordinates.
    """

    def __init__(
        self, torch: Any, X: np.ndarray, y: np.ndarray, start: Any, whitened: bool
    ) -> None:
        self._torch = torch
        self._X = torch.tensor(X, dtype=torch.float64)
        self._y = torch.tensor(y, dtype=torch.int64)
        self._n_classes = start.n_classes
        self._class_of = torch.tensor(start.class_of, dtype=torch.int64)
        self._prior = start.family.prior
        self._target = torch.tensor(self._prior.covariance)
        self._means = torch.tensor(start.components.means)
        self._whiteners = torch.tensor(start.components.whiteners)
        self._log_mixing = torch.tensor(start.log_mixing)
        self._log_class_prior = torch.tensor(start.log_class_prior)
        self._lower = torch.tril_indices(X.shape[1], X.shape[1])
        self._whitened = whitened
        n_components, n_packed = len(start.log_mixing), self._lower.shape[1]
        if whitened:
            shapes = [self._means.shape, (n_components, n_packed)]
            shapes += [(n_components,), (self._n_classes,)]
            values = [torch.zeros(shape, dtype=torch.float64) for shape in shapes]
            # As long as the whitened steps of ours, for the mean over the rows.
            counts = (1.0 + TRADEOFF) * torch.exp(torch.tensor(start.log_weights))
            self._step = 1.0 / torch.sqrt(counts)
            by_class = torch.zeros(self._n_classes, dtype=torch.float64)
            by_class.index_add_(0, self._class_of, counts)
            self._prior_step = 1.0 / torch.sqrt(by_class)
        else:
            factors = torch.linalg.cholesky(torch.tensor(start.components.covariances))
            values = [
                self._means.clone(),
                self._packed(factors),
                self._log_mixing.clone(),
                self._log_class_prior.clone(),
            ]
        self.parameters = [value.requires_grad_() for value in values]

    def _packed(self, factors: Any) -> Any:
        """Return lower triangles as vectors, with logarithms of the diagonal."""
        packed = factors[:, self._lower[0], self._lower[1]].clone()
        on_diagonal = self._lower[0] == self._lower[1]
        packed[:, on_diagonal] = packed[:, on_diagonal].log()
        return packed

    def _unpacked(self, packed: Any) -> Any:
        torch = self._torch
        on_diagonal = self._lower[0] == self._lower[1]
        # Only the diagonal goes through exp(), which could overflow elsewhere.
        logs = torch.where(on_diagonal, packed, torch.zeros_like(packed))
        values = torch.where(on_diagonal, logs.exp(), packed)
        d = self._X.shape[1]
        matrices = torch.zeros((len(packed), d, d), dtype=torch.float64)
        index = (slice(None), self._lower[0], self._lower[1])
        matrices[index] = values
        return matrices

    def _natural(self) -> tuple[Any, Any, Any]:
        """Return whiteners, shifts of whitened rows and log weights of components."""
        torch = self._torch
        first, packed, mixing, prior = self.parameters
        if self._whitened:
            matrices = self._unpacked(packed * self._step[:, None])
            whiteners = matrices @ self._whiteners
            shifts = (whiteners @ self._means[:, :, None])[:, :, 0]
            shifts = shifts + first * self._step[:, None]
            mixing = self._log_mixing + mixing * self._step
            prior = self._log_class_prior + prior * self._prior_step
        else:
            unit = torch.eye(self._X.shape[1], dtype=torch.float64)
            whiteners = torch.linalg.solve_triangular(
                self._unpacked(packed), unit, upper=False
            )
            shifts = (whiteners @ first[:, :, None])[:, :, 0]
        mixing = mixing.reshape(self._n_classes, -1).log_softmax(dim=1).flatten()
        return whiteners, shifts, mixing + prior.log_softmax(dim=0)[self._class_of]

    def _values(self, chunk: slice, whiteners: Any, shifts: Any, log_weights: Any) -> Any:
        """Return the sum of the objective over a chunk of rows."""
        torch = self._torch
        X, y = self._X[chunk], self._y[chunk]
        n_components, d = shifts.shape
        white = torch.addmm(-shifts.flatten(), X, whiteners.reshape(-1, d).T)
        squares = white.square().reshape(len(X), n_components, d).sum(dim=2)
        log_determinants = whiteners.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        constants = log_determinants + log_weights - 0.5 * d * math.log(2.0 * math.pi)
        log_density = constants - 0.5 * squares
        log_joint = log_density.reshape(len(X), self._n_classes, -1).logsumexp(dim=2)
        own = log_joint.gather(1, y[:, None])
        rivals = log_joint.scatter(1, y[:, None], -math.inf)
        best = (SHARPNESS * rivals).logsumexp(dim=1) / SHARPNESS
        lacking = MARGIN - own[:, 0] + best
        rounded = (lacking.clamp(-WIDTH, WIDTH) + WIDTH).square() / (4.0 * WIDTH)
        loss = torch.where(lacking > WIDTH, lacking, rounded)
        return own.sum() - TRADEOFF * loss.sum()

    def _log_prior_density(self, whiteners: Any) -> Any:
        half_log_determinants = -whiteners.diagonal(dim1=1, dim2=2).log().sum()
        trace = ((whiteners @ self._target) * whiteners).sum()
        return -self._prior.strength * (half_log_determinants + 0.5 * trace)

    def loss(self) -> float:
        """Return minus the mean objective, and leave its gradient in the parameters.

        Chunks leave their gradients by what densities are made of; one pass takes their
        sum back to the parameters, so that the largest array is of a chunk.
        """
        torch = self._torch
        n = len(self._X)
        natural = self._natural()
        leaves = [tensor.detach().requires_grad_() for tensor in natural]
        prior = -self._log_prior_density(leaves[0]) / n
        prior.backward()
        total = prior.item()
        for first in range(0, n, CHUNK):
            part = -self._values(slice(first, first + CHUNK), *leaves) / n
            part.backward()
            total += part.item()
        for parameter in self.parameters:
            parameter.grad = None
        torch.autograd.backward(natural, [leaf.grad for leaf in leaves])
        return total


def set_up_torch(
    digits: Path,
    start: Path,
    whitened: bool,
    target: float,
    limit: float,
    figures: Path,
) -> Measure:
    """Measure the seconds until PyTorch has reached a value, or the limit is over."""
    import torch

    torch.set_num_threads(THREADS)
    data: Digits = read(digits)
    fitted: HybridMixtureClassifier = read(start)
    X = (data.X - fitted.schema_.centre) / fitted.schema_.scale
    y = np.searchsorted(fitted.classes_, data.y)
    TorchObjective(torch, X, y, fitted.model_, whitened).loss()  # warms up

    def measure() -> float:
        objective = TorchObjective(torch, X, y, fitted.model_, whitened)
        optimiser = torch.optim.LBFGS(
            objective.parameters,
            max_iter=MOST_ITERATIONS,
            max_eval=10 * MOST_ITERATIONS,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            history_size=10,
            line_search_fn="strong_wolfe",
        )
        values: list[float] = []
        forget_peak()
        before = memory_bytes("VmRSS")
        began = time.perf_counter()

        def closure() -> float:
            values.append(-objective.loss())
            if values[-1] >= target or time.perf_counter() - began > limit:
                raise _ReachedError
            return -values[-1]

        with contextlib.suppress(_ReachedError):
            optimiser.step(closure)
        taken = time.perf_counter() - began
        state = optimiser.state[objective.parameters[0]]
        found = {
            "iterations": state.get("n_iter", 0),
            "evaluations": len(values),
            "start_value": values[0],
            "value": max(values),
            "megabytes": (memory_bytes("VmHWM") - before) / 2**20,
        }
        figures.write_text(json.dumps(found))
        return taken

    return measure


# Tables ---------------------------------------------------------------------------


def whole_table(digits: Path) -> tuple[list[Row], int | None]:
    """Measure the whole training; return its row and the best iteration."""
    found = measured_with_figures(
        Contestant("hybridmix, whole", set_up_whole, {"digits": digits}, threads=THREADS)
    )
    if found is None:
        return [], None
    row = {
        "what": "EM and hybrid training, with early stopping",
        "seconds": found["seconds"],
        "target": WALL_TARGET,
        "verdict": verdict(found["seconds"], WALL_TARGET, disturbed=found["disturbed"]),
        **{key: value for key, value in found.items() if key != "seconds"},
    }
    return [row], max(1, int(found["best_iteration"]))


def race_table(digits: Path, start: Path, n_steps: int, with_torch: bool) -> list[Row]:
    """Measure ours for a number of iterations, and PyTorch until it is as high."""
    arguments = {"digits": digits, "start": start, "n_steps": n_steps}
    ours = measured_with_figures(
        Contestant("hybridmix", set_up_ours, arguments, threads=THREADS)
    )
    if ours is None:
        return []
    rows: list[Row] = [{"method": "hybridmix", **ours, "reached": "yes"}]
    for name, whitened in (("whitened", True), ("plain", False)):
        if not with_torch:
            continue
        arguments = {
            "digits": digits,
            "start": start,
            "whitened": whitened,
            "target": ours["value"],
            "limit": PATIENCE * ours["seconds"],
        }
        contestant = Contestant(
            f"PyTorch, {name}", set_up_torch, arguments, threads=THREADS
        )
        found = measured_with_figures(contestant)
        if found is None:
            continue
        difference = abs(found["start_value"] / ours["start_value"] - 1.0)
        if difference > AGREEMENT:
            print(f"LEFT OUT: {contestant.name}: another objective, {difference:.1e}")
            continue
        reached = "yes" if found["value"] >= ours["value"] else "no"
        rows.append(
            {
                "method": contestant.name,
                **found,
                "reached": reached,
                "start_difference": difference,
            }
        )
    for row in rows:
        row["over_ours"] = ratio(row["seconds"], ours["seconds"])
    columns = ["method", "seconds", "over_ours", "reached", "iterations", "evaluations"]
    columns += ["start_value", "value", "start_difference", "megabytes", "disturbed"]
    return [{name: row.get(name) for name in columns} for row in rows]


def run(options: Options) -> None:
    with_torch = rival("torch") is not None
    try:
        data = load_digits(options.data, options.quick)
    except MissingDataError as error:
        print(f"LEFT OUT: {error}", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        digits = kept(data, Path(folder) / "digits.pickle")
        whole, n_steps = whole_table(digits)
        if n_steps is None:
            return
        fitted = classifier(objective="likelihood").fit(data.X, data.y)
        start = kept(fitted, Path(folder) / "start.pickle")
        rows = race_table(digits, start, n_steps, with_torch)
    say(
        f"MNIST, {len(data.X)} digits: training to the lowest validation error",
        {"errors": "in per cent", "megabytes": "peak over what was there before"},
    )
    print_table(whole)
    write_table("torch_speed_whole", whole, options, PACKAGES)
    say(
        "Hybrid training from the result of EM until the objective is as high as ours",
        {
            "value": "mean objective of the scaled rows",
            "reached": f"no: stopped after {PATIENCE:g} times our seconds",
            "disturbed": DISTURBED,
        },
    )
    print_table(rows)
    write_table("torch_speed", rows, options, PACKAGES)


def main(arguments: Sequence[str] | None = None) -> None:
    run(parse_options(__doc__, arguments))


if __name__ == "__main__":
    main()
