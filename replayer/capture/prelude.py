"""What was open before a recording began, in the words of the log itself.

A log begins with descriptors that it never saw opened: a server's files, or an output that the
shell redirected into a root. Each is told as a ``dup2`` onto itself, which changes nothing, has no
event, and names the file as ``-y`` does.
"""

from collections.abc import Iterable
from pathlib import Path

from replayer.capture.processes import ProcessState
from replayer.capture.sidecar import TimeState

__all__ = ["write_prelude"]


def write_prelude(file: Path, states: Iterable[ProcessState], before: TimeState) -> int:
    """Write the descriptors that lead to files, a line each; return how many there are."""
    stamp = f"{before.wall_ns // 10**9}.{before.wall_ns % 10**9:09}"
    lines = [
        f"{state.pid} {stamp} dup2({shown}, {shown}) = {shown} <0.000000000>\n"
        for state in states
        for descriptor in state.descriptors
        if descriptor.link.startswith("/") and not descriptor.link.startswith("/dev/")
        for shown in [f"{descriptor.number}<{_quoted(descriptor.link)}>"]
    ]
    file.write_text("".join(lines), encoding="ascii")
    return len(lines)


def _quoted(link: str) -> str:
    r"""Escape a path as strace does between angle brackets: octal for all but plain ASCII."""
    return "".join(
        chr(byte)
        if 32 <= byte < 127 and byte not in b'<>"\\'  # noqa: PLR2004 - printable ASCII
        else f"\\{byte:03o}"
        for byte in link.encode("utf-8", "surrogateescape")
    )
