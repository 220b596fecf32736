"""Where traces are found: in a folder of the user's, or among those that come with the program."""

import difflib
from pathlib import Path

import replayer
from replayer.paths import exists, is_file, is_folder
from replayer.trace.errors import TraceError

__all__ = ["find_trace", "shipped_traces"]

TRACE_JSON = "trace.json"
SCENARIOS = (".yaml", ".yml")
MOST_NAMED = 20
"""Chosen: names that fit into a hint."""


def shipped_traces() -> dict[str, Path]:
    """Return the folder of every shipped trace by its name, in alphabetical order."""
    top = _shipped_folder()
    return {
        path.parent.relative_to(top).as_posix(): path.parent
        for path in sorted(top.glob(f"*/*/{TRACE_JSON}"))
    }


def find_trace(name: str, beside: Path) -> Path:
    """Return the folder of a trace.

    Args:
        name: A path, or the name of a shipped trace such as ``wordpress/front-warm``.
        beside: What a relative path begins at.

    Raises:
        TraceError: There is none; the hint names the nearest one.
        UnaskablePathError: The path gives no answer.
    """
    folder = beside / Path(name).expanduser()
    if is_file(folder / TRACE_JSON):
        return folder
    shipped = shipped_traces()
    plain = name.removeprefix("traces/").rstrip("/")
    if plain in shipped:
        return shipped[plain]
    if exists(folder):
        message = f"{name}: is not a trace: it has no {TRACE_JSON}"
        raise TraceError(message, hint=_hint_for(folder))
    message = f"{name}: no such trace, neither a folder nor a shipped trace"
    raise TraceError(message, hint=_nearest(plain, list(shipped)))


def _shipped_folder() -> Path:
    """Return the folder inside an installed package, or beside it in a checkout."""
    package = Path(replayer.__file__).parent
    for folder in (package / "traces", package.parent / "traces"):
        if folder.is_dir():
            return folder
    return package / "traces"


def _hint_for(folder: Path) -> str:
    """Name a trace inside a folder that is none itself."""
    if folder.suffix in SCENARIOS:
        return "run a scenario with: replayer run FILE"
    inside = _first_inside(folder) if is_folder(folder) else None
    if inside is not None:
        return f"it contains traces, such as {inside.parent}"
    return "create one with 'replayer capture' or 'replayer import'"


def _first_inside(folder: Path) -> Path | None:
    found = (sorted(folder.glob(f"{below}/{TRACE_JSON}")) for below in ("*", "*/*"))
    return next((traces[0] for traces in found if traces), None)


def _nearest(name: str, known: list[str]) -> str:
    by_last = {word.rpartition("/")[2]: word for word in known}
    near = difflib.get_close_matches(name, [*known, *by_last], n=1, cutoff=0.6)
    if near:
        return f"did you mean {by_last.get(near[0], near[0])}?"
    return f"shipped traces: {', '.join(known[:MOST_NAMED])}"
