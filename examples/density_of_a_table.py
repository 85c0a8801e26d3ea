"""The density of a table with holes: contours, clusters, and exact marginals.

Three groups of rows, of which a fifth of the cells is missing. Kinds of covariances and
numbers of components compete on held-out rows.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from figures import BLUE, GREY, ORANGE, RED, SKY, Options, Plane, finish, read_options

from hybridmix import MixtureDensity

N_ROWS, HOLES = 250, 0.2
CENTRES = ([-2.0, -1.0], [2.0, -1.2], [0.2, 2.2])
SPREADS = ([[0.6, 0.5], [0.5, 0.8]], [[0.9, -0.3], [-0.3, 0.3]], [[0.8, 0.0], [0.0, 0.4]])
COLORS = (BLUE, RED, ORANGE, SKY)
PLANE = Plane.around_origin(5.0)


def draw_table(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    groups = [
        rng.multivariate_normal(centre, spread, N_ROWS)
        for centre, spread in zip(CENTRES, SPREADS, strict=True)
    ]
    X = np.vstack(groups)
    X[rng.random(X.shape) < HOLES] = np.nan
    return X


def main(options: Options) -> None:
    X = draw_table(2)
    density = MixtureDensity(random_state=0).fit(X)
    print(f"{density.n_components_} components, {density.covariance_type_}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0))

    clusters = density.predict(X)
    for k, color in enumerate(COLORS[: density.n_components_]):
        left.plot(*X[clusters == k].T, ".", color=color, markersize=4)
    log_density = PLANE.of_points(density.score_samples)
    levels = log_density.max() - np.array([8.0, 6.0, 4.0, 2.0, 1.0, 0.3])
    lines = {"colors": GREY, "linewidths": 1.0, "linestyles": "-"}
    left.contour(PLANE.x, PLANE.y, log_density, levels, **lines)
    PLANE.clip(left)
    left.set_title("density and clusters")

    values = np.linspace(-5.0, 5.0, 300)
    for column, color in ((0, BLUE), (1, RED)):
        marginal = density.marginal([column])
        right.plot(values, np.exp(marginal.score_samples(values[:, None])), color=color)
        seen = X[~np.isnan(X[:, column]), column]
        bins = np.linspace(-5.0, 5.0, 41)
        right.hist(seen, bins, density=True, color=color, alpha=0.2)
        right.plot([], [], color=color, label=f"column {column}")
    right.set_title("marginals, over histograms of the observed cells")
    right.set(ylim=(0.0, None), yticks=[])
    right.legend(loc="upper right")
    finish(figure, "density_of_a_table", options.save)


if __name__ == "__main__":
    main(read_options(__doc__.splitlines()[0]))
