"""The report as one JSON document, held to ``run_schema``."""

from replayer.report.document import Document

__all__ = ["render_json"]


def render_json(document: Document) -> str:
    """Render a run as JSON, ending with a newline."""
    return document.model_dump_json(indent=2) + "\n"
