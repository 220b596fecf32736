"""How a step says which path it means: by a name bound before, in a dataset, or picked from one."""

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from replayer.scenario.document import nearest_hint
from replayer.scenario.part import Name, Part, SlotName
from replayer.scenario.units import show_value, wrong

MAX_PATH = 4000
"""Longest path below a target that plan format 1 allows."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class Hot(Part):
    """A hot set: so many per cent of the picks go to so many per cent of the files."""

    hot: tuple[int, int]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        text = value.get("hot") if isinstance(value, dict) else None
        match = re.fullmatch(r"\s*([0-9]{1,2})\s*/\s*([0-9]{1,2})\s*", str(text))
        if match is None or "0" in (match[1].lstrip("0") or "0", match[2].lstrip("0") or "0"):
            raise wrong(f"must be two percentages such as 80/20, got {show_value(text)}")
        return {"hot": (int(match[1]), int(match[2]))}


class Zipf(Part):
    """Picks fall with the rank to this power."""

    zipf: Annotated[float, Field(gt=0, le=4, allow_inf_nan=False)]


def _read_pick(value: object) -> object:
    words = ("uniform", "sequential", "own", "hot", "zipf")
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in {"hot", "zipf"}:
        return value
    if isinstance(value, str) and value in words[:3]:
        return value
    if isinstance(value, dict) and len(value) != 1:
        raise wrong(f"must have one of the keys hot and zipf, got {len(value)}")
    shown = next(iter(value)) if isinstance(value, dict) else show_value(value)
    hint = nearest_hint(str(shown).strip("'"), words, kind="pickers")
    raise wrong(f"{shown} is not a picker", hint)


def _kind_of_pick(value: object) -> str:
    """Return the tag of a picker: its key, or ``word``."""
    if isinstance(value, Hot):
        return "hot"
    return str(next(iter(value))) if isinstance(value, dict) else "word"


Pick = Annotated[
    Annotated[Literal["uniform", "sequential", "own"], Tag("word")]
    | Annotated[Hot, Tag("hot")]
    | Annotated[Zipf, Tag("zipf")],
    Discriminator(_kind_of_pick),
    BeforeValidator(_read_pick),
]


def template_parts(text: str) -> list[tuple[Literal["text", "part"], str]]:
    """Split a template into literal text and placeholders, in order."""
    if "{" not in text:
        return [("text", text)] if text else []
    parts: list[tuple[Literal["text", "part"], str]] = []
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        if match.start() > end:
            parts.append(("text", text[end : match.start()]))
        parts.append(("part", match[1]))
        end = match.end()
    if end < len(text):
        parts.append(("text", text[end:]))
    return parts


def _read_template(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value or len(value) > MAX_PATH:
        raise wrong(f"must be a file name, got {show_value(value)}")
    if any(
        brace in text for kind, text in template_parts(value) if kind == "text" for brace in "{}"
    ):
        raise wrong(f"{show_value(value)} has an unmatched brace")
    if "\0" in value or value.startswith("/"):
        raise wrong(f"must be relative and without NUL bytes, got {show_value(value)}")
    return value


Template = Annotated[
    str,
    BeforeValidator(_read_template),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_PATH}),
]
"""Text with ``{user} {round} {seq} {next} {random}``, and ``{NAME}`` or ``{NAME.name}``."""

EntryKind = Literal["file", "directory", "link", "any"]


class Place(Part):
    """A path: one of ``path``, ``in`` or ``from``."""

    path: SlotName | None = None
    in_: Name | None = Field(None, alias="in")
    name: Template | None = None
    from_: Name | None = Field(None, alias="from")
    pick: Pick | None = None
    kind: EntryKind | None = None
    match: tuple[Template, ...] | None = None
    as_: SlotName | None = Field(None, alias="as")

    @model_validator(mode="after")
    def _is_one_of_three(self) -> Self:
        known = {"path": self.path, "in": self.in_, "from": self.from_}
        given = [key for key, value in known.items() if value is not None]
        if len(given) > 1:
            raise wrong(f"must have one of path, in and from, got {' and '.join(given)}")
        for key, partner in (("name", "in"), ("pick", "from"), ("kind", "from"), ("match", "from")):
            if getattr(self, key) is not None and known[partner] is None:
                raise wrong(f"{key} needs {partner}, which is missing")
        if self.match is not None and self.pick not in {None, "uniform"}:
            raise wrong("match needs the picker uniform")
        if self.as_ is not None and not (self.in_ or self.from_):
            raise wrong("as needs in or from")
        return self

    @property
    def slot(self) -> str:
        """The name that the path has afterwards."""
        return self.path or self.as_ or "file"

    @property
    def binds(self) -> bool:
        """Whether the place gives its name a new meaning."""
        return self.in_ is not None or self.from_ is not None
