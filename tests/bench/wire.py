"""What an NFS client asks its server, by operation: its own count, exact on a busy machine too.

The library reads it for the mount that a folder is on. As a program, ``python -m tests.bench.wire
NOTE FOLDER WORD…``, it does ``replayer WORD…`` and writes to NOTE what was asked on the mount of
FOLDER in the measured phase: from when the users begin until the last of them has ended.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from replayer.cli import main as do
from replayer.run.runtime import EngineClient
from replayer.run.schedule import ScheduledSegment

__all__ = ["Asked", "asked_on", "asked_since", "load_asked", "seconds", "show_beside", "total"]

MOUNTSTATS = Path("/proc/self/mountstats")
RTT, EXECUTE = 6, 7
"""Places of sums in milliseconds in a line of an operation (net/sunrpc/stats.c)."""


@dataclass(frozen=True)
class Asked:
    """What was asked of one kind.

    Attributes:
        count: How often.
        rtt_ms: From sending to the answer, all together.
        execute_ms: The same from when it was asked for.
    """

    count: int
    rtt_ms: int = 0
    execute_ms: int = 0

    def since(self, before: "Asked") -> "Asked":
        """Return what came after another reading."""
        return Asked(
            self.count - before.count,
            self.rtt_ms - before.rtt_ms,
            self.execute_ms - before.execute_ms,
        )


Wire = Mapping[str, Asked]
"""By operation: OPEN, WRITE…"""


def asked_on(folder: Path) -> Wire | None:
    """Return what was asked on the mount of a folder until now; None where it is not NFS."""
    where = _mount_point(folder)
    for part in MOUNTSTATS.read_text().split("\ndevice "):
        head, _, rest = part.partition("\n")
        if f" mounted on {where} with fstype nfs" in head:
            _, found, lines = rest.partition("per-op statistics\n")
            return dict(_operations(lines)) if found else None
    return None


def asked_since(folder: Path, before: Wire | None) -> Wire | None:
    """Return what was asked on the mount of a folder after an earlier reading."""
    now = asked_on(folder)
    if now is None or before is None:
        return None
    found = {name: asked.since(before.get(name, Asked(0))) for name, asked in now.items()}
    return {name: asked for name, asked in found.items() if asked.count}


def load_asked(note: Path) -> Wire:
    """Return what this module, as a program, wrote."""
    return {name: Asked(**fields) for name, fields in json.loads(note.read_text()).items()}


def total(wire: Wire) -> int:
    """Return how much was asked in all."""
    return sum(asked.count for asked in wire.values())


def seconds(wire: Wire) -> float:
    """Return how long was waited for all of it; what was asked at the same time counts twice."""
    return sum(asked.execute_ms for asked in wire.values()) / 1e3


def show_beside(program: Wire, scenario: Wire) -> Iterator[str]:
    """Yield a table of both: counts, their difference, and milliseconds an operation took."""
    yield f"  {'operation':<14} {'program':>8} {'scenario':>8} {'more':>7}   {'ms each':>15}"
    names = sorted({*program, *scenario}, key=lambda name: (-_most(name, program, scenario), name))
    for name in names:
        theirs, mine = (wire.get(name, Asked(0)) for wire in (program, scenario))
        more = f"{mine.count - theirs.count:>+7}"
        each = f"{_each(theirs):>7} {_each(mine):>7}"
        yield f"  {name:<14} {theirs.count:>8} {mine.count:>8} {more}   {each}"
    theirs_all, mine_all = total(program), total(scenario)
    ratio = f"{mine_all / theirs_all:>7.3f}" if theirs_all else ""
    yield f"  {'all':<14} {theirs_all:>8} {mine_all:>8} {ratio}"
    yield f"  {'seconds of it':<14} {seconds(program):>8.3f} {seconds(scenario):>8.3f}"


def main() -> None:
    """Do a command of replayer, noting what its measured phase asked."""
    note, folder, *words = sys.argv[1:]
    _note_phases(Path(note), Path(folder).resolve())
    raise SystemExit(do(words))


def _note_phases(note: Path, folder: Path) -> None:
    begin, close = EngineClient.begin, EngineClient.close_gauge
    before: list[Wire | None] = []

    def begin_noted(client: EngineClient, segment: ScheduledSegment, warm_up_ns: int) -> None:
        before.append(asked_on(folder))
        begin(client, segment, warm_up_ns)

    def close_noted(client: EngineClient) -> None:
        close(client)
        found = asked_since(folder, before[-1]) or {}
        note.write_text(json.dumps({name: asdict(asked) for name, asked in found.items()}))

    EngineClient.begin = begin_noted  # type: ignore[assignment, method-assign]
    EngineClient.close_gauge = close_noted  # type: ignore[assignment, method-assign]


def _mount_point(folder: Path) -> Path:
    place = folder.resolve()
    while not os.path.ismount(place):
        place = place.parent
    return place


def _operations(lines: str) -> Iterator[tuple[str, Asked]]:
    for line in lines.splitlines():
        name, colon, numbers = line.partition(":")
        fields = numbers.split()
        if colon and len(fields) > EXECUTE:
            yield name.strip(), Asked(int(fields[0]), int(fields[RTT]), int(fields[EXECUTE]))


def _most(name: str, *wires: Wire) -> int:
    return max(wire[name].count if name in wire else 0 for wire in wires)


def _each(asked: Asked) -> str:
    return f"{asked.execute_ms / asked.count:.2f}" if asked.count else ""


if __name__ == "__main__":
    main()
