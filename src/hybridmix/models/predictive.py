"""Distributions of targets given the rest of a row, by one mixture or by several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr

from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_instance, require_positive
from hybridmix._typing import FloatArray
from hybridmix.data.rows import Rows
from hybridmix.data.targets import TargetPlaces, with_hidden
from hybridmix.models.conditional import conditional
from hybridmix.models.mixture import Mixture

_LOG_2PI = float(np.log(2.0 * np.pi))
# Bisection of quantiles ends at this part of a standard deviation of the target.
_N_HALVINGS = 40
# A Gaussian has nothing to speak of beyond this many of its deviations.
TAIL = 9.0


class Forecast(NamedTuple):
    """The distribution of one target: Gaussians and atoms.

    Attributes
    ----------
    weights : ndarray of shape (J, n)
        Probabilities of the Gaussians; with those of the atoms they sum to one.
    means, deviations : ndarray of shape (J, n)
        Of the Gaussians, in the scale of rows.
    masses : ndarray of shape (S, n)
        Probabilities of the atoms, which are the spikes of the target.
    atoms : ndarray of shape (S,)
        Where these are, in the scale of rows.
    """

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray
    masses: FloatArray
    atoms: FloatArray

    def cdf(self, values: FloatArray) -> FloatArray:
        """Return the probabilities (n,) of no more than the values (n,)."""
        below = ndtr((values - self.means) / self.deviations)
        total = np.einsum("jn,jn->n", self.weights, below)
        if len(self.atoms):
            total += np.sum(self.masses * (self.atoms[:, None] <= values), axis=0)
        return total

    def quantiles(self, level: FloatArray) -> FloatArray:
        """Return the values (n,) below which the levels (n,) lie, by bisection."""
        reach = TAIL * self.deviations
        low, high = (self.means - reach).min(axis=0), (self.means + reach).max(axis=0)
        if len(self.atoms):
            low = np.minimum(low, self.atoms.min())
            high = np.maximum(high, self.atoms.max())
        for _ in range(_N_HALVINGS):
            middle = 0.5 * (low + high)
            is_below = self.cdf(middle) < level
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        return high

    def draw(self, generator: np.random.Generator, n_draws: int) -> FloatArray:
        """Return draws (n_draws, n)."""
        both = np.concatenate([self.weights, self.masses])
        steps = np.cumsum(both, axis=0)
        n_rows = both.shape[1]
        level = generator.random((n_draws, n_rows)) * steps[-1]
        chosen = np.sum(steps[:-1, None] <= level, axis=0)
        noise = generator.standard_normal((n_draws, n_rows))
        is_atom = chosen >= len(self.weights)
        rows = np.arange(n_rows)
        own = np.where(is_atom, 0, chosen)
        values = self.means[own, rows] + noise * self.deviations[own, rows]
        if len(self.atoms):
            atoms = self.atoms[np.where(is_atom, chosen - len(self.weights), 0)]
            values = np.where(is_atom, atoms, values)
        return values


class Residuals(NamedTuple):
    r"""How far the targets of rows are from what every component expects.

    The log predictive density of a mixture whose conditional deviations are multiplied
    by :math:`s` is :math:`\log \sum_j \exp(a_{jn} - q_{jn} / 2 s^2) - t_n \log s`.

    Attributes
    ----------
    offsets : ndarray of shape (J, n)
        :math:`a`: log weights of the components and log densities of their centres.
    squares : ndarray of shape (J, n)
        :math:`q`: squared distances of the targets, in conditional deviations.
    counts : ndarray of shape (n,)
        :math:`t`: how many targets each row has, those that are spikes apart.
    log_density : ndarray of shape (n,)
        Of the rows without their targets.
    """

    offsets: FloatArray
    squares: FloatArray
    counts: FloatArray
    log_density: FloatArray

    def log_predictive(self, spread: float) -> FloatArray:
        """Return the log predictive densities (n,) for a spread."""
        logs = logsumexp(self.offsets - self.squares / (2.0 * spread**2), axis=0)
        return logs - self.counts * np.log(spread)


def residuals(model: Mixture, rows: Rows, places: TargetPlaces) -> Residuals:
    """Compare the targets of rows with what the components of a mixture expect.

    Several targets are taken one after the other, each given those before it.
    """
    known = places.hidden(rows)
    logs = _component_logs(model, known)
    evidence = logsumexp(logs, axis=0)
    offsets, squares = logs - evidence, np.zeros(logs.shape)
    counts = np.zeros(rows.n_rows)
    for place, code in zip(places.real, places.codes, strict=True):
        own = conditional(model, known, place, code)
        has_value = np.ones(rows.n_rows, bool)
        if rows.observed is not None:
            has_value = rows.observed[place]
        if code is not None:
            before = known
            known = replace(known, codes=known.codes.copy())
            known.codes[code] = rows.codes[code]
            offsets += _component_logs(model, known) - _component_logs(model, before)
        distance = (rows.real[place] - own.means) / own.deviations
        squares += np.where(has_value, np.square(distance), 0.0)
        offsets -= np.where(has_value, np.log(own.deviations) + 0.5 * _LOG_2PI, 0.0)
        counts += has_value
        known = _with_real(known, rows, place, has_value)
    return Residuals(offsets, squares, counts, evidence)


def _component_logs(model: Mixture, rows: Rows) -> FloatArray:
    """Return ``log p(x, k)`` of all components, (J, n)."""
    density, _ = model.family.evaluate(model.prepare(rows[:]), model.components)
    return density + model.log_weights[:, None]


def _with_real(known: Rows, rows: Rows, place: int, has_value: FloatArray) -> Rows:
    """Return rows that also have one more real value."""
    assert known.observed is not None, "at least this value is missing"
    observed, real = known.observed.copy(), known.real.copy()
    observed[place] = has_value
    real[place] = np.where(has_value, rows.real[place], 0.0)
    return Rows(real, observed, known.codes)


def _forecast(
    model: Mixture, rows: Rows, place: int, code: int | None, atoms: FloatArray
) -> Forecast:
    """Return the distribution of one target, by one mixture."""
    own = conditional(model, rows, place, code)
    weights, masses = own.weights, np.empty((0, rows.n_rows))
    if code is not None:
        logs = []
        codes = rows.codes.copy()
        for value in range(len(atoms) + 1):
            codes[code] = value
            logs.append(logsumexp(_component_logs(model, replace(rows, codes=codes)), 0))
        shares = np.exp(np.array(logs) - logsumexp(logs, axis=0))
        weights, masses = weights * shares[0], shares[1:]
    return Forecast(weights, own.means, own.deviations, masses, atoms)


@registered
@dataclass(frozen=True, eq=False)
class Predictive:
    r"""What several mixtures of rows and targets say about the targets of a row.

    .. math:: p(y \mid x) = \sum_m s_m \sum_k p_m(k \mid x)\,
              N\big(y;\; \mu_{mk}(x),\; c^2\, \Sigma_{mk}(x)\big)

    The densities of the members are averaged with shares :math:`s_m`, and the spread
    :math:`c` multiplies the conditional deviations of all of them: an average of
    distributions that are right by themselves is too wide. This is the spread-adjusted
    linear pool of Gneiting and Ranjan (2013). All of it is in the scale of rows.

    Attributes
    ----------
    members : tuple of Mixture
        Of rows and targets.
    shares : ndarray of shape (M,)
        How much each member counts; they sum to one.
    spread : float
        The factor :math:`c`.
    """

    members: tuple[Mixture, ...]
    shares: FloatArray
    spread: float

    def check_consistent(self) -> None:
        """Raise ValueError unless members are of one kind of rows, with shares."""
        require_instance("members", self.members, tuple)
        require(len(self.members) > 0, "there are no members")
        for member in self.members:
            require_instance("members", member, Mixture)
            require(member.n_classes == 1, "a member has several classes")
        require_array("shares", self.shares, (len(self.members),), positive=True)
        require(bool(np.isclose(self.shares.sum(), 1.0)), "shares do not sum to one")
        require_instance("spread", self.spread, float)
        require_positive("spread", self.spread)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of all members."""
        return sum(member.n_parameters for member in self.members)

    @property
    def widest(self) -> Mixture:
        """The member that takes most memory: chunks of rows are cut for it."""
        return max(self.members, key=lambda member: member.n_components)

    def _voters(self) -> Iterator[tuple[Mixture, float]]:
        return zip(self.members, self.shares.tolist(), strict=True)

    def forecast(
        self, rows: Rows, place: int, code: int | None, atoms: FloatArray
    ) -> Forecast:
        """Return the distribution of one target that rows lack.

        Parameters
        ----------
        rows : Rows
            Joint rows; other targets may be observed.
        place : int
            Place of the target among the real values.
        code : int or None
            Where the code of its spikes stands.
        atoms : ndarray of shape (S,)
            These spikes, in the scale of rows.
        """
        codes = [] if code is None else [code]
        rows = with_hidden(rows, [place], codes)
        parts = [
            (_forecast(member, rows, place, code, atoms), share)
            for member, share in self._voters()
        ]
        return Forecast(
            np.concatenate([share * own.weights for own, share in parts]),
            np.concatenate([own.means for own, _ in parts]),
            self.spread * np.concatenate([own.deviations for own, _ in parts]),
            sum(share * own.masses for own, share in parts),  # type: ignore[arg-type]
            atoms,
        )

    def draw(
        self,
        rows: Rows,
        places: TargetPlaces,
        atoms: Sequence[FloatArray],
        n_draws: int,
        generator: np.random.Generator,
    ) -> FloatArray:
        """Draw all targets, (t, n_draws, n).

        Parameters
        ----------
        rows : Rows
            Joint rows without targets.
        places : TargetPlaces
            Where the targets stand.
        atoms : sequence of ndarray
            The spikes of each target, in the scale of rows.
        n_draws : int
            Number of draws for each row.
        generator : numpy.random.Generator
            Source of randomness.
        """
        if len(places.real) == 1:
            own = self.forecast(rows, places.real[0], places.codes[0], atoms[0])
            return own.draw(generator, n_draws)[None]
        return np.stack(
            [self._drawn(rows, places, atoms, generator) for _ in range(n_draws)], axis=1
        )

    def _drawn(
        self,
        rows: Rows,
        places: TargetPlaces,
        atoms: Sequence[FloatArray],
        generator: np.random.Generator,
    ) -> FloatArray:
        """Draw all targets once, (t, n), by a member for each row."""
        steps = np.cumsum(self.shares)
        chosen = np.sum(
            steps[:-1, None] <= generator.random(rows.n_rows) * steps[-1], axis=0
        )
        values = np.empty((len(places.real), rows.n_rows))
        for number, member in enumerate(self.members):
            index = np.flatnonzero(chosen == number)
            if len(index):
                values[:, index] = _drawn_by(
                    member, self.spread, rows[index], places, atoms, generator
                )
        return values

    def log_density(self, rows: Rows, places: TargetPlaces) -> FloatArray:
        """Return the log predictive densities (n,) of the targets that rows have."""
        logs = [
            residuals(member, rows, places).log_predictive(self.spread) + np.log(share)
            for member, share in self._voters()
        ]
        return np.asarray(logsumexp(logs, axis=0))


def _drawn_by(
    member: Mixture,
    spread: float,
    rows: Rows,
    places: TargetPlaces,
    atoms: Sequence[FloatArray],
    generator: np.random.Generator,
) -> FloatArray:
    """Draw targets (t, n) by one member: a component, then all targets at once."""
    posterior = member.evaluate(member.prepare(rows)).component_posterior()
    steps = np.cumsum(posterior, axis=0)
    level = generator.random(rows.n_rows) * steps[-1]
    chosen = np.sum(steps[:-1] <= level, axis=0)
    family, components = member.family, member.components
    one_hot = (np.arange(len(steps))[:, None] == chosen).astype(np.float64)
    targets = list(places.real)
    means = family.impute(rows, components, one_hot).real[targets]
    drawn = family.draw(rows, components, chosen, generator)
    values = means + spread * (drawn.real[targets] - means)
    for own, code, known in zip(values, places.codes, atoms, strict=True):
        if code is not None:
            number = drawn.codes[code]
            own[:] = np.where(number > 0, np.append(known, 0.0)[number - 1], own)
    return values
