"""JSON: the report and the comparison as one document each, and their JSON Schemas."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from replayer.measure.facts import Frozen
from replayer.report.document import Comparison, Document


def run_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a run's document; it allows no unknown keys."""
    return _schema(Document)


def comparison_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a comparison; it allows no unknown keys."""
    return _schema(Comparison)


def _schema(model: type[Frozen]) -> dict[str, Any]:
    schema = model.model_json_schema(mode="serialization", schema_generator=_Described)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


class _Described(GenerateJsonSchema):
    """Takes descriptions from the docstrings of attributes.

    Pydantic can, but reads the sources of all models for it whenever they are imported.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        model: type[Frozen] = schema["cls"]
        for name, text in _docstrings(model).items():
            made["properties"][model.model_fields[name].alias or name]["description"] = text
        return made


def _docstrings(model: type[Frozen]) -> dict[str, str]:
    """Return what stands below the attributes of a model and of those it extends, by attribute."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, Frozen):
            found.update(_own_docstrings(each))
    return found


def _own_docstrings(model: type[Frozen]) -> Iterator[tuple[str, str]]:
    body = ast.parse(dedent(inspect.getsource(model))).body[0]
    for one, below in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
        if (
            isinstance(one, ast.AnnAssign)
            and isinstance(one.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield one.target.id, inspect.cleandoc(below.value.value)


def render_json(*documents: Document) -> str:
    """Render a run as JSON, ending with a newline; of several runs each is one line."""
    indent = 2 if len(documents) == 1 else None
    return "".join(document.model_dump_json(indent=indent) + "\n" for document in documents)


def render_comparison_json(comparison: Comparison) -> str:
    """Render a comparison as JSON, ending with a newline."""
    return comparison.model_dump_json(indent=2) + "\n"
