"""Maximise the dual, or minimise the primal, of maximum entropy discrimination."""
