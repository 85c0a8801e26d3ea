"""Filtering: frames as they come, and what is known after each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridmix._text import shown
from hybridmix._typing import FloatArray
from hybridmix.data import Schema, read_table
from hybridmix.data.cells import listed
from hybridmix.data.columns import Columns, as_frame, read_columns
from hybridmix.data.rows import Rows
from hybridmix.models.chain_committee import ChainCommittee
from hybridmix.models.chain_filtering import (
    Belief,
    advanced,
    corrected,
    ended,
    first_belief,
    frame_log_emissions,
)
from hybridmix.models.chains import Chains


class SequenceFilter:
    r"""A sequence whose frames arrive one by one; made by ``filter()``.

    .. math:: p(x_{1:t}, s_t) = p(x_t \mid s_t) \sum_{s_{t-1}} A_{s_{t-1} s_t}\,
              p(x_{1:t-1}, s_{t-1})

    This forward recursion keeps one number for each state, however long the sequence
    becomes. What is known after a frame is the same as if all frames so far had been
    passed to the estimator as a whole sequence: where ends are modelled
    (``exits=True``), as one that has ended there.

    Parameters
    ----------
    estimator : HMMDensity or HybridHMMClassifier
        A fitted model. The filter keeps to its present parameters.

    Attributes
    ----------
    n_frames : int
        How many frames have arrived.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import HMMDensity
    >>> X = [np.repeat([[0.0], [5.0]], 6, axis=0) + 0.1 * np.eye(12)[:, :1]] * 4
    >>> density = HMMDensity(2, topology="left-right", random_state=0).fit(X)
    >>> stream = density.filter()
    >>> for frame in X[0]:
    ...     increment = stream.update(frame)
    >>> bool(np.isclose(stream.log_density, density.score_samples(X)[0]))
    True
    >>> stream.state_proba.round(2)
    array([0., 1.])
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._schema: Schema = estimator.schema_
        self._model: Chains = estimator.model_
        self.reset()

    def reset(self) -> None:
        """Forget all frames: the next one is the first of a new sequence."""
        self.n_frames = 0
        self._log_volume = 0.0
        self._before: Rows | None = None
        self._belief = first_belief(self._model, 1)

    def update(self, frame: Any) -> Any:
        r"""Take in the next frame.

        Parameters
        ----------
        frame : array-like of shape (d,) or (1, d), data frame of one row, or dict
            Values of the columns in the order of training; those of a dictionary or of a
            row of a data frame go by their names. Missing ones are marginalised.

        Returns
        -------
        increment : float
            :math:`\log p(x_{1:t}) - \log p(x_{1:t-1})`, in the units of the columns:
            the log density of the frame given those before, unless ends are modelled.
        """
        before = self.log_density
        self._take_in(frame)
        return self.log_density - before

    def _take_in(self, frame: Any) -> None:
        table = self._schema.encode(_read_frame(self._estimator, frame))
        if table.n_rows != 1:
            raise ValueError(
                f"update takes one frame at a time, and this has {table.n_rows} rows. "
                "Pass them one by one."
            )
        rows = table[:]
        self._follow(rows)
        self._log_volume += float(np.sum(table.log_volume()))
        self._before = rows
        self.n_frames += 1

    def _follow(self, rows: Rows) -> None:
        """Let beliefs follow the next frame."""
        self._belief = self._followed(self._model, self._belief, rows)

    def _followed(self, model: Chains, belief: Belief, rows: Rows) -> Belief:
        expected = advanced(model, belief) if self.n_frames else belief
        return corrected(expected, frame_log_emissions(model, rows, self._before))

    @property
    def _present(self) -> Belief:
        return ended(self._model, self._belief) if self.n_frames else self._belief

    @property
    def log_density(self) -> float:
        """Log density of the frames so far, in the units of the columns."""
        joint = self._present.log_joint[:, 0]
        return float(np.logaddexp.reduce(joint)) - self._log_volume

    @property
    def state_proba(self) -> FloatArray:
        """Probabilities (K,) of the present state, given the frames so far."""
        return np.exp(self._present.log_states[0, :, 0])


