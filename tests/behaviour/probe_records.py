"""Records of the eBPF probe, as ``struct record`` of its source lays them out."""

import lzma
import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ProbedCall", "probed_calls"]

MAGIC = b"RPLYBPF2"
HEAD_BYTES = 16
RECORD = struct.Struct("<HHBBBBIHHQQqI4x")
CALL = 0
NUMBER = re.compile(r"^#define __NR_(\w+) (\d+)$", re.MULTILINE)


class ProbedCall(NamedTuple):
    """One call."""

    task: int
    name: str
    result: int
    start_ns: int
    duration_ns: int
    probe_ns: int
    """What the probe itself took of the time since the task's last call."""
    data: bytes
    """Numbers, then paths."""


def _names() -> dict[int, str]:
    words = ("cc", "-dM", "-E", "-include", "asm/unistd_64.h", "-x", "c", "/dev/null")
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return {int(number): name for name, number in NUMBER.findall(text)}


def probed_calls(log: Path) -> Iterator[ProbedCall]:
    """Yield the calls of a compressed log, those of each task in their order."""
    names, text, at = _names(), lzma.decompress(log.read_bytes()), HEAD_BYTES
    while at < len(text):
        size, number, kind, *_, task, _, _, start, took, result, own = RECORD.unpack_from(text, at)
        if kind == CALL:
            data = text[at + RECORD.size : at + size]
            yield ProbedCall(task, names[number], result, start, took, own, data)
        at += size
