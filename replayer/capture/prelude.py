"""What was open before a recording began, in the words of the log itself.

A log begins with descriptors that it never saw opened: a server's files, or an output that the
shell redirected into a root. Each is told in a line of its own, which only the importer knows:
``inherited(FD<PATH>, FLAGS, POSITION)``, numbers in decimal, the file as ``-y`` names it. Of a file
that had no name any more (``PATH (deleted)``) its size and inode follow. Threads share the
descriptors of their process: a clone tells of each. Terminals and other devices are left out, but
not what lies in a root, such as one in /dev/shm.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from replayer.capture.processes import Descriptor, ProcessState
from replayer.capture.sidecar import TimeState

__all__ = ["write_prelude"]

_THREAD = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD"


def write_prelude(
    file: Path, states: Iterable[ProcessState], before: TimeState, roots: Sequence[Path]
) -> int:
    """Write the descriptors that lead to files, a line each; return how many there are.

    Args:
        file: Where to.
        states: The processes and threads.
        before: When they were looked at.
        roots: The directories that are recorded; absolute, without links.
    """
    stamp = f"{before.wall_ns // 10**9}.{before.wall_ns % 10**9:09}"
    lines: list[str] = []
    count = 0
    first_threads: dict[int, int] = {}
    for state in states:
        first = first_threads.setdefault(state.process, state.pid)
        if first != state.pid:
            call = f"clone(child_stack=NULL, flags={_THREAD}) = {state.pid}"
            lines.append(f"{first} {stamp} {call} <0.000000000>\n")
            continue
        for call in _inherited(state.descriptors, roots):
            lines.append(f"{state.pid} {stamp} {call} <0.000000000>\n")
            count += 1
    file.write_text("".join(lines), encoding="ascii")
    return count


def _inherited(descriptors: Iterable[Descriptor], roots: Sequence[Path]) -> Iterator[str]:
    for each in descriptors:
        if _leads_to_file(each.link, roots):
            shown = f"{each.number}<{_quoted(each.link)}>"
            gone = each.gone and f", {each.gone.size}, {each.gone.inode}"
            yield f"inherited({shown}, {int(each.flags, 8)}, {each.position}{gone or ''}) = 0"


def _leads_to_file(link: str, roots: Sequence[Path]) -> bool:
    if not link.startswith("/dev/"):
        return link.startswith("/")
    return any(Path(link).is_relative_to(root) for root in roots)


def _quoted(link: str) -> str:
    r"""Escape a path as strace does between angle brackets: octal for all but plain ASCII."""
    return "".join(
        chr(byte)
        if 32 <= byte < 127 and byte not in b'<>"\\'  # noqa: PLR2004 - printable ASCII
        else f"\\{byte:03o}"
        for byte in link.encode("utf-8", "surrogateescape")
    )
