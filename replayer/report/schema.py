"""The JSON Schemas of the documents that ``--json`` prints."""

from typing import Any

from replayer.measure import Frozen
from replayer.report.comparison import Comparison
from replayer.report.document import Document

__all__ = ["comparison_schema", "run_schema"]


def run_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a run's document; it allows no unknown keys."""
    return _schema(Document)


def comparison_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a comparison; it allows no unknown keys."""
    return _schema(Comparison)


def _schema(model: type[Frozen]) -> dict[str, Any]:
    schema = model.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
