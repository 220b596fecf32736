"""Turns what the models refuse into one line with file, line, name, value and bound."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from replayer.scenario.document import Key, ScenarioError, YamlDocument, nearest_hint
from replayer.scenario.units import show_value

PHRASES: Mapping[str, str] = {
    "missing": "is missing",
    "greater_than_equal": "must be at least {ge}, got {input}",
    "greater_than": "must be more than {gt}, got {input}",
    "less_than_equal": "must be at most {le}, got {input}",
    "less_than": "must be less than {lt}, got {input}",
    **{
        kind: f"must be {what}, got {{input}}"
        for what, kinds in {
            "a mapping": ("model_type", "model_attributes_type", "mapping_type", "dict_type"),
            "a list": ("tuple_type", "list_type"),
            "text": ("string_type",),
            "true or false": ("bool_type", "bool_parsing"),
            "a whole number": ("int_type", "int_parsing", "int_from_float"),
            "a number": ("float_type", "float_parsing", "finite_number"),
        }.items()
        for kind in kinds
    },
    "literal_error": "must be {expected}, got {input}",
    "string_pattern_mismatch": "must match {pattern}, got {input}",
}


def explain(error: ValidationError, document: YamlDocument) -> ScenarioError:
    """Return the error of the scenario that comes first in its text."""
    every = error.errors(include_url=False)
    # A list whose items are all refused counts as too short as well: the items are what is wrong.
    items = [details for details in every if details["type"] != "too_short"]
    found = [_explain_one(details, document) for details in items or every]
    return min(found, key=lambda item: item[0])[1]


def show_key(key: Key) -> str:
    """Return a key as people write it: ``transactions.login[0].open.size``."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _explain_one(
    details: ErrorDetails, document: YamlDocument
) -> tuple[tuple[int, int], ScenarioError]:
    context = details.get("ctx", {})
    key = _key_of(details["loc"], document.value)
    missing = details["type"] == "missing"
    if missing:
        key = (*key, details["loc"][-1])
    if details["type"] == "unknown_key":
        key = (*key, str(context["key"]))
    origin = document.origin(key)
    message = _phrase(details)
    if details["type"] != "unknown_key":
        message = f"{show_key(key)} {message}" if key else f"the scenario {message}"
    elif key[:-1]:
        message = f"{message} in {show_key(key[:-1])}"
    hint = str(context.get("hint", "")) or _hint_for_literal(details)
    return (origin.line or 0, -len(key)), ScenarioError(str(origin), message, hint=hint)


def _key_of(location: Sequence[str | int], value: object) -> Key:
    """Follow an error's location in the document, past the tags that only the models know."""
    key: Key = ()
    for part in location:
        inside = (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if inside:
            key = (*key, part)
            value = value[part]  # type: ignore[index]
    return key


def _phrase(details: ErrorDetails) -> str:
    template = PHRASES.get(details["type"])
    if details["type"] in {"too_short", "too_long"}:
        return _wrong_length(details)
    if template is None:
        return details["msg"]
    if details.get("ctx", {}).get("expected") == "True":
        return f"must be true, got {show_value(details['input'])}"
    values = {**details.get("ctx", {}), "input": show_value(details["input"])}
    return template.format_map(values)


def _wrong_length(details: ErrorDetails) -> str:
    context = details["ctx"]
    bound = f"least {context['min_length']}" if "min_length" in context else ""
    bound = bound or f"most {context['max_length']}"
    entries = "entry" if bound.endswith(" 1") else "entries"
    return f"must have at {bound} {entries}, got {context['actual_length']}"


def _hint_for_literal(details: ErrorDetails) -> str:
    if details["type"] != "literal_error" or not isinstance(details["input"], str):
        return ""
    expected = str(details["ctx"]["expected"])
    words = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
    hint = nearest_hint(details["input"], words, kind="values")
    return hint if hint.startswith("did") else ""
