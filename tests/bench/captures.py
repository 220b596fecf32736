"""``python -m tests.bench.captures FOLDER``: import raw captures, and print what became of them.

A raw capture is a log ``NAME.strace.xz`` (or .log.xz, .txt.xz, .iolog), perhaps with ``NAME.json``
beside it (roots, working directories, requests) and ``NAME.tree.tsv.xz`` (the files before). The
table names every call below the roots that could not be represented; the last line is the sum.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replayer.trace.importing import ImportOptions, Window, import_trace

SUFFIXES = (".strace.xz", ".log.xz", ".txt.xz", ".iolog")
USUAL_ROOTS = ("/srv", "/var", "/home", "/root", "/opt", "/usr", "/etc")
"""Of a log with nothing beside it (chosen: what programs work on)."""
SHARE_LIMIT = 0.999
"""Of the calls below the roots so many must be representable."""
HEADER = (
    f"{'capture':<40}{'lines':>11}{'strange':>9}{'calls':>11}{'replayable':>12}{'events':>11}"
    f"{'B/event':>9}"
)


@dataclass
class Fate:
    """What became of the lines and calls of a log, or of several.

    Attributes:
        lines: Lines of the log.
        strange: Those that were not understood.
        calls: Calls below the roots.
        lost: Those of them that nothing can stand for, by name.
        events: Events of the trace.
        table_bytes: What its tables take.
    """

    lines: int = 0
    strange: int = 0
    calls: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    events: int = 0
    table_bytes: int = 0

    @property
    def share(self) -> float:
        """Of the calls, those that are events or state."""
        return 1 - sum(self.lost.values()) / self.calls if self.calls else 1.0

    def passes(self) -> bool:
        return self.strange == 0 and self.share >= SHARE_LIMIT

    def add(self, other: "Fate") -> None:
        """Add what became of another log."""
        self.lines += other.lines
        self.strange += other.strange
        self.calls += other.calls
        self.events += other.events
        self.table_bytes += other.table_bytes
        for name, count in other.lost.items():
            self.lost[name] = self.lost.get(name, 0) + count

    def row(self, name: str) -> str:
        each = self.table_bytes / self.events if self.events else 0.0
        return (
            f"{name[:38]:<40}{self.lines:>11,}{self.strange:>9,}{self.calls:>11,}{self.share:>12.4%}"
            f"{self.events:>11,}{each:>9.1f}"
        )


def name_of(log: Path) -> str:
    """Name a capture after its log."""
    (suffix,) = (each for each in SUFFIXES if log.name.endswith(each))
    return log.name.removesuffix(suffix)


def logs_in(folder: Path) -> list[Path]:
    """List the raw captures below a folder."""
    return sorted(path for path in folder.rglob("*") if path.name.endswith(SUFFIXES))


def import_capture(
    log: Path, target: Path, windows: Sequence[Window] | None = None
) -> dict[str, Any]:
    """Import a raw capture with what lies beside it; return the trace's trace.json.

    Args:
        log: Of the capture.
        target: The trace's folder, which is made.
        windows: Its requests; None: those that lie beside it.
    """
    name = name_of(log)
    beside = log.with_name(f"{name}.json")
    known: dict[str, Any] = json.loads(beside.read_text()) if beside.exists() else {}
    tree = log.with_name(f"{name}.tree.tsv.xz")
    roots = [*known.get("subject_roots", []), *known.get("extra_roots", [])] or USUAL_ROOTS
    options = ImportOptions(
        roots=[Path(root) for root in roots],
        format="fio-iolog" if log.suffix == ".iolog" else "strace",
        manifest=tree if tree.exists() else None,
        directories=list(_directories(known)),
        windows=list(_windows(known) if windows is None else windows),
        note=known.get("description", name),
    )
    return import_trace([log], target, options)


def _directories(known: dict[str, Any]) -> Iterator[tuple[int | None, Path]]:
    if known.get("cwd"):
        yield None, Path(known["cwd"])
    for process, directory in (known.get("initial_cwd") or {}).items():
        yield int(process), Path(directory)


def _windows(known: dict[str, Any]) -> Iterator[Window]:
    for each in known.get("requests", []):
        yield Window(round(each["t0"] * 1e9), round(each["t1"] * 1e9), each["label"])


def fate_of(trace: dict[str, Any]) -> Fate:
    """Read what an import counted."""
    counts = trace["counts"]
    return Fate(
        lines=counts["lines"],
        strange=counts["lines_not_understood"],
        calls=counts["calls_below_roots"],
        lost=counts["calls_not_representable"],
        events=counts["events"],
        table_bytes=sum(table["bytes"] for table in trace["tables"].values()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.captures", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, metavar="TRACES", help="keep the traces")
    options = parser.parse_args()
    print(HEADER)
    total = Fate()
    with tempfile.TemporaryDirectory() as scratch:
        for log in logs_in(options.folder):
            target = (options.output or Path(scratch)) / name_of(log)
            fate = fate_of(import_capture(log, target))
            total.add(fate)
            print(fate.row(target.name), flush=True)
            for name, count in sorted(fate.lost.items()):
                print(f"    not representable: {count:,} {name}")
    print(total.row("all"))
    print("ok" if total.passes() else "misses its target")


if __name__ == "__main__":
    main()
