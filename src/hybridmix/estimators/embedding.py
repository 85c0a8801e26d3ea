"""Features of rows, made of the components of a mixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hybridmix._checks import check_number, check_word, is_single
from hybridmix._parallel import workers
from hybridmix._registered import registered
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray
from hybridmix.data import Schema, Table, TrainingRows
from hybridmix.estimators.automatic import DensityEstimator
from hybridmix.estimators.blocks import over_blocks
from hybridmix.estimators.labelled import LabelledRows, reading_labelled
from hybridmix.estimators.options import model_attributes, warn_of
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.embedding import EXPERTS, LINEAR, Embedding
from hybridmix.models.mixture import Mixture
from hybridmix.models.readout import embedded
from hybridmix.progress import printing
from hybridmix.training.classes import component_range
from hybridmix.training.classifier import fit_classifier
from hybridmix.training.discriminative import likelihood_only
from hybridmix.training.families import Structure
from hybridmix.training.network import built_embedding
from hybridmix.training.network_options import (
    checked_features,
    usual_covariances,
    usual_numbers,
    usual_temperature,
)
from hybridmix.training.record import Fitted
from hybridmix.training.run import ClassifierOptions

_MIXTURES = ("pool", "classes")


@registered
@dataclass(eq=False, repr=False, kw_only=True)
class MixtureEmbedding(TransformerMixin, DensityEstimator):
    r"""Turn rows into features, using the components of a mixture.

    A mixture is fitted to the table. With :math:`\ell_k = \log \alpha_k p(x \mid k)`, of
    what a row has, its features are posteriors of the components,
    :math:`r_k \propto e^{\ell_k / T}`; log joint densities :math:`\ell_k`, standardised;
    the row :math:`\hat x` itself, its holes filled by expected values; or a row for each
    component, :math:`r_k \hat x`.

    Holes need no imputation before: densities and posteriors are exact marginals of what
    is observed. Embeddings can be stacked in a pipeline, as layers of a network.

    Parameters
    ----------
    n_components : int, iterable of int or "auto", default="auto"
        Components of the mixture, or of each class if ``mixtures="classes"``. "auto" and
        numbers to choose from are as in `MixtureDensity`; for classes, "auto" is one
        component for 20 labelled rows and two more for each column, at most 30.
    features : str or sequence of str, default="posterior"
        One or several of "posterior", "log_joint", "linear" and "experts".
    mixtures : {"pool", "classes"}, default="pool"
        One mixture of all rows, which ignores ``y``; or a mixture for each class, whose
        components are then pooled. Classes need ``y``.
    temperature : float or "auto", default="auto"
        :math:`T`. "auto" is a fifth of the number of columns, and at least 1: with many
        columns, posteriors would otherwise be indicators. In a subspace, factors count
        instead of columns.
    unlabelled : object, default=-1
        The mark of unlabelled rows in ``y``, besides None and NaN; None for no other
        mark.
    covariance_type, n_factors, noise, covariance_prior, variance_floor, smoothing, \
    categorical_features, column_shapes
        As in `MixtureDensity`; "auto" covariances of classes are "full", or "subspace"
        for more than 60 real columns.
    init, n_init, max_iter, tol, effort, dtype, n_jobs, random_state, verbose
        As in `MixtureDensity`.

    Attributes
    ----------
    embedding_ : Embedding
        What the features are made of.
    temperature_ : float
        :math:`T`.
    component_classes_ : ndarray of shape (n_all_components,)
        Number of the class that each component was fitted to; 0 for a pool.
    n_components_, covariance_type_, covariance_prior_, mixing_, means_, covariances_, \
    loading_, noise_variances_, category_probabilities_, categories_, \
    spike_probabilities_, converged_, interrupted_, n_iter_, n_features_in_, \
    feature_names_in_
        As in `MixtureDensity`, for all components.

    See Also
    --------
    MixtureNetworkClassifier : Train the components for what follows as well.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from hybridmix import MixtureEmbedding
    >>> X, y = load_iris(return_X_y=True)
    >>> embedding = MixtureEmbedding(
    ...     4, covariance_type="full", features=("posterior", "linear"), random_state=0
    ... )
    >>> classifier = make_pipeline(embedding, LogisticRegression()).fit(X, y)
    >>> bool(classifier.score(X, y) > 0.9)
    True
    """

    purpose = "turns rows into features by a mixture density"
    fitted_attributes = (
        *DensityEstimator.fitted_attributes,
        "embedding_",
        "component_classes_",
    )

    # Rows of all classes count the same.
    class_weight: ClassVar[None] = None

    features: Any = "posterior"
    mixtures: str = "pool"
    temperature: float | str = "auto"
    unlabelled: Any = -1

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like, data frame or scanned table of shape (n, d)
            Training table; NaN, None and pandas.NA are missing values. A table that does
            not fit into memory is read by `scan`.
        y : array-like of shape (n,), or str, default=None
            Labels, for ``mixtures="classes"``; otherwise ignored. Of a scanned table, the
            name of their column.
        sample_weight : array-like of shape (n,), or str, default=None
            A row of weight two counts like two rows. Of a scanned table, the name of the
            column.

        Returns
        -------
        self : MixtureEmbedding
        """
        self._check_options()
        if self.mixtures == "pool":
            fitting = self._fitting(X, sample_weight)
        else:
            fitting = self._fitting_classes(X, y, sample_weight)
        with fitting as (fitted, dataset, attributes):
            model, schema = attributes["model_"], attributes["schema_"]
            embedding = embedding_of(
                self.features, self.temperature, model, schema, dataset, self.n_jobs
            )
        self._publish(
            {
                **attributes,
                "embedding_": embedding,
                "temperature_": embedding.temperature,
                "component_classes_": model.class_of,
            }
        )
        warn_of(fitted.messages)
        return self

    @over_blocks
    def transform(self, X: Any) -> FloatArray:
        """Return the features of each row, (n, F)."""
        check_is_fitted(self)
        table = self._encode(X)
        return embedded_table(self.model_, self.embedding_, table, self._n_threads).T

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Must be the names of the columns of training, if these have any; names to
            use, otherwise.
        """
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array(feature_names(self.embedding_, self.schema_, names), dtype=object)

    # Fitting ----------------------------------------------------------------------------

    def _check_options(self) -> None:
        super()._check_options()
        checked_features(self.features)
        check_word("mixtures", self.mixtures, _MIXTURES)
        check_number("temperature", self.temperature, 1e-3, 1e6, or_word="auto")
        if not is_single(self.unlabelled):
            raise ValueError(
                f"unlabelled={self.unlabelled!r} is not valid: it must be a single mark, "
                "or None."
            )
        if self.mixtures == "classes" and not isinstance(self.init, str):
            raise ValueError("mixtures='classes' needs init='kmeans' or 'k-means++'.")

    @contextmanager
    def _fitting_classes(
        self, X: Any, y: Any, sample_weight: Any
    ) -> Iterator[tuple[Fitted, TrainingRows, dict[str, Any]]]:
        """Fit a mixture to each class; rows can be read until the end of the context."""
        if y is None:
            raise ValueError(
                "mixtures='classes' fits a mixture to each class: it requires y to be "
                "passed, but the target y is None."
            )
        with reading_labelled(self, X, y, sample_weight) as rows:
            options = ClassifierOptions(
                self._class_structure(rows.schema),
                self._estimation(),
                likelihood_only(),
                self._components_of(rows),
                "empirical",
                "auto",
                calibrate=False,
            )
            generator = np.random.default_rng(self._seed())
            with workers(self.n_jobs) as pool, printing(self.verbose):
                fitted = fit_classifier(
                    options,
                    rows.dataset,
                    None,
                    rows.schema,
                    self.init,
                    generator,
                    pool,
                    rows.names,
                )
            attributes = {
                **rows.attributes,
                **model_attributes(fitted),
                **self._derived_attributes(fitted.model, rows.schema),
                "trace_": fitted.history.get("value", np.empty(0)),
                "leaderboard_": [],
            }
            yield fitted, rows.dataset, attributes

    def _class_structure(self, schema: Schema) -> Structure:
        if self._is_auto("covariance_type"):
            return self._structure_of(usual_covariances(schema))
        return self._structure()

    def _components_of(self, rows: LabelledRows) -> list[list[int]]:
        if self._is_auto("n_components"):
            return usual_numbers(rows.dataset, rows.schema, len(rows.classes))
        return [component_range(self.n_components, or_auto=True)] * len(rows.classes)

    # Files ------------------------------------------------------------------------------

    def check_consistent(self) -> None:
        """Raise ValueError unless the embedding is one of the mixture."""
        super().check_consistent()
        require_embedding(self.embedding_, self.model_, self.schema_)
        same = np.array_equal(self.component_classes_, self.model_.class_of)
        require(same, "component_classes_ belongs to another mixture")

    def _check_model(self, name: str, model: Any) -> None:
        require_instance(name, model, Mixture)
        layout = model.family.layout()
        wanted = (len(self.schema_.real), self.schema_.code_sizes)
        require(layout in (None, wanted), f"{name} has other columns than schema_")


def embedding_of(
    features: Any,
    temperature: Any,
    model: Mixture,
    schema: Schema,
    dataset: TrainingRows,
    n_jobs: int | None,
) -> Embedding:
    """Return the features of a mixture that was fitted to some rows, as options have it.

    Parameters
    ----------
    features : str or sequence of str
        Which features.
    temperature : float or "auto"
        Of the posteriors.
    model, schema, dataset : Mixture, Schema, Dataset
        The mixture, its table, and the rows that it was fitted to.
    n_jobs : int or None
        Threads.
    """
    if isinstance(temperature, str):
        temperature = usual_temperature(model, schema)
    with workers(n_jobs) as pool:
        return built_embedding(
            checked_features(features),
            float(temperature),
            False,
            model,
            schema,
            dataset,
            pool,
        )


def embedded_table(
    model: Mixture,
    embedding: Embedding,
    table: Table,
    n_jobs: int | None,
    read: Callable[[FloatArray], FloatArray] = lambda features: features,
) -> FloatArray:
    """Return the features (F, n) of all rows of a table, or what is read of them."""
    with workers(n_jobs) as pool:
        rows = ChunkedRows(table, model, pool)
        parts = rows.map(
            lambda number: read(embedded(model, embedding, table[rows.chunks[number]]))
        )
        return np.concatenate(list(parts), axis=1)


def require_embedding(embedding: Any, model: Mixture, schema: Schema) -> None:
    """Raise ValueError unless an embedding is one of a mixture and of its table."""
    require_instance("embedding_", embedding, Embedding)
    same = embedding.n_components == model.n_components
    require(same, "embedding_ has other components than model_")
    own, wanted = (
        (embedding.n_real, embedding.code_sizes),
        (len(schema.real), schema.code_sizes),
    )
    require(own == wanted, "embedding_ has other columns than schema_")


def feature_names(embedding: Embedding, schema: Schema, columns: Any) -> list[str]:
    """Return the names of all features, from those of the columns."""
    components = [str(k) for k in range(embedding.n_components)]
    cells = _cell_names(schema, columns)
    names: list[str] = []
    for kind in embedding.kinds:
        if kind == LINEAR:
            names += cells
        elif kind == EXPERTS:
            names += [f"expert{k}_{cell}" for k in components for cell in cells]
        else:
            names += [f"{kind}{k}" for k in components]
    return names


def _cell_names(schema: Schema, columns: Any) -> list[str]:
    """Return the names of the cells of a row, with one for each category or spike."""
    names = [str(columns[place]) for place in schema.real]
    for place, values in zip(schema.categorical, schema.categories, strict=True):
        names += [f"{columns[place]}={value}" for value in values]
    for place in schema.real:
        shape = schema.shapes.get(place)
        if shape is not None and shape.spikes:
            spikes = [f"{columns[place]}={value:g}" for value in shape.spikes]
            names += [f"{columns[place]}=other", *spikes]
    return names
