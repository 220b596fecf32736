"""Lines of strace's logs, those of calls that others cut in two put together."""

import lzma
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["whole_lines"]

CUT = re.compile(r"^(\d+) .*(?= <unfinished \.\.\.>$)")
RESUMED = re.compile(r"^(\d+) +[\d.]+ <\.\.\. \w+ resumed>")


def whole_lines(log: Path) -> Iterator[str]:
    """Yield the lines of a compressed log in the order in which their calls ended."""
    begun: dict[str, str] = {}
    for line in lzma.decompress(log.read_bytes()).decode("ascii").splitlines():
        if cut := CUT.match(line):
            begun[cut[1]] = cut[0]
        elif resumed := RESUMED.match(line):
            yield begun.pop(resumed[1]) + line[resumed.end() :]
        else:
            yield line
