"""The steps of a transaction: those around other steps, and all of them together.

A step is written as a word (``close``) or as a mapping with one key (``close: session``);
``read_step`` brings both into one form. What the steps mean together (names bound, files open) is
judged in ``replayer.scenario.flow``; what a replayed trace holds, in ``replayer.scenario.loading``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from replayer.scenario.calls import CallStep, Expect, StepPart
from replayer.scenario.document import Key, nearest_hint
from replayer.scenario.draws import CountDraw, DurationDraw
from replayer.scenario.part import Name, Part, SlotName
from replayer.scenario.places import Template
from replayer.scenario.units import Weight, show_value, wrong


class Think(StepPart):
    """Wait; part of the latency of the transaction, not of its file time."""

    SHORT: ClassVar[str] = "time"
    do: Literal["think"]
    time: DurationDraw


class Repeat(StepPart):
    """Do steps several times."""

    do: Literal["repeat"]
    times: CountDraw
    steps: "Steps"


class Branch(Part):
    """A way of a choice."""

    weight: Weight = 1
    steps: "Steps"


class Choose(StepPart):
    """Do the steps of one of several branches, drawn by weight."""

    SHORT: ClassVar[str] = "branches"
    do: Literal["choose"]
    branches: Annotated[tuple[Branch, ...], Field(min_length=1)]


class Signal(StepPart):
    """Tell other users that this transaction has come so far."""

    SHORT: ClassVar[str] = "signal"
    do: Literal["signal"]
    signal: Name


class Await(StepPart):
    """Wait until another user's transaction with the same number has given a signal."""

    SHORT: ClassVar[str] = "signal"
    do: Literal["await"]
    signal: Name
    limit: DurationDraw = DurationDraw.model_validate("60s")
    expect: Expect = ("ok",)


class Until(StepPart):
    """Look again and again, until all calls of a look come out as they should.

    Timed as ``until``: from the step's begin, or from the signal ``since``, to the end of the look
    that found it. What is not found within the limit is counted as UNMET.
    """

    do: Literal["until"]
    steps: Annotated["Steps", Field(min_length=1)]
    every: DurationDraw = DurationDraw.model_validate("10ms")
    limit: DurationDraw
    since: Name | None = None
    expect: Expect = ("ok",)

    @model_validator(mode="after")
    def _only_looks(self) -> Self:
        for step in self.steps:
            if step.do not in LOOKS or getattr(step, "from_", None) is not None:
                shown = f"{step.do} of a picked entry" if step.do in LOOKS else step.do
                raise wrong(f"must hold only lookups of names (in, path) and opens, got {shown}")
        return self


LOOKS = frozenset(
    (
        *("bind", "open", "close", "stat", "lstat", "fstat", "access", "list", "read", "pread"),
        *("readlink", "lseek", "flock", "lock", "getxattr", "listxattr", "mmap_read"),
        *("mkdir", "link", "rename", "unlink", "rmdir"),
    )
)
"""What ``until`` may repeat: looking, and what succeeds once, such as taking a lock."""


MAX_BATCH = 1_000_000
"""Of a stage of a pipeline: chosen, more entries than a buffer between two programs holds."""


class Each(StepPart):
    """Do steps for every entry of a dataset, in the order of its entries.

    A stage of a pipeline hands entries on to the next stage ``batch`` at a time.
    """

    do: Literal["each"]
    of: Name
    as_: SlotName = Field("entry", alias="as")
    reverse: bool = False
    batch: Annotated[int, Field(ge=1, le=MAX_BATCH)] = 1
    file: "Steps" = ()
    directory: "Steps" = ()
    link: "Steps" = ()


MAX_STAGES = 8
"""Of a pipeline: chosen, more than any program that was looked at has processes for one job."""


class Pipeline(StepPart):
    """Go through a dataset in stages that work side by side, on a thread each.

    A stage begins with an entry once the stage before it has done with that entry, and with the
    others of its batch.
    """

    SHORT: ClassVar[str] = "stages"
    do: Literal["pipeline"]
    stages: Annotated["Steps", Field(min_length=2, max_length=MAX_STAGES)]

    @model_validator(mode="after")
    def _same_entries(self) -> Self:
        ways = set()
        for stage in self.stages:
            if not isinstance(stage, Each):
                raise wrong(f"must hold only each: steps, got {stage.do}")
            ways.add((stage.of, stage.reverse))
        if len(ways) > 1:
            raise wrong("must use one dataset in one order in all stages")
        if self.batches[-1] != 1:
            raise wrong("has a batch in its last stage, which passes no entries on")
        return self

    @property
    def batches(self) -> list[int]:
        """How many entries each stage hands on at a time."""
        return [stage.batch for stage in self.stages if isinstance(stage, Each)]


class For(StepPart):
    """Do steps for each of some names."""

    do: Literal["for"]
    in_: Name = Field(alias="in")
    names: Annotated[tuple[Template, ...], Field(min_length=1)]
    as_: SlotName = Field("file", alias="as")
    steps: "Steps"


