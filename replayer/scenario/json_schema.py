"""The JSON Schema of scenario files, so that editors complete and check them.

It is made from the models; only the short forms (``close: session``, ``size: 4KiB``), which the
models read before they validate, are added here.
"""

import json
from collections.abc import Sequence
from typing import Any

from replayer.scenario.draws import CountDraw, DurationDraw, SizeDraw
from replayer.scenario.model import Scenario
from replayer.scenario.steps import STEPS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
GENERIC = "Lognormal"
DRAWS = (SizeDraw, DurationDraw, CountDraw)


def scenario_schema() -> Schema:
    """Return the JSON Schema (2020-12) of a scenario file."""
    schema = Scenario.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
    definitions = schema["$defs"]
    for draw in DRAWS:
        definitions[draw.__name__] = _draw(definitions[draw.__name__], draw.KINDS)
    for step in {*STEPS.values()}:
        model = definitions[step.__name__]
        model["properties"].pop("do")
        model["required"] = [name for name in model.get("required", ()) if name != "do"]
    definitions["Place"] = {
        "anyOf": [{"type": "string"}, {**definitions["Place"], "title": "Place"}]
    }
    definitions["Hot"]["properties"]["hot"] = {
        "type": "string",
        "pattern": "^[0-9]{1,2}/[0-9]{1,2}$",
    }
    definitions["Step"] = _step(definitions)
    _replace_unions(schema)
    # A transaction is a list of steps, or what stands behind ``replay`` in the only one.
    transactions = schema["properties"]["transactions"]["patternProperties"]
    for pattern, steps in transactions.items():
        transactions[pattern] = {"anyOf": [steps, {"$ref": "#/$defs/Replay"}]}
    tidy = _tidy(_with_short_names(schema))
    _let_include(tidy)
    return {"$schema": DIALECT, **tidy, "title": "A scenario of replayer"}


def _let_include(schema: Schema) -> None:
    """Require what a scenario needs only of files that include no other."""
    whole = {"required": schema.pop("required")}
    schema["required"] = ["name"]
    schema["anyOf"] = [whole, {"required": ["include"]}]
    names = schema["properties"]["include"]
    schema["properties"]["include"] = {"anyOf": [{"type": "string"}, names]}


def _with_short_names(schema: Schema) -> Schema:
    """Give the definitions of generic models names that a person can read."""
    text = json.dumps(schema)
    long = [name for name in schema["$defs"] if GENERIC in name]
    for number, name in enumerate(sorted(long, key=len, reverse=True), start=1):
        text = text.replace(json.dumps(name), f'"{GENERIC}{number}"')
        text = text.replace(f"#/$defs/{name}", f"#/$defs/{GENERIC}{number}")
    found: Schema = json.loads(text)
    return found


def _tidy(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Take away what only the models need: nulls that stand for 'not given', generated titles."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = _without_null(schema) if isinstance(schema.get("anyOf"), list) else dict(schema)
    if isinstance(found.get("title"), str):
        del found["title"]
    if found.get("default", 0) is None:
        del found["default"]
    for bound, word in (
        ("ge", "minimum"),
        ("le", "maximum"),
    ):  # of what is read before it is judged
        if bound in found:
            found[word] = found.pop(bound)
    return {str(key): _tidy(value) for key, value in found.items()}


def _draw(model: Schema, kinds: Sequence[str]) -> Schema:
    """A draw is a single value, or a mapping with one distribution."""
    properties = model["properties"]
    single = _without_null(properties["const"])
    named = {name: _without_null(properties[name]) for name in kinds}
    mapping = {
        "type": "object",
        "properties": named,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {"anyOf": [single, mapping], "description": model.get("description", "")}


def _without_null(schema: Schema) -> Schema:
    found = {k: v for k, v in schema.items() if k not in {"default", "title"}}
    kinds = [kind for kind in found.get("anyOf", ()) if kind != {"type": "null"}]
    if not kinds:
        return found
    return kinds[0] if len(kinds) == 1 else {**found, "anyOf": kinds}


def _step(definitions: Schema) -> Schema:
    """A step is a word, or a mapping with one key: the word."""
    bare = [word for word, step in STEPS.items() if not definitions[step.__name__]["required"]]
    properties = {word: _operands(word, definitions) for word in STEPS}
    mapping = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {"anyOf": [{"enum": bare}, mapping]}


def _operands(word: str, definitions: Schema) -> Schema:
    step = STEPS[word]
    full = {"$ref": f"#/$defs/{step.__name__}"}
    if not step.SHORT:
        return full
    model = definitions[step.__name__]
    short = _without_null(model["properties"][step.SHORT])
    needs_more = set(model["required"]) - {step.SHORT}
    forms = [full] if needs_more else [full, short]
    if word == "think":
        forms = [short]
    if not model["required"]:
        forms.append({"type": "null"})
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _replace_unions(schema: Any) -> None:  # noqa: ANN401 - any part of a schema
    """Refer to the definition of a step wherever the models have the union of all steps."""
    if isinstance(schema, list):
        for item in schema:
            _replace_unions(item)
    if not isinstance(schema, dict):
        return
    if "discriminator" in schema:
        schema.clear()
        schema["$ref"] = "#/$defs/Step"
        return
    for value in schema.values():
        _replace_unions(value)
