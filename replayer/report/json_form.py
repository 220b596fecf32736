"""The report and the comparison as one JSON document each, held to their schemas."""

from replayer.report.comparison import Comparison
from replayer.report.document import Document

__all__ = ["render_comparison_json", "render_json"]


def render_json(document: Document) -> str:
    """Render a run as JSON, ending with a newline."""
    return document.model_dump_json(indent=2) + "\n"


def render_comparison_json(comparison: Comparison) -> str:
    """Render a comparison as JSON, ending with a newline."""
    return comparison.model_dump_json(indent=2) + "\n"
