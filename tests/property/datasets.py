"""Strategies for datasets: small trees with files, directories and symlinks that stay inside."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

CAP_DAC_OVERRIDE = 1  # capabilities(7), its number in linux/capability.h


def may_read_everything() -> bool:
    status = Path("/proc/self/status").read_text()
    effective = status.partition("CapEff:")[2].split()[0]
    return bool(int(effective, 16) >> CAP_DAC_OVERRIDE & 1)


NAMES = ["a", "b", "c", "é ü", "long" * 60]
DIRECTORIES = ["tree", "work", "deep/er"]
MODES = [0o600, 0o640, 0o644, 0o700, 0o755, 0o777, 0o1777, 0o4755, 0o2755, 0o555, 0o000, 0o111]
# Who may not read everything lays out only what can be looked at afterwards.
LAID_OUT_MODES = MODES if may_read_everything() else [m for m in MODES if m & 0o500 == 0o500]
SIZES = [0, 1, 100, 4095, 4096, 4097, 10_000, 50_000]

CONTENTS = st.one_of(
    st.just("random"),
    st.just("zeros"),
    st.builds(lambda percent: {"compressible": percent}, st.integers(0, 100)),
)


@st.composite
def _children(draw: st.DrawFn, parent: str, depth: int, sizes: list[int]) -> list[list[Any]]:
    """Entries of one directory, listed or not, each followed by its own children."""
    entries: list[list[Any]] = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
        path = f"{parent}{name}"
        kind = draw(st.sampled_from("fffdl" if depth else "fffl"))
        mode = draw(st.sampled_from(LAID_OUT_MODES))
        if kind == "f":
            entries.append([path, "f", draw(st.sampled_from(sizes)), mode, ""])
        elif kind == "l":
            entries.append([path, "l", 0, 0o777, draw(st.sampled_from([*NAMES, "./a", "a/b"]))])
        else:
            listed = draw(st.booleans())
            entries += [[path, "d", 0, mode, ""]] if listed else []
            entries += draw(_children(f"{path}/", depth - 1, sizes))
    return entries


@st.composite
def dataset(draw: st.DrawFn, directory: str, scopes: list[str], sizes: list[int]) -> dict[str, Any]:
    """One dataset in this directory, with one entry at least."""
    first = [["a", "f", draw(st.sampled_from(sizes)), 0o644, ""]]
    return {
        "name": directory.replace("/", "-"),
        "directory": directory,
        "laid_out": draw(st.sampled_from([True, True, True, False])),
        "scope": draw(st.sampled_from(scopes)),
        "content": draw(CONTENTS),
        "entries": draw(_children("", 2, sizes)) or first,
    }


def datasets(scopes: list[str], sizes: list[int] = SIZES) -> st.SearchStrategy[list[Any]]:
    """One dataset in each of the places."""
    return st.tuples(*[dataset(place, scopes, sizes) for place in DIRECTORIES]).map(list)
