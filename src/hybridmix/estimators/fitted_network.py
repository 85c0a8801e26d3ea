"""Prediction by a fitted network, or by a committee of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridmix._parallel import workers
from hybridmix._require import require, require_instance
from hybridmix._typing import FloatArray
from hybridmix.estimators.blocks import over_blocks
from hybridmix.estimators.components import committee_of
from hybridmix.estimators.joint import MixtureClassifier
from hybridmix.estimators.published import agree
from hybridmix.evaluation import ChunkedRows
from hybridmix.models.mixture import Mixture
from hybridmix.models.network import Network


class FittedNetwork(MixtureClassifier):
    """Prediction by a fitted network."""

    network_: Network
    purpose = "reads classes off the components of a mixture by a log-linear layer"

    @over_blocks
    def embed(self, X: Any) -> FloatArray:
        """Return the features of the output layer for each row, (n, F)."""
        table = self._encode(X)
        if committee_of(self) is not None:
            raise ValueError(
                "A committee of several networks has no single embedding: use one of its "
                "members_, as in model.members_[0].embed(X)."
            )
        readout = self.network_.readout
        with workers(self._n_threads) as pool:
            rows = ChunkedRows(table, readout, pool)
            parts = rows.map(lambda number: rows.prepared(number, readout))
            return np.concatenate(list(parts), axis=1).T

    def check_consistent(self) -> None:
        """Raise ValueError unless network and mixture belong together."""
        super().check_consistent()
        network = getattr(self, "network_", None)
        if network is None:
            require(committee_of(self) is not None, "there is no network_")
            return
        require_instance("network_", network, Network)
        same = network.n_classes == len(self.classes_)
        require(same, "network_ has other classes than classes_")
        self._check_model("network_", network.density)
        same = network.density.n_components == self.model_.n_components
        require(same, "network_ has another density than model_")
        for name, expected in layer_attributes(network).items():
            same = agree(getattr(self, name), expected)
            require(same, f"{name} is not that of network_")

    def _check_model(self, name: str, model: Any) -> None:
        require_instance(name, model, Mixture)
        layout = model.family.layout()
        wanted = (len(self.schema_.real), self.schema_.code_sizes)
        require(layout in (None, wanted), f"{name} has other columns than schema_")


def layer_attributes(network: Network) -> dict[str, Any]:
    """Return what is published of the output layer and of the embedding."""
    return {
        "weights_": network.output.weights,
        "bias_": network.output.bias,
        "embedding_temperature_": network.embedding.temperature,
    }