@dataclass(frozen=True)
class ScriptLine:
    """A line of a script: run a sequence on a path."""

    sequence: str
    name: str
    place: str

    def below(self, directory: str | None) -> "ScriptLine":
        """Return the same line for a tree that is in a directory of the dataset."""
        if directory is None:
            return self
        name = directory if self.name == "." else f"{directory}/{self.name}"
        return ScriptLine(self.sequence, name, self.place)


_Instead = Annotated[
    Name | None,
    WithJsonSchema({"type": ["string", "null"], "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}),
]


class Script(StepPart):
    """Do a sequence for each path of a table beside the scenario."""

    do: Literal["script"]
    in_: Name = Field(alias="in")
    file: str
    below: str | None = None
    as_: SlotName = Field("file", alias="as")
    with_: Mapping[Name, _Instead] = Field({}, alias="with")
    """Sequences to do instead of those that lines name; None: such lines are left out."""

    _lines: tuple[ScriptLine, ...] = PrivateAttr(())

    @property
    def lines(self) -> tuple[ScriptLine, ...]:
        """What the script's file says, in order."""
        return self._lines

    def give_lines(self, lines: Iterable[ScriptLine]) -> None:
        """Keep what the file says (loading is apart from the model)."""
        self._lines = tuple(lines)


class Use(StepPart):
    """Do the steps of a sequence."""

    SHORT: ClassVar[str] = "sequence"
    do: Literal["use"]
    sequence: Name


SLOWEST, FASTEST = 0.01, 10_000.0
"""What plan format 1 can hold, in hundredths."""


def _read_speed(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(f"must be a number such as 1 or 0.5, got {show_value(value)}")
    if not SLOWEST <= value <= FASTEST:
        raise wrong(f"must be from {SLOWEST} to {int(FASTEST)}, got {show_value(value)}")
    return value


Speed = Annotated[
    float,
    BeforeValidator(_read_speed),
    WithJsonSchema({"type": "number", "minimum": SLOWEST, "maximum": FASTEST}),
]
"""1 is as recorded, 2 twice as fast."""


class Replay(StepPart):
    """Replay a trace, or one of its requests."""

    SHORT: ClassVar[str] = "trace"
    do: Literal["replay"]
    trace: Annotated[str, Field(min_length=1)]
    request: str | None = None
    pace: Literal["asap", "closed", "timed"] = "closed"
    speed: Speed = 1.0


AnyStep = (
    CallStep | Think | Repeat | Choose | Each | Pipeline | For | Script | Use | Replay | Signal
    | Await | Until
)  # fmt: skip

STEPS: dict[str, type[StepPart]] = {
    word: step for step in AnyStep.__args__ for word in step.model_fields["do"].annotation.__args__
}
"""Every word that may stand in a list of steps."""


def read_step(value: object) -> object:
    """Bring a step into the form ``{"do": word, operand: value…}``."""
    word, operands = _split(value)
    if word not in STEPS:
        hint = nearest_hint(word, STEPS, kind="steps")
        raise wrong(f"is the unknown step {word}", hint)
    short = STEPS[word].SHORT
    if operands is None:
        return {"do": word}
    if isinstance(operands, dict) and word != "think":
        if "do" in operands:
            raise PydanticCustomError("unknown_key", "unknown key {key}", {"key": "do"})
        return {"do": word, **operands}
    if not short:
        raise wrong(f"{word} must be followed by a mapping, got {show_value(operands)}")
    return {"do": word, short: operands}


def _split(value: object) -> tuple[str, object]:
    if isinstance(value, str):
        return value, None
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.items()))
    shown = f"the keys {', '.join(value)}" if isinstance(value, dict) else show_value(value)
    raise wrong(f"must be a word or a mapping with one key, got {shown}")


Step = Annotated[AnyStep, Field(discriminator="do"), BeforeValidator(read_step)]
Steps = tuple[Step, ...]


def read_transaction(value: object) -> object:
    """Bring a transaction written as ``{trace: …, request: …}`` into a list of one step."""
    if not isinstance(value, dict):
        return value
    if "trace" not in value:
        shown = f"the keys {', '.join(map(str, value))}" if value else "an empty mapping"
        raise wrong(f"must be a list of steps, or a mapping with trace, got {shown}")
    return [{"replay": value}]


def walk_steps(steps: Sequence[StepPart], key: Key) -> Iterator[tuple[Key, StepPart]]:
    """Yield each step with its key, those inside a step after it."""
    for index, step in enumerate(steps):
        yield (*key, index), step
        for inner_key, inner in blocks_of(step, (*key, index)):
            yield from walk_steps(inner, inner_key)


def blocks_of(step: StepPart, key: Key) -> list[tuple[Key, Sequence[StepPart]]]:
    """Return the lists of steps inside a step, each with its key."""
    match step:
        case Repeat() | For() | Until():
            return [((*key, step.do, "steps"), step.steps)]
        case Choose():
            return [
                ((*key, "choose", index, "steps"), branch.steps)
                for index, branch in enumerate(step.branches)
            ]
        case Pipeline():
            return [((*key, "pipeline"), step.stages)]
        case Each():
            named = (("file", step.file), ("directory", step.directory), ("link", step.link))
            return [((*key, "each", name), steps) for name, steps in named if steps]
        case _:
            return []
