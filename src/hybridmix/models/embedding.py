"""What the components of a mixture say about rows, as features of another model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridmix._logsumexp import group_blocks, grouped_logsumexp
from hybridmix._registered import registered
from hybridmix._require import (
    require,
    require_array,
    require_instance,
    require_positive,
    require_whole,
)
from hybridmix._typing import BoolArray, FloatArray
from hybridmix.data.rows import MISSING_CODE, Rows
from hybridmix.families.categorical import CategoricalParameters
from hybridmix.models.mixture import Mixture

# Kinds of features, in the order in which they stand.
POSTERIOR, LOG_JOINT, LINEAR, EXPERTS = "posterior", "log_joint", "linear", "experts"
KINDS = (POSTERIOR, LOG_JOINT, LINEAR, EXPERTS)


@registered
@dataclass(frozen=True, eq=False)
class Embedding:
    r"""Features :math:`g(x)` of rows, made of the components of a mixture.

    With :math:`\ell_k = \log \alpha_k p(x \mid k)`, of what is observed in a row, they
    are, as far as they are asked for,

    - "posterior": :math:`r_k = e^{\ell_k / T} / \sum_{k'} e^{\ell_{k'} / T}`, over all
      components or over those of the same class;
    - "log_joint": :math:`(\ell_k - m_k) / s_k`;
    - "linear": the row :math:`\hat x`, its holes filled by expected values;
    - "experts": all products :math:`r_k \hat x_i`.

    Attributes
    ----------
    kinds : tuple of str
        Which features, in the order above.
    temperature : float
        :math:`T`; above one, posteriors are less sure.
    by_class : bool
        Whether components of each class of the mixture have posteriors of their own.
    centre, spread : ndarray of shape (J,)
        :math:`m` and :math:`s`.
    n_real : int
        Number of real columns.
    code_sizes : tuple of int
        Numbers of categories of the others.
    filler : Mixture or None
        What fills holes: the mixture that training began with. None if neither "linear"
        nor "experts" is asked for.
    """

    kinds: tuple[str, ...]
    temperature: float
    by_class: bool
    centre: FloatArray
    spread: FloatArray
    n_real: int
    code_sizes: tuple[int, ...]
    filler: Mixture | None = None

    def check_consistent(self) -> None:
        """Raise ValueError unless the parts fit together."""
        require_instance("kinds", self.kinds, tuple)
        ordered = tuple(kind for kind in KINDS if kind in self.kinds)
        require(len(self.kinds) > 0 and self.kinds == ordered, "kinds are not known")
        require_positive("temperature", self.temperature)
        require_instance("by_class", self.by_class, bool)
        n_components = len(np.atleast_1d(self.centre))
        require_array("centre", self.centre, (n_components,))
        require_array("spread", self.spread, (n_components,), positive=True)
        require_instance("code_sizes", self.code_sizes, tuple)
        require_whole("columns", (self.n_real, *self.code_sizes))
        require((self.filler is not None) == self.reads_cells, "filler does not fit")
        if self.filler is not None:
            require_instance("filler", self.filler, Mixture)
            layout = self.filler.family.layout()
            own = (self.n_real, self.code_sizes)
            require(layout in (None, own), "filler has other columns")

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.centre)

    @property
    def n_cells(self) -> int:
        """How many numbers a row has, with an indicator of each category."""
        return self.n_real + sum(self.code_sizes)

    @property
    def reads_cells(self) -> bool:
        """Whether features depend on the cells of a row, besides its densities."""
        return LINEAR in self.kinds or EXPERTS in self.kinds

    def sizes(self) -> dict[str, int]:
        """Return how many features of each kind there are."""
        n_components, n_cells = self.n_components, self.n_cells
        every = dict(
            zip(
                KINDS,
                (n_components, n_components, n_cells, n_components * n_cells),
                strict=True,
            )
        )
        return {kind: every[kind] for kind in self.kinds}

    @property
    def n_features(self) -> int:
        """Number of features."""
        return sum(self.sizes().values())

    def places(self) -> dict[str, slice]:
        """Return where the features of each kind stand."""
        places, first = {}, 0
        for kind, size in self.sizes().items():
            places[kind] = slice(first, first + size)
            first += size
        return places

    def expected_squares(self, mixture: Mixture) -> FloatArray:
        """Return about the mean squares (F,) of the features, to scale their weights.

        A posterior is taken for an indicator of its component.
        """
        shares = np.exp(mixture.log_mixing if self.by_class else mixture.log_weights)
        indicators = [np.full(size, 1.0 / size) for size in self.code_sizes]
        cells = np.concatenate([np.ones(self.n_real), *indicators])
        squares = {
            POSTERIOR: shares,
            LOG_JOINT: np.ones(self.n_components),
            LINEAR: cells,
            EXPERTS: np.outer(shares, cells).ravel(),
        }
        return np.concatenate([squares[kind] for kind in self.kinds])

    def seen_by(self, mixture: Mixture) -> BoolArray | None:
        """Return which features (C, F) each class looks at; None for all of them.

        Where classes have mixtures of their own, they look at these alone.
        """
        if not self.by_class:
            return None
        own = mixture.class_of == np.arange(mixture.n_classes)[:, None]
        every = np.ones((mixture.n_classes, self.n_cells), bool)
        seen = {
            POSTERIOR: own,
            LOG_JOINT: own,
            LINEAR: every,
            EXPERTS: np.repeat(own, self.n_cells, axis=1),
        }
        return np.concatenate([seen[kind] for kind in self.kinds], axis=1)

    # Rows -------------------------------------------------------------------------------

    def cells(self, rows: Rows) -> FloatArray:
        """Return what is expected in the cells (D, n) of rows; nothing, if not needed."""
        if self.filler is None:
            return np.empty((0, rows.n_rows))
        return expected_cells(self.filler, rows, self.code_sizes)

    def features(
        self, mixture: Mixture, log_joint: FloatArray, cells: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return features (F, n) and tempered posteriors (J, n).

        Parameters
        ----------
        mixture : Mixture
            Whose components they are.
        log_joint : ndarray of shape (J, n)
            Of its components.
        cells : ndarray of shape (D, n)
            See `cells`.
        """
        posterior = self._posterior(mixture, log_joint)
        parts = []
        for kind in self.kinds:
            if kind == POSTERIOR:
                parts.append(posterior)
            elif kind == LOG_JOINT:
                standardised = log_joint - self.centre[:, None]
                standardised /= self.spread[:, None]
                parts.append(standardised)
            elif kind == LINEAR:
                parts.append(cells)
            else:
                products = posterior[:, None] * cells[None]
                parts.append(products.reshape(-1, cells.shape[1]))
        return parts[0] if len(parts) == 1 else np.concatenate(parts), posterior

    def pulled_back(
        self,
        mixture: Mixture,
        by_features: FloatArray,
        posterior: FloatArray,
        cells: FloatArray,
    ) -> FloatArray:
        r"""Return derivatives by the log joint densities (J, n) of components.

        .. math:: \frac{r_k}{T} \Big( u_k - \sum_{k'} r_{k'} u_{k'} \Big)

        where :math:`u_k` is the derivative by the posterior :math:`r_k`, of all that it
        is part of.

        Parameters
        ----------
        mixture : Mixture
            Whose components they are.
        by_features : ndarray of shape (F, n)
            Derivatives by the features.
        posterior : ndarray of shape (J, n)
            Tempered posteriors.
        cells : ndarray of shape (D, n)
            See `cells`.
        """
        places = self.places()
        by_posterior = np.zeros_like(posterior)
        if POSTERIOR in places:
            by_posterior += by_features[places[POSTERIOR]]
        if EXPERTS in places:
            products = by_features[places[EXPERTS]].reshape(
                *posterior.shape[:1], -1, posterior.shape[1]
            )
            by_posterior += np.einsum("kin,in->kn", products, cells)
        mean = np.empty_like(by_posterior)
        np.multiply(by_posterior, posterior, out=mean)
        for _, block in group_blocks(mean, self._groups(mixture)):
            block[:] = block.sum(axis=1, keepdims=True)
        by_posterior -= mean
        by_posterior *= posterior
        by_posterior /= self.temperature
        if LOG_JOINT in places:
            by_posterior += by_features[places[LOG_JOINT]] / self.spread[:, None]
        return by_posterior

    def _groups(self, mixture: Mixture) -> tuple[int, ...]:
        return mixture.offsets if self.by_class else (0, mixture.n_components)

    def _posterior(self, mixture: Mixture, log_joint: FloatArray) -> FloatArray:
        groups = self._groups(mixture)
        posterior = log_joint / self.temperature
        _, sums = grouped_logsumexp(posterior, groups)
        for places, block in group_blocks(posterior, groups):
            block /= sums[places, None]
        return posterior


