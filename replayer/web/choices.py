"""The scenarios that the page offers: those named on the command line, then the shipped ones.

Their names are known at once; what they are is read when the page asks, in a thread, as the lists
of files of a large one take a second.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.measure.units import NS_PER_S
from replayer.run.options import VERIFY, Settings
from replayer.scenario.loading import load_scenario
from replayer.scenario.model import Scenario
from replayer.scenario.shipped import shipped_scenarios


@dataclass(frozen=True)
class Choice:
    """A scenario that the form offers."""

    name: str
    source: str | None
    """Its file or name, as the command line has it; None for users of a locustfile alone."""
    changes: tuple[str, ...] = ()


TASKS_ALONE = Choice("locustfile", None)


@dataclass(frozen=True)
class Facts:
    """What a scenario is."""

    name: str
    about: str
    users: int
    spawn_rate: float
    """Of its own ramp-up."""
    transactions: tuple[str, ...] = ()
    numbers: Mapping[str, str] = field(default_factory=dict)
    """What the page may change of it, by its name for ``--set``, and what the scenario says."""


def offered(settings: Settings, more: Sequence[str]) -> Iterator[Choice]:
    """Yield what was named on the command line, then what comes with the program.

    Raises:
        ReplayerError: What was named cannot be run.
    """
    first = [] if settings.scenario is None else [settings.scenario]
    names: set[str] = set()
    for source in dict.fromkeys((*first, *more)):
        name = Path(source).stem if Path(source).stem not in names else source
        names.add(name)
        choice = Choice(name, source, _changes_of(settings, source))
        read_facts(choice)
        yield choice
    for name in shipped_scenarios():
        if name not in names:
            yield Choice(name, name, _changes_of(settings, name))


def _changes_of(settings: Settings, source: str) -> tuple[str, ...]:
    """Return the command line's changes to a scenario.

    They are those of the scenario that it names, if it names one. What others are run without
    would not be missed but for ``--verify``, which is asked of all.
    """
    if settings.scenario in {None, source}:
        return settings.changes
    return tuple(change for change in settings.changes if change == VERIFY)


@cache
def read_facts(choice: Choice) -> Facts:
    """Read what a scenario is.

    Raises:
        ReplayerError: It cannot be run.
    """
    if choice.source is None:
        return Facts(choice.name, "The tasks of the locustfile.", 1, 1.0)
    scenario = load_scenario(choice.source, choice.changes)
    users, seconds = scenario.users.count, scenario.users.ramp_up_ns / NS_PER_S
    return Facts(
        name=choice.name,
        about=" ".join(scenario.about.split()),
        users=users,
        spawn_rate=round(users / seconds, 3) if seconds else float(users),
        transactions=tuple(scenario.transactions),
        numbers=_numbers_of(scenario),
    )


def _numbers_of(scenario: Scenario) -> dict[str, str]:
    """Return the shares of its transactions and the numbers of its files."""
    shares = {f"mix.{name}": f"{weight:g}" for name, weight in scenario.mix.items()}
    sets = scenario.datasets.items()
    return shares | {f"datasets.{name}.files": f"{each.files}" for name, each in sets if each.files}


@cache
def describe_choices(choices: tuple[Choice, ...]) -> tuple[Facts, ...]:
    """Return what the scenarios are, but for those that cannot be read."""
    return tuple(facts for choice in choices if (facts := _try(choice)) is not None)


def _try(choice: Choice) -> Facts | None:
    try:
        return read_facts(choice)
    except ReplayerError:
        return None  # the form says why when it is started
