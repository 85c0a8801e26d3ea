"""Regression by a linear layer on the components of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from hybridmix._checks import check_number, check_word
from hybridmix._parallel import workers
from hybridmix._registered import registered
from hybridmix._require import require, require_array, require_number
from hybridmix._typing import FloatArray
from hybridmix.data import Table
from hybridmix.estimators.automatic import DensityEstimator
from hybridmix.estimators.blocks import over_blocks
from hybridmix.estimators.embedding import (
    embedded_table,
    embedding_of,
    require_embedding,
)
from hybridmix.estimators.options import warn_of
from hybridmix.estimators.output_rows import OutputRows, reading_outputs
from hybridmix.estimators.paired import check_targets_given
from hybridmix.estimators.targets import FittedRegressor
from hybridmix.models.embedding import EXPERTS, LINEAR, Embedding
from hybridmix.models.mixture import Mixture
from hybridmix.models.output import OutputLayer
from hybridmix.models.readout import Readout
from hybridmix.training.linear_output import LinearOutput, fitted_output
from hybridmix.training.network_options import checked_features
from hybridmix.training.record import INTERRUPTED

_OUTPUTS = ("gaussian", "epsilon")
# Posteriors sum to one: without any penalty, there would be no single optimum.
_LEAST_PENALTY, _MOST_PENALTY = 1e-6, 1e12
# Deviations of the errors in densities are no smaller, in the scale of the target.
_LEAST_DEVIATION = 1e-9


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class MixtureNetworkRegressor(FittedRegressor, DensityEstimator):
    r"""Predict numbers with a linear layer on the components of a mixture.

    .. math:: \hat y(x) = b + W g(x)

    The features :math:`g(x)` are those of `MixtureEmbedding`: posteriors of the
    components of one mixture of all rows, the row itself, or the row for each component
    ("experts"). Posteriors are exact, given what is observed in a row; the row has
    expected values in its holes. So predictions for rows with holes are those of expected
    features, and not exact means over what is missing, as `MixtureRegressor` has them.

    Training has two stages: EM of the mixture, which rows without a target take part in,
    and then the output layer. There is no joint training of both: a mixture that is to
    explain the targets as well is the joint density of rows and targets, and that is
    `MixtureRegressor`.

    With ``output="gaussian"``, the distribution of a target given a row is Gaussian,
    :math:`N(\hat y(x), \sigma^2)`, with the same deviation in every row; several targets
    are independent of each other given the row. `predict_quantiles`, `predict_interval`,
    `log_predictive_density`, `sample_y` and `sample` are those of this distribution, and
    do not exist for ``output="epsilon"``.

    Parameters
    ----------
    n_components : int, iterable of int or "auto", default="auto"
        Number of components of the mixture, as in `MixtureDensity`.
    features : str or sequence of str, default=("posterior", "linear")
        One or several of "posterior", "log_joint", "linear" and "experts", as in
        `MixtureEmbedding`.
    output : {"gaussian", "epsilon"}, default="gaussian"
        Least squares, which is Gaussian noise of the same variance in every row; or an
        insensitive loss: errors up to ``epsilon`` cost nothing, and greater ones cost
        what they exceed it by, so that outlying targets count less. The corner of this
        loss is rounded over 0.02 standard deviations.
    epsilon : float, default=0.1
        In standard deviations of the target. Only for ``output="epsilon"``.
    l2, l2_linear : float or "auto", default="auto"
        Penalties of squared weights, half of their sum times this, in units of rows and
        for targets of standard deviation one: of posteriors and log joint densities, and
        of linear features and experts. "auto" is chosen from powers of 4 between 1/16
        and 1024 by generalised cross-validation of least squares, for all targets
        together.
    embedding_temperature : float or "auto", default="auto"
        Temperature of the posteriors, as in `MixtureEmbedding`.
    covariance_type, n_factors, noise, covariance_prior, variance_floor, smoothing, \
    categorical_features, column_shapes, init, n_init, max_iter, tol, effort, dtype, \
    n_jobs, random_state, verbose
        As in `MixtureDensity`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_outputs_, n_weights)
        :math:`W`, in the units of the targets; `embed` returns the features.
    bias_ : ndarray of shape (n_outputs_,)
        :math:`b`.
    deviations_ : ndarray of shape (n_outputs_,)
        Standard deviations of the errors, for ``output="gaussian"``: roots of the
        generalised cross-validation, which allows for the effective number of weights.
    l2_, l2_linear_ : float
        The penalties; 1 for an automatic one that no feature has.
    embedding_ : Embedding
        What the features are made of.
    target_schema_ : Schema
        Centres and scales of the targets.
    n_outputs_ : int
        Number of targets.
    target_ndim_ : int
        Whether the targets were a vector (1) or a table (2).
    n_components_, covariance_type_, covariance_prior_, mixing_, means_, covariances_, \
    loading_, noise_variances_, category_probabilities_, categories_, \
    spike_probabilities_, bic_, leaderboard_, trace_, converged_, interrupted_, n_iter_, \
    n_features_in_, feature_names_in_
        As in `MixtureDensity`.

    See Also
    --------
    MixtureRegressor : The joint density of rows and targets: predictive distributions.
    MixtureEmbedding : The features alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from hybridmix import MixtureNetworkRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X[::3, 2] = np.nan          # holes
    >>> model = MixtureNetworkRegressor(
    ...     4, covariance_type="diag", random_state=0
    ... ).fit(X, y)
    >>> mean, deviation = model.predict(X[:2], return_std=True)
    >>> bool(deviation[0] < y.std())
    True
    """

    purpose = "predicts real targets by a linear layer on the components of a mixture"
    fitted_attributes = (
        *FittedRegressor.fitted_attributes,
        "embedding_",
        "weights_",
        "bias_",
    )

    features: Any = ("posterior", "linear")
    output: str = "gaussian"
    epsilon: float = 0.1
    l2: float | str = "auto"
    l2_linear: float | str = "auto"
    embedding_temperature: float | str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the mixture, and then the output layer.

        Parameters
        ----------
        X : array-like, data frame or scanned table of shape (n, d)
            Training table; NaN, None and pandas.NA are missing values. A table that does
            not fit into memory is read by `scan`.
        y : array-like or data frame of shape (n,) or (n, t), str or list of str
            Targets; rows in which they are missing take part in the mixture. Of a scanned
            table, the name of their column, or several.
        sample_weight : array-like of shape (n,), or str, default=None
            A row of weight two counts like two rows. Of a scanned table, the name of the
            column.

        Returns
        -------
        self : MixtureNetworkRegressor
        """
        self._check_options()
        check_targets_given(self, y)
        with reading_outputs(self, X, y, sample_weight) as rows:
            fitted, attributes = self._fit_rows(
                rows.attributes["schema_"], rows.dataset, self._density_options()
            )
            model, schema = attributes["model_"], attributes["schema_"]
            embedding = embedding_of(
                self.features,
                self.embedding_temperature,
                model,
                schema,
                rows.dataset,
                self.n_jobs,
            )
            layer = self._fit_output(model, embedding, rows)
        target_schema = rows.attributes["target_schema_"]
        scale = target_schema.scale
        found = {
            **rows.attributes,
            **attributes,
            "embedding_": embedding,
            "weights_": layer.weights * scale[:, None],
            "bias_": layer.bias * scale + target_schema.centre,
            "l2_": layer.l2,
            "l2_linear_": layer.l2_linear,
        }
        if self.output == "gaussian":
            found["deviations_"] = layer.deviations * scale
        messages = fitted.messages
        if layer.interrupted and not fitted.interrupted:
            found["interrupted_"] = True
            messages = (*messages, INTERRUPTED)
        self._publish(found)
        warn_of(messages)
        return self

    def _fit_output(
        self, model: Mixture, embedding: Embedding, rows: OutputRows
    ) -> LinearOutput:
        """Fit the layer to the rows that have targets."""
        is_linear = np.zeros(embedding.n_features, bool)
        for kind, place in embedding.places().items():
            is_linear[place] = kind in (LINEAR, EXPERTS)
        zero = np.zeros(len(is_linear))
        n_outputs = rows.attributes["n_outputs_"]
        # It prepares features, which are kept between passes if they fit into memory.
        readout = Readout(model, embedding, OutputLayer.zero(n_outputs, zero, zero))
        epsilon = float(self.epsilon) if self.output == "epsilon" else None
        with workers(self.n_jobs) as pool:
            given = rows.targets(readout, pool)
            return fitted_output(given, is_linear, self.l2, self.l2_linear, epsilon)

    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return the expected targets given each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows; missing values are allowed.
        return_std : bool, default=False
            Return also standard deviations of the errors, which are the same in all rows.
            Only for ``output="gaussian"``.

        Returns
        -------
        y : ndarray of shape (n,) or (n, t)
            Predictions, in the form that the targets of training had.
        std : ndarray of the same shape
            Deviations, if they were asked for.
        """
        if return_std and not self._has_distribution:
            raise ValueError(
                "return_std=True needs output='gaussian': the insensitive loss of "
                f"output={self.output!r} is not that of a distribution."
            )
        means = self._expected(X)
        if not return_std:
            return means
        deviations = self.deviations_[0] if self.target_ndim_ == 1 else self.deviations_
        return means, np.ones_like(means) * deviations

    @over_blocks
    def _expected(self, X: Any) -> FloatArray:
        return self._shaped(self._means(self._encode(X)))

    def _means(self, table: Table) -> FloatArray:
        """Return the expected targets (t, n) of encoded rows."""

        def read(features: FloatArray) -> FloatArray:
            return self.weights_ @ features + self.bias_[:, None]

        return embedded_table(self.model_, self.embedding_, table, self._n_threads, read)

    # The distribution of the targets --------------------------------------------------

    @property
    def _has_distribution(self) -> bool:
        return self.output == "gaussian"

    def table_moments(self, table: Table) -> tuple[FloatArray, FloatArray]:
        """Return means and deviations (t, n) of the targets of encoded rows."""
        deviations = np.repeat(self.deviations_[:, None], table.n_rows, axis=1)
        return self._means(table), deviations

    def table_quantiles(self, table: Table, levels: FloatArray) -> FloatArray:
        """Return quantiles (t, q, n) of the targets of encoded rows."""
        steps = self.deviations_[:, None] * ndtri(levels)
        return self._means(table)[:, None, :] + steps[:, :, None]

    def _table_log_density(self, table: Table, targets: Table) -> FloatArray:
        """Return log densities (n,) of the targets of encoded rows, those that are known.

        They are in the units of the targets.
        """
        # The errors of a constant target are zero.
        least = _LEAST_DEVIATION * self.target_schema_.scale
        deviations = np.maximum(self.deviations_, least)
        errors = (targets.real - self._means(table).T) / deviations
        own = -0.5 * (errors**2 + np.log(2.0 * np.pi)) - np.log(deviations)
        return np.where(np.isnan(own), 0.0, own).sum(axis=1)

    def _table_draws(self, table: Table, n_samples: int, seed: int) -> FloatArray:
        """Draw targets (t, n_samples, n) of encoded rows."""
        shape = (self.n_outputs_, n_samples, table.n_rows)
        noise = np.random.default_rng(seed).standard_normal(shape)
        return self._means(table)[:, None] + self.deviations_[:, None, None] * noise

    def _of_target(self, target: int) -> dict[str, Any]:
        names = ("weights_", "bias_", "deviations_")
        known = [name for name in names if hasattr(self, name)]
        return {name: getattr(self, name)[[target]] for name in known}

    @over_blocks
    def embed(self, X: Any) -> FloatArray:
        """Return the features of the output layer for each row, (n, F)."""
        table = self._encode(X)
        return embedded_table(self.model_, self.embedding_, table, self._n_threads).T

    def _check_options(self) -> None:
        super()._check_options()
        checked_features(self.features)
        check_word("output", self.output, _OUTPUTS)
        check_number("epsilon", self.epsilon, 0.0, 1e6)
        for name in ("l2", "l2_linear"):
            value = getattr(self, name)
            check_number(name, value, _LEAST_PENALTY, _MOST_PENALTY, or_word="auto")
        temperature = self.embedding_temperature
        check_number("embedding_temperature", temperature, 1e-3, 1e6, or_word="auto")

    def check_consistent(self) -> None:
        """Raise ValueError unless the layer is one of the embedding and the targets."""
        super().check_consistent()
        require_embedding(self.embedding_, self.model_, self.schema_)
        n_outputs = self.n_outputs_
        shape = (n_outputs, self.embedding_.n_features)
        require_array("weights_", self.weights_, shape)
        require_array("bias_", self.bias_, (n_outputs,))
        for name in ("l2_", "l2_linear_"):
            require_number(name, getattr(self, name), _LEAST_PENALTY)
        deviations = getattr(self, "deviations_", None)
        known = (deviations is not None) == (self.output == "gaussian")
        require(known, "deviations_ do not belong to output")
        if deviations is not None:
            require_array("deviations_", deviations, (n_outputs,))
            require((deviations >= 0.0).all(), "deviations_ has negative values")
