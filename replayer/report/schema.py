"""The JSON Schema of the document that ``--json`` prints."""

from typing import Any

from replayer.report.document import Document

__all__ = ["run_schema"]


def run_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a run's document; it allows no unknown keys."""
    schema = Document.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
