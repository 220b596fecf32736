"""Imports: how many lines a second one core reads, and that memory does not grow with the log."""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

LINES_S = 1_000_000
SHORT_LINES = 1_000_000
TIMES_LONGER = 10
GROWTH_LIMIT = 1.25
"""Of the memory, where the log is ten times as long (chosen: tables are made in pieces)."""
FILES = 500
"""Files of the block of lines that a log repeats."""


@dataclass(frozen=True)
class Reading:
    """Logs of strace, not compressed, imported by one thread.

    Attributes:
        lines_s: Lines a second of processor time, of a log of a million lines, median of the turns.
        long_lines_s: Of one that is ten times as long, once.
        rss_bytes: The most memory that the import of the short one had.
        long_rss_bytes: Of the long one.
        file_bytes: Size of the long one.
    """

    lines_s: float
    long_lines_s: float
    rss_bytes: int
    long_rss_bytes: int
    file_bytes: int

    def passes(self) -> bool:
        grows = self.long_rss_bytes > GROWTH_LIMIT * self.rss_bytes
        return self.lines_s >= LINES_S and not grows

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def reading(folder: Path, turns: int) -> Reading:
    """Import a log of a million lines again and again, and a long one once."""
    log = folder / "log"
    lines = write_log(log, SHORT_LINES)
    short = [_import(log, folder / f"trace-{turn}") for turn in range(turns)]
    long_lines = write_log(log, TIMES_LONGER * SHORT_LINES)
    long_s, long_rss = _import(log, folder / "trace-long")
    return Reading(
        lines_s=lines / median(took_s for took_s, _ in short),
        long_lines_s=long_lines / long_s,
        rss_bytes=max(rss for _, rss in short),
        long_rss_bytes=long_rss,
        file_bytes=log.stat().st_size,
    )


def write_log(log: Path, lines: int) -> int:
    """Write a log with at least so many lines: the same look-ups and reads, again and again.

    Times are relative (``strace -r``), so that the block can be repeated.
    """
    block = "".join(_file(number) for number in range(FILES))
    count = block.count("\n")
    repeats = -(-lines // count)
    with log.open("w") as file:
        for _ in range(repeats):
            file.write(block)
    return repeats * count


def _file(number: int) -> str:
    path = f"/srv/www/wordpress/wp-includes/blocks/part-{number % 40}/file-{number}.php"
    stat = "{st_mode=S_IFREG|0644, st_size=5120, ...}"
    calls = (
        f'newfstatat(AT_FDCWD</srv/www>, "{path}", {stat}, 0) = 0',
        f'openat(AT_FDCWD</srv/www>, "{path}", O_RDONLY) = 7<{path}>',
        f'newfstatat(7<{path}>, "", {stat}, AT_EMPTY_PATH) = 0',
        f'read(7<{path}>, "<?php"..., 8192) = 5120',
        f'read(7<{path}>, "", 8192) = 0',
        f"close(7<{path}>) = 0",
        f'access("{path}.gz", F_OK) = -1 ENOENT (No such file or directory)',
    )
    return "".join(f"4711      0.0000{at}1 {call} <0.000003>\n" for at, call in enumerate(calls, 1))


CHILD = """
import json, resource, sys, time
from pathlib import Path
from replayer.trace.importing import ImportOptions, import_trace
options = ImportOptions(roots=[Path("/srv/www")], format="strace")
begin = time.process_time()
counts = import_trace([Path(sys.argv[1])], Path(sys.argv[2]), options)["counts"]
took = time.process_time() - begin
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([took, rss, counts["lines"], counts["lines_not_understood"]]))
"""


def _import(log: Path, trace: Path) -> tuple[float, int]:
    """Import in a process of its own; return seconds of processor time and the most memory."""
    words = [sys.executable, "-c", CHILD, str(log), str(trace)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    took_s, rss, _, strange = json.loads(done.stdout)
    if strange:
        message = f"{strange} lines of {log} were not understood"
        raise RuntimeError(message)
    return took_s, rss
