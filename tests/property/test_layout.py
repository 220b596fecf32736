"""Laying out, verifying and removing: exactly the plan's tree, nothing outside touched."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer import _native as engine
from tests import oracle
from tests.property.datasets import DIRECTORIES, SIZES, datasets
from tests.property.observation import Document, fresh_folder, native_plan

BOTH_SCOPES = ["shared", "user"]
MEBIBYTE = 1 << 20
LARGE_SIZES = [0, 4097, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 2 * MEBIBYTE + 12_345]


def document_of(sets: list[Any], seed: int, users: int, pool_bytes: int) -> Document:
    """A plan that lays out these datasets and does nothing."""
    return {
        "format": 1,
        "name": "layout",
        "seed": seed,
        "users": users,
        "written": "random",
        "pool_bytes": pool_bytes,
        "tables": [],
        "datasets": sets,
        "pickers": [],
        "transactions": [{"name": "nothing", "steps": []}],
        "mix": [1],
        "pace": {"kind": "closed", "think": {"const": 0}},
        "stop": {"duration_ns": None, "transactions": 1},
        "warm_up_ns": 0,
    }


def documents(sizes: list[int], pools: st.SearchStrategy[int]) -> st.SearchStrategy[Document]:
    return st.builds(
        document_of,
        datasets(BOTH_SCOPES, sizes),
        st.integers(0, 2**64 - 1),
        st.integers(1, 3),
        pools.map(lambda words: words * 8),
    )


LAYOUTS = documents(SIZES, st.integers(512, 4000))


def laid_out(document: Document, parent: Path) -> tuple[engine.Sandbox, engine.Plan]:
    sandbox = engine.Sandbox.create(str(parent), "run", json.dumps({"made": "by a test"}))
    plan = native_plan(document)
    sandbox.lay_out(plan, 2).result()
    return sandbox, plan


@given(document=LAYOUTS)
def test_the_native_layout_is_the_reference_layout(mount: Path, document: Document) -> None:
    with fresh_folder(mount) as here, fresh_folder(mount) as there:
        sandbox, plan = laid_out(document, here)
        oracle.lay_out(document, there)
        assert oracle.tree(Path(sandbox.path)) == oracle.tree(there)
        assert sandbox.verify(plan, 2).result().mismatches == 0


@pytest.mark.parametrize("scope", BOTH_SCOPES)
@pytest.mark.parametrize("pool_bytes", [8192, MEBIBYTE, MEBIBYTE + 8])
@pytest.mark.parametrize("content", ["random", {"compressible": 33}])
def test_files_of_many_chunks_have_the_reference_content(
    memory: Path, scope: str, pool_bytes: int, content: object
) -> None:
    entries = [[f"f{size}", "f", size, 0o644, ""] for size in LARGE_SIZES]
    common = {"name": "tree", "directory": "tree", "laid_out": True}
    sets = [{**common, "scope": scope, "content": content, "entries": entries}]
    document = document_of(sets, 7, 2, pool_bytes)
    with fresh_folder(memory) as here, fresh_folder(memory) as there:
        sandbox, _plan = laid_out(document, here)
        oracle.lay_out(document, there)
        assert oracle.tree(Path(sandbox.path)) == oracle.tree(there)


@given(document=LAYOUTS)
def test_a_layout_never_overwrites(mount: Path, document: Document) -> None:
    with fresh_folder(mount) as here:
        sandbox, plan = laid_out(document, here)
        before = files_of(Path(sandbox.path))
        if before:
            with pytest.raises(FileExistsError):
                sandbox.lay_out(plan, 2).result()
        assert files_of(Path(sandbox.path)) == before


def files_of(folder: Path) -> dict[str, oracle.EntryState]:
    return {path: state for path, state in oracle.tree(folder).items() if state.type == "f"}


def add_entry(place: Path) -> None:
    (place.parent / f"{place.name[:100]}-extra").touch()


def add_inside(place: Path) -> None:
    inside = place if place.is_dir() and not place.is_symlink() else place.parent
    (inside / "another").mkdir()


def change_mode(place: Path) -> None:
    if place.is_symlink():
        change_link(place)
    else:
        place.chmod(place.stat().st_mode & 0o7777 ^ 0o004)


def change_link(place: Path) -> None:
    target = place.readlink()
    place.unlink()
    place.symlink_to(f"{target}-elsewhere")


def change_size(place: Path) -> None:
    if place.is_symlink():
        change_link(place)
    elif place.is_dir():
        add_inside(place)
    else:
        os.truncate(place, place.stat().st_size + 1)


def take_away(place: Path) -> None:
    place.rename(place.parent / "elsewhere")


def change_type(place: Path) -> None:
    take_away(place)
    if place.with_name("elsewhere").is_dir():
        place.touch()
    else:
        place.mkdir()


def change_to_link(place: Path) -> None:
    """Put a link to the very same thing in its place."""
    aside = place.parent.parent / f"aside-{place.name[:50]}"
    place.rename(aside)
    place.symlink_to(os.path.relpath(aside, place.parent))


MUTATIONS = [
    *(add_entry, add_inside, change_mode, change_size, take_away, change_type, change_to_link)
]


@given(document=LAYOUTS, mutate=st.sampled_from(MUTATIONS), where=st.randoms(use_true_random=False))
def test_verify_finds_any_single_change(
    mount: Path, document: Document, mutate: Callable[[Path], None], where: Random
) -> None:
    with fresh_folder(mount) as here:
        sandbox, plan = laid_out(document, here)
        folder = Path(sandbox.path)
        inside = [path for path in oracle.tree(folder) if is_inside(path)]
        if inside:
            mutate(folder / where.choice(inside))
        else:
            add_inside(folder / DIRECTORIES[0])
        finding = sandbox.verify(plan, 2).result()
        assert finding.mismatches >= 1
        assert finding.first_mismatch


def is_inside(path: str) -> bool:
    return any(path.startswith(f"{directory}/") for directory in DIRECTORIES)


@given(document=LAYOUTS, planted=st.lists(st.integers(0, 2**32), min_size=1, max_size=8))
def test_wiping_and_removing_touch_nothing_outside(
    mount: Path, document: Document, planted: list[int]
) -> None:
    with fresh_folder(mount) as here:
        sentinel = here / "sentinel"
        oracle.lay_out(document, sentinel_folder(sentinel))
        before = oracle.tree(sentinel)
        sandbox, _plan = laid_out(document, here)
        folder = Path(sandbox.path)
        plant(folder, sentinel, planted)
        sandbox.wipe(2).result()
        assert oracle.tree(folder) == {}
        assert engine.Sandbox.open(str(folder)).note == sandbox.note
        assert oracle.tree(sentinel) == before
        plant(folder, sentinel, planted)
        sandbox.remove(2).result()
        assert [path.name for path in here.iterdir()] == ["sentinel"]
        assert oracle.tree(sentinel) == before


def sentinel_folder(sentinel: Path) -> Path:
    sentinel.mkdir()
    (sentinel / "precious").write_bytes(b"do not touch")
    return sentinel


def plant(folder: Path, sentinel: Path, numbers: list[int]) -> None:
    """Plant links to what must survive: absolute, relative, over links, hard ones."""
    targets = [sentinel, *(sentinel / path for path in oracle.tree(sentinel))]
    places = [folder, *(folder / p for p, s in oracle.tree(folder).items() if s.type == "d")]
    places = [place for place in places if os.access(place, os.W_OK | os.X_OK)]
    for index, number in enumerate(numbers):
        target, place = targets[number % len(targets)], places[number // 7 % len(places)]
        link = place / f"planted-{index}"
        text = os.path.relpath(target, place) if number % 2 else str(target)
        link.symlink_to(text)
        (place / f"over-{index}").symlink_to(link.name)
        if target.is_file() and not target.is_symlink():
            os.link(target, place / f"hard-{index}")
