"""Manifests and archives are read without ever being unpacked, and foul ones are refused."""

import gzip
import io
import lzma
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.plan.compile import compile_plan
from replayer.plan.summary import describe_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import load_scenario
from replayer.scenario.manifests import (
    Entry,
    check_link,
    load_manifest,
    load_tar,
    part_of,
    sort_entries,
)

HEADER = "path\ttype\tsize\tmode\tlink\n"
TREE = (
    HEADER + ".\td\t4096\t755\t\na\td\t4096\t750\t\na/b.txt\tf\t12\t640\t\na/c\tl\t5\t777\tb.txt\n"
)
ENTRIES = (
    Entry("a", "d", 0, 0o750),
    Entry("a/b.txt", "f", 12, 0o640),
    Entry("a/c", "l", 0, 0o777, "b.txt"),
)


def test_what_find_writes_is_a_manifest(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    (tree / "a" / "b").write_bytes(b"123")
    (tree / "a" / "l").symlink_to("b")
    written = subprocess.run(
        ["find", ".", "-printf", r"%P\t%y\t%s\t%m\t%l\n"],
        cwd=tree,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    path = tmp_path / "tree.tsv"
    path.write_text(HEADER + written)
    kinds = {(entry.path, entry.type, entry.size) for entry in load_manifest(path)}
    assert kinds == {("a", "d", 0), ("a/b", "f", 3), ("a/l", "l", 0)}


def test_directories_that_nobody_lists_are_there_before_what_lies_in_them() -> None:
    files = [Entry("a/b/c", "f", 1, 0o644), Entry("a/d", "f", 1, 0o644), Entry("e", "f", 1, 0o644)]
    found = sort_entries(files, "s")
    assert [each.path for each in found] == ["a", "a/b", "a/b/c", "a/d", "e"]
    assert [each for each in found if each.type == "d"] == [
        Entry("a", "d", 0, 0o755),
        Entry("a/b", "d", 0, 0o755),
    ]
    assert part_of(found, 100) == found


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz", ".tsv.xz"])
def test_a_manifest_is_read_plain_or_compressed(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"tree{ending}"
    data = TREE.encode()
    packed = {".tsv": data, ".tsv.gz": gzip.compress(data), ".tsv.xz": lzma.compress(data)}
    path.write_bytes(packed[ending])
    assert load_manifest(path) == ENTRIES


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tf\t1\t644", "tree.tsv:2: must have 5 fields, got 4"),
        ("a\tx\t1\t644\t", "tree.tsv:2: type must be f, d or l, got 'x'"),
        ("a\tf\t-1\t644\t", "tree.tsv:2: size must be a number of bytes, got '-1'"),
        ("a\tf\t1\t999\t", "tree.tsv:2: mode must be octal such as 644, got '999'"),
        ("/a\tf\t1\t644\t", "tree.tsv:2: the path '/a' is absolute"),
        ("../a\tf\t1\t644\t", "tree.tsv:2: the path '../a' leads out of the dataset through '..'"),
        ("a//b\tf\t1\t644\t", "tree.tsv:2: the path 'a//b' has an empty component"),
        (f"{'n' * 256}\tf\t1\t644\t", "has a component of 256 bytes, at most 255"),
        ("a\tl\t0\t777\t/etc", "tree.tsv:2: the link a points to '/etc', outside the dataset"),
        ("a\tl\t0\t777\t../b", "tree.tsv:2: the link a points to '../b', outside"),
        ("a\tf\t1\t644\t\na\tf\t1\t644\t", "tree.tsv: a is listed twice"),
        ("a\tf\t1\t644\t\na/b\tf\t1\t644\t", "a/b is below a, which is not a directory"),
        ("a\tf\t1\t644\t\na/b/c\tf\t1\t644\t", "a/b/c is below a, which is not a directory"),
        (f"a\tf\t{2**51}\t644\t", "tree.tsv:2: a must have at most 1,125,899,906,842,624 bytes"),
        (f"a\tf\t{'9' * 23}\t644\t", "tree.tsv:2: size must be at most 1,125,899,906,842,624"),
        (
            f"a\tl\t0\t777\t{'x' * 4001}",
            "tree.tsv:2: the link a must point to a name without control",
        ),
    ],
)
def test_a_foul_line_is_refused_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "tree.tsv"
    path.write_text(HEADER + line + "\n")
    with pytest.raises(ScenarioError) as refused:
        load_manifest(path)
    assert message in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"path,type\n", b"\xff\xfe", b"\xfd7zXZ\x00broken"])
