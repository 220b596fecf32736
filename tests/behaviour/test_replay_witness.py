"""What a replay does, seen from outside: recorded again, it is the recorded program."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell
from tests.behaviour.strace_lines import whole_lines

HERE = Path(__file__).parent
CALL = re.compile(r"(?P<task>\d+) +[\d.]+ (?P<name>\w+)\((?P<operands>.*)\) += (?P<result>.*)")
OPS = {
    "openat": "open",
    "openat2": "open",
    "mkdirat": "mkdir",
    "renameat2": "rename",
    "linkat": "link",
    "symlinkat": "symlink",
    "readlinkat": "readlink",
    "faccessat": "access",
    "faccessat2": "access",
    "fchmodat": "chmod",
}
OURS = {"O_CLOEXEC", "O_LARGEFILE"}
"""Flags that the kernel or the engine adds to each open."""

Call = tuple[str, tuple[str, ...], frozenset[str], tuple[int, ...], str]


def op_of(name: str, operands: str) -> str:
    if name == "newfstatat":
        if "AT_EMPTY_PATH" in operands:
            return "fstat"
        return "lstat" if "AT_SYMLINK_NOFOLLOW" in operands else "stat"
    if name == "unlinkat":
        return "rmdir" if "AT_REMOVEDIR" in operands else "unlink"
    return OPS.get(name, name)


def numbers_of(op: str, operands: str) -> tuple[int, ...]:
    """Return sizes, offsets, modes and times; descriptors, paths and addresses differ by right."""
    operands = re.sub(r"<[^>]*>|/\*.*?\*/", "", operands)
    if op in {"open", "mkdir"}:
        return tuple(int(mode, 8) for mode in re.findall(r"\b0[0-7]{3}\b", operands))
    if op == "utimensat":
        return tuple(map(int, re.findall(r"tv_n?sec=(\d+)", operands)))
    addressed = op in {"read", "write", "pwrite64", "preadv2", "pwritev2", "getdents64"}
    if not addressed and op not in {"lseek", "ftruncate", "truncate"}:
        return ()
    words = operands.split(", ")[1:]
    numbers = [int(word, 0) for word in words[addressed:] if re.fullmatch(r"0x[0-9a-f]+|\d+", word)]
    if op in {"preadv2", "pwritev2"}:
        numbers[-1] &= (
            0xFFFF_FFFF  # flags are an int: the upper half of the register holds anything
        )
    return tuple(numbers)


def parse_call(name: str, operands: str, result: str, top: str) -> Call:
    op = op_of(name, operands)
    names = tuple(text.removeprefix(top) for text in re.findall(r'"([^"]*)"', operands) if text)
    flags = frozenset(re.findall(r"\bO_[A-Z]+", operands)) - OURS
    outcome = re.match(r"-1 (E\w+)|(0x[0-9a-f]+|\d+)", result)
    assert outcome is not None, result
    number = "" if op == "open" else str(int(outcome[2] or "0", 0))
    return op, names, flags, numbers_of(op, operands), outcome[1] or number


def calls_of(trace: Path, top: str) -> list[Call]:
    """Return the calls between the marks, of the thread that made them."""
    lines = whole_lines(trace / "raw" / "log.strace.xz")
    found = [match for match in map(CALL.match, lines) if match is not None]
    marks = [
        at for at, call in enumerate(found) if re.search(rf'"{top}(begin|end)"', call["operands"])
    ]
    first, last = marks
    task = found[first]["task"]
    own = [
        f"{int(call['result'].split('<')[0]):#x},"
        for call in found
        if call["name"] in {"open", "openat"}
        and call["task"] == task
        and f"/task/{task}/schedstat" in call["operands"]
    ]
    return [
        parse_call(call["name"], call["operands"], call["result"], top)
        for call in found[first : last + 1]
        if call["task"] == task and not (sleeps(call) or reads_any_of(own, call))
    ]


def sleeps(call: re.Match[str]) -> bool:
    """Tell a pause that is waited for; the program's own one is no call."""
    return call["name"] == "futex"


def reads_any_of(descriptors: list[str], call: re.Match[str]) -> bool:
    """Tell the harness asking how long this thread waited for a processor, now and then."""
    return call["name"] == "pread64" and call["operands"].startswith(tuple(descriptors))


@pytest.mark.skipif(os.geteuid() != 0, reason="only a jailed engine makes one call an event")
def test_a_replay_that_is_recorded_makes_the_recorded_calls_one_for_one(shell: Shell) -> None:
    for name in ("root", "mount"):
        (shell.home / name).mkdir()
    capture = ("capture", "--recorder", "strace", "--keep-raw", "-o")
    program = (sys.executable, HERE / "replay_witness.py", "root")
    recorded = shell.run(*capture, "once", "--root", "root", "--", *program)
    assert recorded.code == 0, recorded.err
    replay = (sys.executable, "-m", "replayer", "replay", "once", "--target", "mount", "--quiet")
    again = shell.run(*capture, "twice", "--root", "mount", "--", *replay)
    assert "100 % as recorded, 0 diverged" in again.out
    once = calls_of(shell.home / "once", "")
    twice = calls_of(shell.home / "twice", "once/root/")
    assert len(once) == 37
    assert [call[3] for call in once if call[0] == "pwritev2"] == [(1, 0, 0, 0x12)]
    assert twice == once
