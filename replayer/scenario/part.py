"""What every part of a scenario has in common: frozen, and refusing keys it does not know."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from replayer.scenario.document import nearest_hint
from replayer.scenario.units import show_value, wrong

MAX_NAME = 64
"""Chosen: a name has to fit into a column of a table."""


class Part(BaseModel):
    """A part of a scenario."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=False,
        hide_input_in_errors=True,
        defer_build=True,  # most parts are validated as parts of a scenario alone
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, value: object) -> object:
        if isinstance(value, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in value:
                if key not in known:
                    words = [word for word in known if word != "do"]
                    hint = nearest_hint(str(key), words, kind="keys")
                    context = {"key": key, "hint": hint}
                    raise PydanticCustomError("unknown_key", "unknown key {key}", context)
        return value


def _read_name(value: object) -> str:
    plain = isinstance(value, str) and value.replace("_", "a").replace("-", "a").isalnum()
    if not plain or len(value) > MAX_NAME or not value.isascii():  # type: ignore[arg-type, attr-defined]
        raise wrong(f"must be a name of letters, digits, _ and -, got {show_value(value)}")
    return str(value)


def _read_lower_name(value: object) -> str:
    name = _read_name(value)
    if name != name.lower() or not name[0].isalnum():
        wanted = "a name of a-z, 0-9, _ and - that starts with a letter or digit"
        raise wrong(f"must be {wanted}, got {show_value(value)}")
    return name


SlotName = Annotated[
    str,
    BeforeValidator(_read_name),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}),
]
"""A name that steps give to a path or to an open file."""

Name = Annotated[
    str,
    BeforeValidator(_read_lower_name),
    WithJsonSchema({"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}),
]
"""The name of a scenario, dataset, transaction, role or sequence."""