def test_what_is_no_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ("tree.tsv.xz" if content.startswith(b"\xfd") else "tree.tsv")
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=r"tree\.tsv"):
        load_manifest(path)


def write_tar(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def member(name: str, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def test_the_members_of_an_archive_become_entries(tmp_path: Path) -> None:
    path = write_tar(
        tmp_path / "a.tar.gz",
        member("./top/", type=tarfile.DIRTYPE, mode=0o750),
        member("./top/one", size=7, mode=0o640),
        member("top/two", type=tarfile.LNKTYPE, linkname="./top/one"),
        member("top/three", type=tarfile.SYMTYPE, linkname="one"),
    )
    assert load_tar(path) == (
        Entry("top", "d", 0, 0o750),
        Entry("top/one", "f", 7, 0o640),
        Entry("top/two", "f", 7, 0o640),
        Entry("top/three", "l", 0, 0o777, "one"),
    )
    assert sorted(child.name for child in tmp_path.iterdir()) == ["a.tar.gz"]


@pytest.mark.parametrize(
    ("foul", "message"),
    [
        (member("../evil"), "leads out of the dataset through '..'"),
        (member("/etc/passwd"), "is absolute"),
        (member("disk", type=tarfile.BLKTYPE), "is not a file, a directory or a link"),
        (member("pipe", type=tarfile.FIFOTYPE), "is not a file, a directory or a link"),
        (member("link", type=tarfile.SYMTYPE, linkname="/etc"), "outside the dataset"),
        (member("caf\udce9"), "is not UTF-8"),
        (member("hard", type=tarfile.LNKTYPE, linkname="gone"), "is not a file"),
    ],
    ids=lambda value: value.name if isinstance(value, tarfile.TarInfo) else "",
)
def test_a_foul_member_is_refused(tmp_path: Path, foul: tarfile.TarInfo, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load_tar(write_tar(tmp_path / "a.tar.gz", foul))
    assert message in str(refused.value)


def test_another_archive_can_be_unpacked(tmp_path: Path) -> None:
    path = write_tar(
        tmp_path / "mine.tar.xz",
        member("mine", type=tarfile.DIRTYPE, mode=0o755),
        member("mine/file", size=25_000, mode=0o640),
    )
    scenario = load_scenario("kernel-untar", [f"linux.tar={path}"])
    untar = describe_plan(compile_plan(scenario)).transactions[0]
    assert untar.bytes_written == 25_000
    assert (untar.ops["mkdir"], untar.ops["fchmod"]) == (2, 1)
    # What is left of a record, and then records of 10,240: three pieces, or four after short ones.
    firsts = range(512, 10_241)
    pieces = [1 + -(-(25_000 - first) // 10_240) for first in firsts]
    assert untar.ops["write"] == pytest.approx(sum(pieces) / len(pieces), rel=0.01)


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz"])
def test_an_archive_with_a_damaged_header_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for number in range(20):
            archive.addfile(_member(f"f{number}", 600), io.BytesIO(b"x" * 600))
    data = bytearray(whole.getvalue())
    header = 10 * (512 + 1024)
    data[header + 3] ^= 0xFF
    path.write_bytes(gzip.compress(data) if suffix == ".tar.gz" else data)
    with pytest.raises(ScenarioError, match=rf"is damaged or truncated: .* byte {header:,}$"):
        load_tar(path)
    data[header + 3] ^= 0xFF
    path.write_bytes(data[: header + 300])
    with pytest.raises(ScenarioError, match=rf"is damaged or truncated: .* byte {header:,}$"):
        load_tar(path)
    path.write_bytes(data[:header])  # without the two blocks of zeros, as some programs end it
    assert len(load_tar(path)) == 10


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(b"nothing like it" * 100)
    with pytest.raises(ScenarioError, match="cannot be read as a tar archive") as refused:
        load_tar(path)
    assert "\n" not in str(refused.value)


@given(st.permutations(["a", "a/b", "a/b/c", "d", "d/e"]))
def test_parents_come_before_children_whatever_the_order(paths: list[str]) -> None:
    entries = [Entry(path, "d", 0, 0o755) for path in paths]
    order = [entry.path for entry in sort_entries(entries, "x")]
    assert sorted(order) == sorted(paths)
    assert all(
        order.index(path.rpartition("/")[0]) < order.index(path) for path in paths if "/" in path
    )


@given(st.lists(st.sampled_from(["..", ".", "a", "b"]), min_size=1, max_size=6), st.integers(0, 3))
def test_a_link_is_allowed_exactly_when_it_never_leaves(parts: list[str], depth: int) -> None:
    entry = Entry("/".join(["x"] * depth + ["link"]), "l", 0, 0o777, "/".join(parts))
    level, leaves = depth, False
    for part in parts:
        level += {"..": -1, ".": 0}.get(part, 1)
        leaves |= level < 0
    assert (check_link(entry) is not None) == leaves


@st.composite
def trees(draw: st.DrawFn) -> tuple[Entry, ...]:
    parts = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)
    directories = draw(st.sets(parts, max_size=20))
    known = {path[:end] for path in directories for end in (1, 3, 5)} | directories
    inside = draw(st.sets(st.sampled_from(sorted({"", *known})), max_size=10))
    files = [Entry(f"{path}/file".lstrip("/"), "f", 1, 0o644) for path in inside]
    return sort_entries([*(Entry(path, "d", 0, 0o755) for path in known), *files], "tree")


@given(trees(), st.integers(1, 100))
def test_a_part_of_a_tree_is_a_tree_of_whole_directories(
    entries: tuple[Entry, ...], percent: int
) -> None:
    part = part_of(entries, percent)
    assert list(part) == [entry for entry in entries if entry in part]
    there = {entry.path for entry in part}
    assert all(path.rpartition("/")[0] in {"", *there} for path in there)
    if percent == 100:
        assert part == entries


def test_a_part_has_so_many_of_a_hundred_directories() -> None:
    entries = [Entry(f"d{n:03}", "d", 0, 0o755) for n in range(199)]
    files = [Entry(f"d{n:03}/{name}", "f", 1, 0o644) for n in range(199) for name in "xyz"]
    part = part_of([*entries, *files], 10)
    assert [sum(entry.type == kind for entry in part) for kind in "df"] == [19, 57]  # and the top


def test_files_that_lie_in_one_directory_have_no_depth() -> None:
    with pytest.raises(ScenarioError, match="depth needs per_directory; without it all files are"):
        load_scenario("rm-rf", ["tree.per_directory=null"])


def test_a_part_goes_with_what_is_read() -> None:
    with pytest.raises(ScenarioError, match="part needs manifest or tar, not files"):
        load_scenario("small-reads", ["files.part=10%"])
    whole, tenth = (
        describe_plan(compile_plan(load_scenario("kernel-untar", [f"linux.part={part}"])))
        for part in ("100%", "10%")
    )
    assert (whole.datasets[0].files, whole.datasets[0].directories) == (54_000, 3_656)
    assert 5_000 < tenth.datasets[0].files < 6_000
