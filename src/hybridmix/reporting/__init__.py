"""A report on a fitted model: one HTML file that can be sent to a colleague."""

from hybridmix.reporting.document import Report, report

__all__ = ["Report", "report"]
