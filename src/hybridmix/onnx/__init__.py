"""Fitted models as ONNX graphs, which run without Python."""

from hybridmix.onnx.densities import component_densities
from hybridmix.onnx.export import to_onnx

__all__ = ["component_densities", "to_onnx"]