class ClassFilter(SequenceFilter):
    r"""A sequence of unknown class whose frames arrive one by one; made by ``filter()``.

    Like `SequenceFilter`, with the probabilities of the classes after each frame. They
    are those of a whole sequence of this length. The calibration has seen whole sequences
    only: after the first few frames, probabilities tend to be too sure.

    Parameters
    ----------
    estimator : HybridHMMClassifier
        A fitted classifier. The filter keeps to its present parameters.

    Attributes
    ----------
    n_frames : int
        How many frames have arrived.

    Examples
    --------
    >>> import numpy as np
    >>> from hybridmix import HybridHMMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(label, 1.0, (8, 1)) for label in (0, 1) * 20]
    >>> model = HybridHMMClassifier(2, tradeoff=1.0, covariance_type="diag",
    ...                             topology="ergodic", random_state=0)
    >>> stream = model.fit(X, [0, 1] * 20).filter()
    >>> for frame in X[1]:
    ...     probabilities = stream.update(frame)
    >>> bool(np.allclose(probabilities, model.predict_proba(X[1:2])))
    True
    """

    def __init__(self, estimator: Any) -> None:
        self._committee: ChainCommittee = estimator.committee_
        super().__init__(estimator)

    def reset(self) -> None:
        """Forget all frames: the next one is the first of a new sequence."""
        super().reset()
        self._beliefs = [first_belief(member, 1) for member in self._committee.members]

    def update(self, frame: Any) -> FloatArray:
        """Take in the next frame.

        Parameters
        ----------
        frame : array-like of shape (d,) or (1, d), data frame of one row, or dict
            Values of the columns in the order of training; those of a dictionary or of a
            row of a data frame go by their names. Missing ones are marginalised.

        Returns
        -------
        probabilities : ndarray of shape (C,)
            Of the classes, given the frames so far.
        """
        self._take_in(frame)
        return self.proba

    def _follow(self, rows: Rows) -> None:
        super()._follow(rows)
        pairs = zip(self._committee.members, self._beliefs, strict=True)
        self._beliefs = [
            self._belief if member is self._model else self._followed(member, own, rows)
            for member, own in pairs
        ]

    @property
    def proba(self) -> FloatArray:
        """Probabilities (C,) of the classes; the class prior before the first frame."""
        if self.n_frames == 0:
            return np.exp(self._belief.log_joint[:, 0])
        pairs = zip(self._committee.members, self._beliefs, strict=True)
        joints = [ended(member, own).log_joint for member, own in pairs]
        logs = self._committee.votes(joints, np.array([self.n_frames]))
        return np.exp(logs[:, 0])

    @property
    def state_proba(self) -> FloatArray:
        """Probabilities (K,) of the present state in the most probable class."""
        return np.exp(self._present.log_states[self.proba.argmax(), :, 0])


def _read_frame(estimator: Any, frame: Any) -> Columns:
    """Read a table of one row, or values by their names or in their order."""
    if as_frame(frame) is not None or np.ndim(frame) > 1:
        return read_table(estimator, frame)
    if hasattr(frame, "keys"):
        frame = _values_by_name(estimator, frame)
    values = frame if isinstance(frame, np.ndarray) else np.array(frame, dtype=object)
    if values.size != estimator.n_features_in_:
        raise ValueError(
            f"The frame has {values.size} value(s), but the frames of training have "
            f"{estimator.n_features_in_} column(s)."
        )
    return read_columns(values.reshape(1, -1))


def _values_by_name(estimator: Any, frame: Any) -> Any:
    """Return the values of a dictionary or a named row in the order of training."""
    names = list(frame.keys())
    columns = getattr(estimator, "feature_names_in_", None)
    if columns is None and isinstance(frame, Mapping):
        raise ValueError(
            "The frame is a dictionary, but the columns of training have no names. Pass "
            "its values as a list, in the order of the columns."
        )
    if columns is None or not any(isinstance(name, str) for name in names):
        return frame  # a row that pandas has numbered
    _check_names(names, columns.tolist())
    return [frame[name] for name in columns]


def _check_names(names: list[Any], columns: list[str]) -> None:
    """Refuse names that are not those of the columns; their order does not matter."""
    absent = [shown(name) for name in columns if name not in names]
    unknown = [shown(name) for name in names if name not in columns]
    if absent or unknown:
        raise ValueError(
            "The frame must have a value for every column of training, NaN or None where "
            f"it is missing. Absent: {listed(absent) or 'none'}. Unknown: "
            f"{listed(unknown) or 'none'}."
        )