def expected_cells(
    mixture: Mixture, rows: Rows, code_sizes: tuple[int, ...]
) -> FloatArray:
    """Return what a mixture expects in the cells (D, n) of rows, given what they have.

    Real columns come first, then an indicator for each value of the categorical ones,
    whose probability fills a hole.
    """
    hole = (rows.codes == MISSING_CODE).any(axis=0)
    if rows.observed is not None:
        hole |= ~rows.observed.all(axis=0)
    cells = np.concatenate([rows.real, *_indicators(rows, code_sizes)])
    holed = np.flatnonzero(hole)
    if len(holed) == 0:
        return cells
    part = rows[holed]
    posterior = mixture.evaluate(mixture.prepare(part)).component_posterior()
    filled = mixture.family.impute(part, mixture.components, posterior)
    expected = np.concatenate([filled.real, *_indicators(filled, code_sizes)])
    probabilities = _category_probabilities(mixture)
    if probabilities is not None:
        n_real = len(rows.real)
        missing = np.repeat(part.codes == MISSING_CODE, code_sizes, axis=0)
        means = np.dot(probabilities.T, posterior)
        expected[n_real:] = np.where(missing, means, expected[n_real:])
    cells[:, holed] = expected
    return cells


def _indicators(rows: Rows, code_sizes: tuple[int, ...]) -> list[FloatArray]:
    """Return indicators (size, n) of the categories of each column; zero for a hole."""
    return [
        (codes == np.arange(size)[:, None]).astype(np.float64)
        for codes, size in zip(rows.codes, code_sizes, strict=True)
    ]


def _category_probabilities(mixture: Mixture) -> FloatArray | None:
    """Return the probabilities (J, M) of all categories, if components have them."""
    for factor in getattr(mixture.components, "factors", (mixture.components,)):
        if isinstance(factor, CategoricalParameters):
            return np.exp(factor.log_probabilities)
    return None
