"""EM recovers a mixture from a table with holes; mean imputation does not.

A mixture of two Gaussians is known. About four in ten values of y are hidden, either at
random (MCAR), or mostly where x is large (MAR). Once, EM fits the rows as they are; once,
the holes are filled by the column mean and EM fits the filled rows.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    RED,
    Options,
    draw_ellipse,
    finish,
    read_options,
)
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hybridmix import MixtureDensity

MIXING = np.array([0.5, 0.5])
MEANS = np.array([[0.0, 0.0], [1.5, 4.0]])
COVARIANCES = np.array([[[1.0, 0.8], [0.8, 1.0]], [[1.0, -0.6], [-0.6, 1.0]]])
N_ROWS = 600
N_REPETITIONS = 20
MECHANISMS = {
    "MCAR": "y is hidden in 40 % of the rows",
    "MAR": "y is hidden in 85 % of the rows with x > 0.9",
}


def draw_table(generator: np.random.Generator) -> np.ndarray:
    component = generator.choice(2, p=MIXING, size=N_ROWS)
    noise = generator.standard_normal((N_ROWS, 2, 1))
    factors = np.linalg.cholesky(COVARIANCES)
    return MEANS[component] + np.squeeze(factors[component] @ noise, axis=2)


def with_holes(
    table: np.ndarray, mechanism: str, generator: np.random.Generator
) -> np.ndarray:
    chance = 0.4 if mechanism == "MCAR" else np.where(table[:, 0] > 0.9, 0.85, 0.0)
    result = table.copy()
    result[generator.random(len(table)) < chance, 1] = np.nan
    return result


def fit(table: np.ndarray) -> MixtureDensity:
    """Fit by maximum likelihood, with the true number of components."""
    model = MixtureDensity(
        2,
        covariance_type="full",
        covariance_prior=0.0,
        tol=1e-6,
        max_iter=5000,
        n_init=2,
        random_state=0,
    )
    return model.fit(table)


def fit_both(table: np.ndarray) -> dict[str, MixtureDensity]:
    filled = np.where(np.isnan(table), np.nanmean(table, axis=0), table)
    return {"EM with holes": fit(table), "mean imputation": fit(filled)}


def parameter_errors(model: MixtureDensity) -> tuple[float, float]:
    """Return the largest errors of means and covariances, components matched."""
    orders = [np.array([0, 1]), np.array([1, 0])]
    order = min(orders, key=lambda o: np.abs(model.means_[o] - MEANS).max())
    return (
        float(np.abs(model.means_[order] - MEANS).max()),
        float(np.abs(model.covariances_[order] - COVARIANCES).max()),
    )


def print_errors(generator: np.random.Generator, n_repetitions: int) -> None:
    print(f"Largest error of a parameter, mean over {n_repetitions} tables:\n")
    print(f"{'':26}{'means':>10}{'covariances':>14}")
    for mechanism in MECHANISMS:
        errors: dict[str, list[tuple[float, float]]] = {}
        for _ in range(n_repetitions):
            table = with_holes(draw_table(generator), mechanism, generator)
            for name, model in fit_both(table).items():
                errors.setdefault(name, []).append(parameter_errors(model))
        for name, pairs in errors.items():
            means, covariances = np.mean(pairs, axis=0)
            print(f"{mechanism + ', ' + name:<26}{means:>10.2f}{covariances:>14.2f}")


def draw_panel(
    axes: Axes, whole: np.ndarray, table: np.ndarray, model: MixtureDensity, color: str
) -> None:
    hidden = np.isnan(table[:, 1])
    axes.plot(*whole[~hidden].T, ".", color=GREY, markersize=3, label="row")
    axes.plot(*whole[hidden].T, ".", color=LIGHT, markersize=3, label="row with y hidden")
    for j in range(2):
        label = "truth" if j == 0 else None
        draw_ellipse(axes, MEANS[j], COVARIANCES[j], BLACK, label, "--")
    for j in range(2):
        label = "estimate" if j == 0 else None
        draw_ellipse(axes, model.means_[j], model.covariances_[j], color, label)
    axes.set(xlim=(-3.5, 5.0), ylim=(-3.5, 7.5))


def main(options: Options) -> None:
    generator = np.random.default_rng(0)
    print_errors(generator, 2 if options.quick else N_REPETITIONS)
    figure, panels = plt.subplots(2, 2, figsize=(8.6, 7.8), sharex=True, sharey=True)
    whole = draw_table(generator)
    for line, (mechanism, rule) in zip(panels, MECHANISMS.items(), strict=True):
        table = with_holes(whole, mechanism, generator)
        models = fit_both(table)
        for axes, color, (name, model) in zip(
            line, (BLUE, RED), models.items(), strict=True
        ):
            draw_panel(axes, whole, table, model, color)
            axes.set_title(f"{mechanism}: {name}")
        hidden = np.isnan(table[:, 1])
        mean = np.full(hidden.sum(), np.nanmean(table[:, 1]))
        line[1].plot(whole[hidden, 0], mean, "|", color=RED, markersize=4, alpha=0.5)
        line[0].set_ylabel(f"{rule}\n\ny")
    for axes in panels[1]:
        axes.set_xlabel("x")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    handles += [Line2D([], [], color=RED), Line2D([], [], color=RED, ls="", marker="|")]
    labels[-1] = "estimate from rows with holes"
    labels += ["estimate from filled rows", "filled by the mean"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    finish(figure, "missing_data_em", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
