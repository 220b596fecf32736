"""A scenario as written: users, datasets, transactions, mix. Frozen; in bytes and nanoseconds.

The model judges what one value can tell; what needs several (names, files, datasets) is judged in
``references`` and ``flow``.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from replayer.measure.units import format_time_ns
from replayer.scenario.document import YamlDocument
from replayer.scenario.draws import DurationDraw, SizeDraw
from replayer.scenario.manifests import Entry
from replayer.scenario.part import Name, Part
from replayer.scenario.steps import Steps, read_transaction
from replayer.scenario.units import (
    Count,
    Duration,
    Percent,
    Positive,
    Rate,
    Seed,
    Size,
    Weight,
    show_value,
    wrong,
)
from replayer.trace.facts import TraceFacts

MAX_USERS = 1_000_000
"""Chosen: a hundred times what one process is made for."""

MAX_FILES = 10_000_000
"""Chosen: what a plan can hold in the memory of an ordinary machine."""


def wrong_users(count: int) -> str | None:
    """Return what is wrong with a number of users, in words to follow its name; None: nothing."""
    return None if 1 <= count <= MAX_USERS else f"must be from 1 to {MAX_USERS:,}, got {count:,}"


WHOLE = 100
"""Percent."""


class Compressible(Part):
    """Data of which so much compresses away."""

    compressible: Percent


def _read_content(value: object) -> object:
    if isinstance(value, dict) or (isinstance(value, str) and value in {"random", "zeros"}):
        return value
    raise wrong(f"must be random, zeros or {{compressible: 50%}}, got {show_value(value)}")


Content = Annotated[Literal["random", "zeros"] | Compressible, BeforeValidator(_read_content)]


def is_zeros(content: Content) -> bool:
    """Whether data are zeros alone."""
    return content == "zeros" or (
        isinstance(content, Compressible) and content.compressible == WHOLE
    )


class Users(Part):
    """How many users there are and how their transactions follow each other."""

    count: Annotated[Positive, Field(le=MAX_USERS)] = 1
    ramp_up_ns: Duration = Field(0, alias="ramp_up")
    think_time: DurationDraw | None = None
    every: DurationDraw | None = None

    @model_validator(mode="after")
    def _has_one_pace(self) -> Self:
        if self.think_time is not None and self.every is not None:
            raise wrong("has both think_time and every; give only one")
        return self


class Arrivals(Part):
    """Transactions that begin at a rate, whether or not earlier ones have ended."""

    rate: Rate
    process: Literal["poisson", "even"] = "poisson"


class Dataset(Part):
    """Files that exist before the clock starts, or an empty directory to work in."""

    SOURCES: ClassVar[tuple[str, ...]] = ("manifest", "tar", "files", "directory", "copy_of")
    SHAPE: ClassVar[tuple[str, ...]] = ("sizes", "bytes", "per_directory", "depth", "names")
    """What goes with ``files`` alone."""

    manifest: str | None = None
    tar: str | None = None
    files: Annotated[Positive, Field(le=MAX_FILES)] | None = None
    directory: Literal[True] | None = None
    copy_of: Name | None = None
    part: Annotated[Percent, Field(ge=1)] | None = None
    sizes: SizeDraw | None = None
    bytes_: Size | None = Field(None, alias="bytes")
    per_directory: Positive | None = None
    depth: Annotated[Count, Field(ge=0, le=16)] | None = None
    names: str | None = None
    under: str | None = None
    links: Mapping[str, str] = {}
    layout: bool = True
    per: Literal["shared", "user"] = "shared"
    content: Content = "random"

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        given = [name for name in self.SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            shown = " and ".join(given) or "none"
            raise wrong(f"must have exactly one of {', '.join(self.SOURCES)}, got {shown}")
        if self.part is not None and given[0] not in {"manifest", "tar"}:
            raise wrong(f"part needs manifest or tar, not {given[0]}")
        written = self.model_dump(by_alias=True, exclude_none=True)
        shaped = [key for key in self.SHAPE if key in written]
        if self.files is None and shaped:
            raise wrong(f"{shaped[0]} needs files, not {given[0]}")
        if self.depth and self.per_directory is None:
            raise wrong("depth needs per_directory; without it all files are in one directory")
        return self


class Role(Part):
    """Some users who do something else than the others."""

    users: Positive = 1
    mix: Annotated[Mapping[Name, Weight], Field(min_length=1)]


class Scenario(Part):
    """What to run."""

    name: Name
    include: Annotated[
        tuple[str, ...], BeforeValidator(lambda names: [names] if isinstance(names, str) else names)
    ] = ()
    about: str = ""
    assumptions: tuple[str, ...] = ()
    seed: Seed = 1
    draws: Seed | None = None
    users: Users = Users.model_validate({})
    arrivals: Arrivals | None = None
    duration_ns: Annotated[Duration, Field(gt=0)] | None = Field(None, alias="duration")
    iterations: Positive | None = None
    warm_up_ns: Duration = Field(0, alias="warm_up")
    cache: Literal["as-is", "cold", "warm"] = "as-is"
    written: Content = "random"
    verify: bool = False
    datasets: Mapping[Name, Dataset] = {}
    mix: Annotated[Mapping[Name, Weight], Field(min_length=1)] = {}
    roles: Mapping[Name, Role] = {}
    sequences: Mapping[Name, Annotated[Steps, Field(min_length=1)]] = {}
    transactions: Annotated[
        Mapping[Name, Annotated[Steps, Field(min_length=1), BeforeValidator(read_transaction)]],
        Field(min_length=1),
    ]
    thresholds: tuple[str, ...] = ()

    _document: YamlDocument = PrivateAttr(default_factory=lambda: YamlDocument({}))
    _entries: Mapping[str, tuple[Entry, ...]] = PrivateAttr(default_factory=dict)
    _traces: Mapping[str, TraceFacts] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.duration_ns is None and self.iterations is None:
            hint = "add duration: 60s, or iterations: 1 (transactions a user)"
            raise wrong("has no end: duration or iterations must be given", hint)
        if not self.mix and not self.roles:
            hint = "add mix: {TRANSACTION: 1}, one weight for each transaction"
            raise wrong("has neither mix nor roles: users have no transactions", hint)
        if self.arrivals and (self.users.think_time or self.users.every):
            hint = "remove think_time and every, or remove arrivals"
            raise wrong("has both arrivals and think_time or every", hint)
        return self

    @property
    def document(self) -> YamlDocument:
        """The YAML it was read from, with the origin of every value."""
        return self._document

    @property
    def entries(self) -> Mapping[str, tuple[Entry, ...]]:
        """The entries of the datasets that come from manifests and archives."""
        return self._entries

    @property
    def parts(self) -> dict[str, int]:
        """Datasets of which less than the whole is used: percent of their directories."""
        found = {name: dataset.part for name, dataset in self.datasets.items()}
        return {name: part for name, part in found.items() if part is not None and part < WHOLE}

    @property
    def traces(self) -> Mapping[str, TraceFacts]:
        """The traces that steps replay, by the names they have for them."""
        return self._traces

    @property
    def most_users(self) -> int | None:
        """How many users have something to do; None: any number, as the rest have the mix."""
        return None if self.mix else sum(role.users for role in self.roles.values())

    def knowing(
        self,
        document: YamlDocument | None = None,
        entries: Mapping[str, tuple[Entry, ...]] | None = None,
        traces: Mapping[str, TraceFacts] | None = None,
    ) -> Self:
        """Return the same scenario that knows more: what was read beside it."""
        twin = self.model_copy()
        twin._document = document or self._document  # noqa: SLF001 - its own kind
        twin._entries = entries or self._entries  # noqa: SLF001
        twin._traces = traces or self._traces  # noqa: SLF001
        return twin


def pace_in_words(scenario: Scenario) -> str:
    """Say when a transaction begins, with its numbers."""
    arrivals, users = scenario.arrivals, scenario.users
    if arrivals is not None:
        return f"{arrivals.process} arrivals, {arrivals.rate:g} a second in all"
    if users.every is not None:
        return f"one transaction every {_time(users.every)} and user"
    if users.think_time is not None:
        return f"the next transaction after a think time of {_time(users.think_time)}"
    return "the next transaction at once"


def pace_facts(scenario: Scenario) -> dict[str, Any]:
    """Return the same as plain values for JSON; what does not apply is null, times are in ns."""
    arrivals, users = scenario.arrivals, scenario.users
    return {
        "says": pace_in_words(scenario),
        "rate_per_s": None if arrivals is None else arrivals.rate,
        "process": None if arrivals is None else arrivals.process,
        "every_ns": _facts(users.every),
        "think_time_ns": _facts(users.think_time),
    }


def _facts(draw: DurationDraw | None) -> Any:  # noqa: ANN401 - a number, or a distribution
    if draw is None:
        return None
    facts = draw.model_dump(exclude_none=True)
    return facts.get("const", facts)


def _time(draw: DurationDraw) -> str:
    """Say what a time is drawn from."""
    if draw.const is not None:
        return format_time_ns(draw.const)
    if draw.uniform is not None:
        low, high = draw.uniform
        return f"{format_time_ns(low)} to {format_time_ns(high)}"
    if draw.lognormal is not None:
        median, p95 = draw.lognormal.median, draw.lognormal.p95
        return f"{format_time_ns(median)} in the median (p95 {format_time_ns(p95)})"
    if draw.exponential is not None:
        return f"{format_time_ns(draw.exponential)} in the mean"
    given = draw.values or draw.quantiles or ()
    return f"{format_time_ns(min(given))} to {format_time_ns(max(given))}, as listed"
