"""A local page on which a fitted model answers questions at once."""

from hybridmix.explorer.session import Explorer, explore

__all__ = ["Explorer", "explore"]
