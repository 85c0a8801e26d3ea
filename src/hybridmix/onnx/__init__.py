"""Fitted models as ONNX graphs, which run without Python."""

from hybridmix.onnx.export import to_onnx

__all__ = ["to_onnx"]
