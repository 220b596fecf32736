"""From a finished recording to a trace: the one place that calls the importer.

A log begins with descriptors that it never saw opened: a server's files, or an output that the
shell redirected into a root. ``write_prelude`` writes a line for each, which only the importer
reads: ``inherited(FD<PATH>, FLAGS, POSITION)``, numbers in decimal, the file as ``-y`` names it. Of
a file that had no name any more (``PATH (deleted)``) its size and inode follow. Threads share the
descriptors of their process: a clone tells of each. Terminals and other devices are left out, but
not what lies in a root, such as one in /dev/shm.
"""

import lzma
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replayer.capture.calibration import Calibration, as_recorded
from replayer.capture.order import RawLog
from replayer.capture.processes import Descriptor, ProcessState
from replayer.capture.progress import Progress
from replayer.capture.roots import Root
from replayer.capture.sidecar import TimeState
from replayer.capture.staging import Staging
from replayer.capture.views import View
from replayer.trace.importing import ComputeTime, ImportOptions, import_trace

__all__ = ["Compilation", "Known", "compile_trace", "way_to_compile", "write_prelude"]

PRESET = 1  # chosen: a log shrinks to a fifteenth at 60 MB/s, and little more at a tenth of that
BLOCK_BYTES = 1 << 20
_THREAD = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD"


@dataclass(frozen=True)
class Known:
    """What no log says, and without which none can be understood.

    Attributes:
        roots: Whose files are the trace.
        directories: Working directories at the beginning: of a process, or (None) of all others.
        umasks: What creations leave out of their modes then, in the same way.
        aliases: Other names of roots, each with its root.
        views: Processes that have another root or other mounts.
        covers: Names below the roots on which these have something else mounted.
    """

    roots: tuple[Root, ...]
    directories: tuple[tuple[int | None, Path], ...]
    umasks: tuple[tuple[int | None, int], ...]
    aliases: tuple[tuple[Path, Path], ...]
    views: tuple[View, ...] = ()
    covers: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Compilation:
    """What the importer is told.

    Attributes:
        known: Roots and working directories.
        note: Where the trace comes from.
        log_format: The importer of the log.
        raw: Whether the log stays in the trace.
        calibration: What the recorder adds, for what the recording itself does not tell.
        computed: What the command did beside its calls; None where that is not known.
    """

    known: Known
    note: str
    log_format: str
    raw: RawLog
    calibration: Calibration | None
    computed: ComputeTime | None


def compile_trace(
    staging: Staging, target: Path, compilation: Compilation, progress: Progress
) -> dict[str, Any]:
    """Import a recording, put the rest of the capture into the trace, and return its trace.json."""
    document = import_trace(
        _logs(staging),
        target,
        _options(staging, compilation),
        lambda lines: progress.line(f"compiling · {lines:,} lines"),
    )
    shutil.move(staging.sidecar, target / "capture.json")
    if compilation.raw is RawLog.KEEP:
        _keep_raw(staging, target / "raw", progress)
    progress.clear()
    return document


def _options(staging: Staging, compilation: Compilation) -> ImportOptions:
    measured, known = compilation.calibration, compilation.known
    if measured is not None and compilation.log_format == "bpf":
        measured = as_recorded(measured, staging.probe_log)
    return ImportOptions(
        roots=[root.absolute for root in known.roots],
        aliases=known.aliases,
        process_roots=[(view.task, view.root) for view in known.views],
        mounts=[(view.task, view.mounts) for view in known.views if view.mounts is not None],
        covers=known.covers,
        follows_links=True,  # this machine has just recorded
        format=compilation.log_format,
        manifest=staging.tree,
        directories=known.directories,
        umasks=known.umasks,
        note=compilation.note,
        probed=None if measured is None else measured.document(),
        probe_method="" if measured is None else measured.method,
        computed=compilation.computed,
    )


def way_to_compile(staging: Staging, target: Path, known: Known, log_format: str) -> str:
    """Return the command that compiles a recording later."""
    words = ["replayer", "import", *map(str, _logs(staging)), "--format", log_format]
    words += ["--tree", str(staging.tree), "-o", str(target)]
    for task, directory in known.directories:
        words += ["--cwd", str(directory) if task is None else f"{task}={directory}"]
    for task, umask in known.umasks:
        words += ["--umask", f"{umask:03o}" if task is None else f"{task}={umask:03o}"]
    for root in known.roots:
        words += ["--root", str(root.absolute)]
    for alias, absolute in known.aliases:
        words += ["--alias", f"{alias}={absolute}"]
    for view in known.views:
        words += ["--process-root", f"{view.task}={view.root}"]
        words += [] if view.mounts is None else ["--mounts", f"{view.task}={view.mounts}"]
    for cover in known.covers:
        words += ["--cover", str(cover)]
    return shlex.join(words)


def _logs(staging: Staging) -> list[Path]:
    return [log for log in (staging.prelude, *staging.logs) if log.exists() and log.stat().st_size]


def _keep_raw(staging: Staging, folder: Path, progress: Progress) -> None:
    folder.mkdir()
    shutil.move(staging.tree, folder / staging.tree.name)
    for log in _logs(staging):
        _pack(log, folder / f"{log.name}.xz", progress)


def _pack(source: Path, target: Path, progress: Progress) -> None:
    done = 0
    with source.open("rb") as file, lzma.open(target, "wb", preset=PRESET) as out:
        while block := file.read(BLOCK_BYTES):
            out.write(block)
            done += len(block)
            progress.line(f"packing the log · {done:,} bytes")


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
