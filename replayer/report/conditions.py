"""In what the contenders of a comparison differ, beside what was measured.

Pure: facts in, differences out. A difference that may decide about figures is marked.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from replayer.measure import (
    MachineFacts,
    MountFacts,
    RunRecord,
    Target,
    count_cpus,
    format_bytes,
)
from replayer.report.comparison import Difference
from replayer.report.machines import each_once
from replayer.report.plan_changes import users_of, work_of

__all__ = ["Side", "find_differences"]


@dataclass(frozen=True)
class Side:
    """One contender, before anything is compared.

    Attributes:
        label: How it is called.
        record: Its run.
        target: The target.
    """

    label: str
    record: RunRecord
    target: Target


def find_differences(sides: Sequence[Side]) -> tuple[Difference, ...]:
    """Return everything in which the sides differ, what decides first."""
    found = [*_options(sides), *_facts(sides)]
    return tuple(sorted(found, key=lambda item: not item.decides))


def _facts(sides: Sequence[Side]) -> Iterator[Difference]:
    for what, decides, fact in _FACTS:
        values = tuple(fact(side) for side in sides)
        if len(set(values)) > 1:
            yield Difference(what=what, values=values, decides=decides)


def _options(sides: Sequence[Side]) -> Iterator[Difference]:
    """Yield the mount options that not all have, without those that all have."""
    own = [_options_of(side.target.mounts[0]) for side in sides]
    common = set(own[0]).intersection(*own[1:])
    values = tuple(
        ",".join(option for option in options if option not in common) or "none beside the common"
        for options in own
    )
    if len(set(values)) > 1:
        yield Difference(what="mount options", values=values, decides=True)


def _options_of(mount: MountFacts) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*mount.options, *mount.super_options)))


def _promise(side: Side) -> str:
    promise = side.target.guarantee
    return f"write: {promise.write}, close: {promise.close}, fsync: {promise.fsync}"


def _work(side: Side) -> str:
    return f"{side.record.run.plan.name} {work_of(side.record)[:12]}"


def _all(side: Side, fact: Callable[[MachineFacts], str]) -> str:
    """Return what the machines of all its processes have; most often that is one and the same."""
    return each_once(map(fact, side.record.run.machines))


def _in_a_container(machine: MachineFacts) -> str:
    return "yes" if machine.container else "no"


_FACTS: tuple[tuple[str, bool, Callable[[Side], str]], ...] = (
    ("work", True, _work),
    ("seed", True, lambda side: str(side.record.run.plan.seed)),
    ("users", True, lambda side: users_of(side.record)),
    ("pace", True, lambda side: f"{side.record.run.load.loop}: {side.record.run.load.pace}"),
    ("cache", True, lambda side: side.record.run.cache.asked),
    ("cache procedure", True, lambda side: side.record.run.cache.procedure),
    ("acknowledged at", True, _promise),
    ("confinement", True, lambda side: side.target.confinement),
    ("file system", False, lambda side: side.target.mounts[0].filesystem),
    ("source", False, lambda side: side.target.mounts[0].source),
    ("mount points", False, lambda side: str(len(side.target.mounts))),
    ("kernel", True, lambda side: _all(side, lambda machine: machine.kernel)),
    ("client", True, lambda side: _all(side, lambda machine: machine.host)),
    ("CPUs", True, lambda side: str(count_cpus(side.record.run.machines))),
    ("memory", True, lambda side: _all(side, lambda machine: format_bytes(machine.memory_bytes))),
    ("in a container", False, lambda side: _all(side, _in_a_container)),
    ("replayer", True, lambda side: _all(side, lambda machine: machine.replayer)),
    ("rounds", False, lambda side: str(side.record.run.load.rounds)),
    ("duration", False, lambda side: _seconds(side.record.run.load.duration_s)),
    ("warm-up", False, lambda side: _seconds(side.record.run.load.warm_up_s)),
)


def _seconds(value: float | None) -> str:
    return "until done" if value is None else f"{value:g} s"
