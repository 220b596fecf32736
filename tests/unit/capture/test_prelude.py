"""What was open before, told as the importer reads it."""

from pathlib import Path

from replayer.capture.compilation import write_prelude
from replayer.capture.processes import Descriptor, GoneFile, ProcessState
from replayer.capture.sidecar import TimeState

AT = TimeState(wall_ns=1_000_000_042, monotonic_ns=0)
ROOTS = [Path("/srv")]


def state(*links: str) -> ProcessState:
    return ProcessState(
        pid=7,
        process=7,
        command=("x",),
        cwd="/",
        root="/",
        umask="0022",
        descriptors=tuple(
            Descriptor(number=number, link=link, position=77, flags="02001")
            for number, link in enumerate(links)
        ),
        mountinfo="",
    )


def test_files_are_told_and_what_has_no_path_is_not(tmp_path: Path) -> None:
    states = [state("/dev/null", "pipe:[12]", "/srv/out", "socket:[1]")]
    count = write_prelude(tmp_path / "p", states, AT, ROOTS)
    assert count == 1
    expected = "7 1.000000042 inherited(2</srv/out>, 1025, 77) = 0 <0.000000000>\n"
    assert (tmp_path / "p").read_text() == expected


def test_a_root_in_memory_is_no_device(tmp_path: Path) -> None:
    links = ("shm/db/a", "shm/other", "pts/0", "shm/dbs")
    states = [state(*(f"/dev/{link}" for link in links))]
    assert write_prelude(tmp_path / "p", states, AT, [Path("/dev", "shm", "db")]) == 1
    assert " inherited(0</dev/shm/db/a>, 1025, 77) = 0 <" in (tmp_path / "p").read_text()


def test_odd_names_are_escaped_as_strace_does(tmp_path: Path) -> None:
    odd = 'a<b>"c\\d\né'
    write_prelude(tmp_path / "p", [state(f"/{odd}")], AT, ROOTS)
    text = (tmp_path / "p").read_text()
    assert r"0</a\074b\076\042c\134d\012\303\251>" in text
    assert text.count("\n") == 1


def test_threads_share_what_their_process_has_open(tmp_path: Path) -> None:
    first = state("/srv/a")
    states = [first, first.model_copy(update={"pid": 8}), first.model_copy(update={"pid": 9})]
    other = first.model_copy(update={"pid": 20, "process": 20})
    assert write_prelude(tmp_path / "p", [*states, other], AT, ROOTS) == 2
    calls = [line.split(" ", 2)[::2] for line in (tmp_path / "p").read_text().splitlines()]
    assert [(task, call.partition("(")[0]) for task, call in calls] == [
        ("7", "inherited"),
        ("7", "clone"),
        ("7", "clone"),
        ("20", "inherited"),
    ]
    assert calls[1][1].endswith("= 8 <0.000000000>")
    assert "CLONE_FILES" in calls[2][1]


def test_a_file_that_was_removed_has_its_size_and_inode(tmp_path: Path) -> None:
    before = state("/srv/a (deleted)")
    (descriptor,) = before.descriptors
    gone = descriptor.model_copy(update={"gone": GoneFile(size=5000, inode=12)})
    states = [before.model_copy(update={"descriptors": (gone,)})]
    write_prelude(tmp_path / "p", states, AT, ROOTS)
    text = (tmp_path / "p").read_text()
    assert " inherited(0</srv/a (deleted)>, 1025, 77, 5000, 12) = 0 <" in text
