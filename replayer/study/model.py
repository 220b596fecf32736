"""The form of a study: steps to run, tables of their figures, and what was published.

Studies that come with the program are found and loaded here.
"""

import difflib
import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from replayer.errors import ReplayerError
from replayer.measure.facts import Frozen
from replayer.scenario.shipped import shipped_folder

Figure = Literal[
    "rate", "throughput", "bytes_per_s", "mean", "p50", "p95", "p99", "max", "count", "time_of_all"
]
Unit = Literal["", "MB/s", "MiB/s", "GiB/min", "µs", "ms", "s"]
Name = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]*$")]


class StudyStep(Frozen):
    """One command: a fio job or a scenario."""

    fio: str | None = None
    scenario: str | None = None
    words: tuple[str, ...] = ()
    """Further words of the command."""
    quick: tuple[str, ...] = ()
    """Further ones with --quick."""
    full: tuple[str, ...] = ()
    """Further ones without it."""
    rounds: Annotated[int, Field(gt=0)] | None = None
    """Turns of each target without --quick, whatever was asked for: of what comes only once."""
    turn_s: Annotated[int, Field(gt=0)] | None = None
    """Of a scenario without --quick: how long each turn may last; null: its duration, divided
    among the turns."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.turn_s is not None and self.fio is not None:
            raise ValueError("turn_s needs scenario, not fio")
        if (self.fio is None) == (self.scenario is None):
            raise ValueError("a step must be either fio or scenario")
        return self

    @property
    def job(self) -> str:
        """What it runs, by name."""
        return self.fio or self.scenario or ""


class TableColumn(Frozen):
    """One figure of one step."""

    title: str
    step: str
    of: str | None = None
    """TRANSACTION or TRANSACTION/OP; null: the transaction that the step has most of."""
    figure: Figure
    unit: Unit = ""
    full_only: bool = False
    """Whether --quick makes it something else, so that it is left out there."""
    all: Annotated[int, Field(gt=0)] | None = None
    """Of ``time_of_all``: how many make the whole; its time comes from their rate."""

    @model_validator(mode="after")
    def _knows_all(self) -> Self:
        if (self.figure == "time_of_all") != (self.all is not None):
            raise ValueError(f"{self.title}: time_of_all needs all, and all needs time_of_all")
        return self


class Ranking(Frozen):
    """What the rows are ranked by."""

    column: str
    better: Literal["lower", "higher"]


class Ratio(Frozen):
    """What each row is compared with."""

    column: str
    to: str
    """A published row."""
    better: Literal["lower", "higher"]
    base: Annotated[float, Field(gt=0)] | None = None
    """What that row has, where it was published with too few digits to compare with."""


class Published(Frozen):
    """A row as it was published."""

    target: str
    values: tuple[float | None, ...]
    stored: str | None = None
    """Where the data of an acknowledged write was."""
    below: tuple[str, ...] = ()
    """Columns whose value was given as 'below' it."""
    says: str | None = None
    """The ratio as it was published."""
    says_also: dict[str, str] = Field(default_factory=dict)
    """By column: further ratios as they were published."""


class Variant(Frozen):
    """A row of each target: which steps its columns are taken from."""

    label: str
    steps: dict[str, str]


class Table(Frozen):
    """One table: columns of figures, or every transaction of a step (``each``)."""

    title: str
    columns: tuple[TableColumn, ...] = ()
    variants: tuple[Variant, ...] = ()
    rank: Ranking | None = None
    ratio: Ratio | None = None
    also: tuple[Ratio, ...] = ()
    """Further columns that are compared: their ratios stand behind the values."""
    published: tuple[Published, ...] = ()
    each: str | None = None

    @property
    def steps(self) -> frozenset[str]:
        """The steps that its figures come from."""
        own = {column.step for column in self.columns}
        taken = {step for variant in self.variants for step in variant.steps.values()} or own
        return frozenset(taken if self.each is None else {*taken, self.each})

    @model_validator(mode="after")
    def _fits(self) -> Self:
        titles = [column.title for column in self.columns]
        ratios = [found for found in (self.ratio, *self.also) if found is not None]
        named = [found.column for found in (self.rank, *ratios) if found is not None]
        said = [title for row in self.published for title in (*row.below, *row.says_also)]
        rows = [row.target for row in self.published]
        if any(len(row.values) != len(titles) for row in self.published):
            raise ValueError(f"{self.title}: each published row must have a value for each column")
        if not {*named, *said} <= {*titles}:
            raise ValueError(f"{self.title}: names a column that does not exist")
        unknown = [found.to for found in ratios if found.to not in rows]
        if unknown:
            raise ValueError(f"{self.title}: no published row is named {unknown[0]}")
        return self


class Study(Frozen):
    """A published study."""

    letter: Annotated[str, Field(pattern="^[A-Z]$")]
    name: Name
    title: str
    source: str
    conditions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    steps: dict[Name, StudyStep]
    tables: tuple[Table, ...]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what its steps are, which tables are not."""
        steps = [(name, step.model_dump()) for name, step in self.steps.items()]
        return hashlib.sha256(json.dumps(steps).encode()).hexdigest()

    @model_validator(mode="after")
    def _names_its_steps(self) -> Self:
        for table in self.tables:
            unknown = table.steps - {*self.steps}
            if unknown:
                raise ValueError(f"{table.title}: no step is named {', '.join(sorted(unknown))}")
        return self


def load_studies() -> tuple[Study, ...]:
    """Return all shipped studies, by letter.

    Raises:
        ReplayerError: One of the files was changed and is no study any more.
    """
    found = [_load(path) for path in (shipped_folder() / "studies").glob("*.yaml")]
    return tuple(sorted(found, key=lambda study: study.letter))


def load_study(word: str) -> Study:
    """Return a study by its letter, its name, or its file (``.yaml``).

    Raises:
        ReplayerError: There is none of that name, or the file is none.
    """
    if word.endswith(".yaml"):
        return _load(Path(word))
    studies = load_studies()
    for study in studies:
        if word.upper() == study.letter or word.lower() == study.name:
            return study
    names = [study.name for study in studies]
    near = difflib.get_close_matches(word, names, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(f"{study.letter} ({study.name})" for study in studies)
    raise ReplayerError(f"unknown study {word!r}", hint=f"{meant}studies: {listed}")


def _load(path: Path) -> Study:
    try:
        return Study.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ReplayerError(f"{path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        message = f"{path}: {place}: {first['msg']}"
        raise ReplayerError(message, hint="see scenarios/studies for studies") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ReplayerError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
