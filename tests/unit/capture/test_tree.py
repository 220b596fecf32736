"""Lists of trees: complete, exact, honest about what they leave out, and small in memory."""

import lzma
import os
import re
import stat
import time
import tracemalloc
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from replayer.capture.roots import check_roots
from replayer.capture.tree import Listed, Listing, list_tree

NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: not set(name) & set(b"\0/") and name not in (b".", b"..")
)


def listed(
    file: Path, *roots: Path, exclude: tuple[str, ...] = ()
) -> tuple[list[bytes], tuple[Listed, ...]]:
    results = list_tree(check_roots(roots), Listing(exclude, lambda _: None), file)
    lines = lzma.decompress(file.read_bytes()).split(b"\n")
    assert lines[0] == b"path\ttype\tsize\tmode\tlink"
    assert lines[-1] == b""
    return lines[1:-1], results


def name_of(line: bytes) -> bytes:
    """Return a row's name; a capital letter for the type says that it is escaped."""
    name, kind = line.split(b"\t")[:2]
    if kind.islower():
        return name
    plain = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\"}
    return re.sub(rb"\\(.)", lambda found: plain[found[1]], name)


@given(names=st.sets(NAMES, max_size=8))
@settings(max_examples=60, deadline=None)
def test_every_name_is_listed(tmp_path_factory: "object", names: set[bytes]) -> None:
    folder = tmp_path_factory.mktemp("names")  # type: ignore[attr-defined]
    root = folder / "root"
    root.mkdir()
    for name in names:
        (root / os.fsdecode(name)).mkdir()
    lines, (result,) = listed(folder / "tree", root)
    assert {name_of(line) for line in lines} == {b".", *names}
    assert (result.entries, result.unreadable) == (1 + len(names), 0)


def test_types_sizes_modes_and_links_are_those_of_lstat(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "deep/er").mkdir(parents=True)
    (root / "deep/er/file").write_bytes(b"12345")
    (root / "deep/er/file").chmod(0o4711)
    (root / "link").symlink_to("deep/er")
    os.mkfifo(root / "pipe", 0o600)
    lines, _ = listed(tmp_path / "tree", root)
    rows = {line.split(b"\t")[0]: line.split(b"\t")[1:] for line in lines}
    assert rows[b"deep/er/file"] == [b"f", b"5", b"4711", b""]
    assert rows[b"link"] == [b"l", b"7", b"777", b"deep/er"]
    assert rows[b"pipe"][0] == b"p"
    assert rows[b"deep"][2] == b"%o" % stat.S_IMODE((root / "deep").stat().st_mode)
    assert b"link/file" not in rows


def test_parents_come_before_their_children(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in ("b/c/d", "a/x/y", "b/a"):
        (root / path).mkdir(parents=True)
    lines, _ = listed(tmp_path / "tree", root)
    seen = {b"", b"."}
    for line in lines:
        name = line.split(b"\t")[0]
        assert name.rpartition(b"/")[0] in seen
        seen.add(name)


def test_paths_of_several_roots_stand_behind_their_names(tmp_path: Path) -> None:
    for path in ("a/www/file", "b/www/file", "a/www/www:odd", "a/www/www-2:x/y", "c/www:d/file"):
        (tmp_path / path).mkdir(parents=True)
    roots = (tmp_path / "a/www", tmp_path / "b/www", tmp_path / "c/www:d")
    lines, _ = listed(tmp_path / "tree", *roots)
    assert {line.split(b"\t")[0] for line in lines} == {
        b"www:.",
        b"www:./file",
        b"www:./www:odd",
        b"www:./www-2:x",
        b"www:./www-2:x/y",
        b"www-2:.",
        b"www-2:./file",
        b"www:d:.",
        b"www:d:./file",
    }


def test_a_path_of_an_only_root_that_begins_with_its_name_is_no_roots(tmp_path: Path) -> None:
    for path in ("www/file", "www/www:odd", "www/other:odd"):
        (tmp_path / path).mkdir(parents=True)
    lines, _ = listed(tmp_path / "tree", tmp_path / "www")
    names = {line.split(b"\t")[0] for line in lines}
    assert names == {b".", b"file", b"./www:odd", b"other:odd"}


def test_globs_leave_out_names_and_paths_with_all_below(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in (".git/objects", "src/.git", "cache/a", "src/cache/a"):
        (root / path).mkdir(parents=True)
    lines, (result,) = listed(tmp_path / "tree", root, exclude=(".git", "cache/*"))
    paths = {line.split(b"\t")[0] for line in lines}
    assert paths == {b".", b"src", b"cache", b"src/cache", b"src/cache/a"}
    assert result.excluded == 3


def test_directories_that_cannot_be_listed_are_counted_and_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    inside = os.open(root, os.O_RDONLY)
    for _ in range(25):  # deeper than a path may be long
        os.mkdir("d" * 200, dir_fd=inside)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = deeper
    os.close(inside)
    lines, (result,) = listed(tmp_path / "tree", root)
    assert result.unreadable == 1
    assert "File name too long" in result.examples[0]
    assert 15 < len(lines) < 25


def test_memory_does_not_grow_with_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    check = check_roots([root])
    listing = Listing((), lambda _: None)

    def peak() -> int:
        tracemalloc.start()
        list_tree(check, listing, tmp_path / "tree")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    for number in range(20):
        (root / f"{number}").mkdir()
    small = peak()
    for number in range(4000):
        (root / f"directory-with-a-longer-name-{number}").mkdir()
    assert peak() < small + 200_000


def test_what_has_changed_since_is_listed_as_not_known(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "old").mkdir(parents=True)
    (root / "old/file").touch()
    (root / "grown").touch()
    since_ns = time.time_ns() + 10**8
    time.sleep(0.2)
    (root / "grown").write_text("more")
    (root / "new").touch()
    listing = Listing((), lambda _: None, since_ns)
    (result,) = list_tree(check_roots([root]), listing, tmp_path / "tree")
    lines = lzma.decompress((tmp_path / "tree").read_bytes()).splitlines()[1:]
    kinds = dict(line.split(b"\t")[:2] for line in lines)
    assert kinds == {b".": b"u", b"old": b"d", b"old/file": b"f", b"grown": b"m", b"new": b"m"}
    assert result.changed == 3
