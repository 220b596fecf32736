"""Scenarios, traces and jobs of fio that were written to escape change nothing outside."""

import json
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from tests.mounts.fleet import with_fio
from tests.mounts.sentinel import BOTH, Guarded, meanwhile

pytestmark = pytest.mark.mounts

ESCAPES = [
    "../../../sentinel/secret",
    "{sentinel}/secret",
    "inner/../../../../sentinel/secret",
]


@pytest.mark.parametrize("name", ESCAPES)
def test_a_scenario_that_names_what_is_outside_is_refused_or_fails(
    guarded: Guarded, name: str
) -> None:
    words = name.format(sentinel=guarded.sentinel)
    flags = "[create, wronly, trunc]"
    step = f'transactions.save=[{{open: {{in: work, name: "{words}", flags: {flags}}}}}, close]'
    done = guarded.scene.shell.run(
        "run", "tiny.yaml", "--target", guarded.scene.mount, "--set", step
    )
    assert done.code in {1, 2, 4}, done.err
    guarded.check()


TRACE = """\
100 1700000000.000000 open("{inside}", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.000010>
100 1700000000.000100 write(3, "x", 1) = 1 <0.000010>
100 1700000000.000200 close(3) = 0 <0.000010>
100 1700000000.000300 symlink("{sentinel}", "/srv/site/link") = 0 <0.000010>
100 1700000000.000400 open("link/secret", O_WRONLY|O_TRUNC) = 3 <0.000010>
100 1700000000.000500 write(3, "x", 1) = 1 <0.000010>
100 1700000000.000600 close(3) = 0 <0.000010>
100 1700000000.000700 unlink("/srv/site/../..{sentinel}/secret") = 0 <0.000010>
100 1700000000.000800 rename("/srv/site/link/secret", "/srv/site/../../gone") = 0 <0.000010>
100 1700000000.000900 chmod("link/inner/file", 0777) = 0 <0.000010>
100 1700000000.001000 rmdir("/srv/site/link/inner") = -1 ENOTEMPTY (Directory not empty) <0.000010>
"""


@BOTH
@pytest.mark.parametrize("inside", ["../../sentinel/secret", "file"])
def test_a_trace_that_was_written_to_escape_does_not(
    guarded: Guarded, confinement: str, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", confinement)
    shell = guarded.scene.shell
    (shell.home / "log").write_text(TRACE.format(inside=inside, sentinel=guarded.sentinel))
    made = shell.run("import", "log", "-o", "trace", "--root", "/srv/site", "--format", "strace")
    assert made.code == 0, made.err
    done = shell.run("replay", "trace", "--target", guarded.scene.mount, "--pace", "asap")
    assert done.code in {0, 1, 2, 4}, done.err
    guarded.check()
    left = [path.name for path in guarded.scene.mount.iterdir()]
    assert left == ["foreign"]


ESCAPED = (b"../../../sentinel/secret", b"../../../sentinel/planta", b"../../../sentinel/inner/")
LETTERS = "".join(chr(code) for code in range(0x23, 0x7F) if chr(code) not in "'/\\")
PLACEHOLDERS = {
    LETTERS[first : first + len(escape)].encode(): escape
    for first, escape in zip((0, 24, 48), ESCAPED, strict=True)
}
"""Names that a compressor leaves as they are, and what is written over them: as long as they."""

OLD, NEW, LINK = (name.decode() for name in PLACEHOLDERS)
HOSTILE = f"""\
100 1700000000.000000 open("/srv/site/{OLD}", O_WRONLY|O_TRUNC) = 3 <0.000010>
100 1700000000.000100 write(3, "x", 1) = 1 <0.000010>
100 1700000000.000200 close(3) = 0 <0.000010>
100 1700000000.000300 open("/srv/site/{NEW}", O_WRONLY|O_CREAT, 0644) = 3 <0.000010>
100 1700000000.000400 close(3) = 0 <0.000010>
100 1700000000.000500 readlink("/srv/site/link", "{LINK}", 99) = 24 <0.000010>
100 1700000000.000600 open("/srv/site/link/file", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.000010>
100 1700000000.000700 close(3) = 0 <0.000010>
100 1700000000.000800 unlink("/srv/site/{OLD}") = 0 <0.000010>
"""


def falsify(trace: Path) -> set[bytes]:
    """Write over the placeholders in a trace's tables, and make its checksums right again."""
    document, found = trace / "trace.json", set()
    text = document.read_text()
    for table in trace.glob("*.parquet"):
        before = table.read_bytes()
        after = before
        for name, escape in PLACEHOLDERS.items():
            found |= {name} if name in after else set()
            after = after.replace(name, escape)
        text = text.replace(sha256(before).hexdigest(), sha256(after).hexdigest())
        table.write_bytes(after)
    told = json.loads(text)["checksum"]
    blank = text.replace(told, "0" * len(told), 1)
    document.write_text(text.replace(told, sha256(blank.encode()).hexdigest(), 1))
    return found


@BOTH
def test_a_trace_whose_tables_were_falsified_to_escape_does_not(
    guarded: Guarded, confinement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its initial tree has files and a link outside, its checksums are right."""
    monkeypatch.setenv("REPLAYER_CONFINEMENT", confinement)
    shell = guarded.scene.shell
    (shell.home / "log").write_text(HOSTILE)
    made = shell.run("import", "log", "-o", "trace", "--root", "/srv/site", "--format", "strace")
    assert made.code == 0, made.err
    assert falsify(shell.home / "trace") == set(PLACEHOLDERS)
    assert shell.run("show", "trace").code == 0
    done = shell.run("replay", "trace", "--target", guarded.scene.mount, "--pace", "asap")
    assert done.code in {0, 1, 2, 4}, done.err
    guarded.check()
    assert [path.name for path in guarded.scene.mount.iterdir()] == ["foreign"]


FIO = """\
[escape]
ioengine=psync
rw=write
bs=4k
size=64k
{line}
"""


@with_fio
@pytest.mark.parametrize(
    "line",
    [
        "filename={sentinel}/secret",
        "directory={sentinel}",
        "filename_format=../../../sentinel/work/$jobnum",
        "exec_prerun=rm -rf {sentinel}",
        "write_bw_log={sentinel}/secret",
        "write_bw_log=../../sentinel/secret",
        "filename=own:../../sentinel/secret",
        "directory=own:{sentinel}",
        "directory=..",
        "opendir={sentinel}",
        "include {sentinel}/secret",
        "read_iolog={sentinel}/secret",
        "write_iolog={sentinel}/secret",
        "verify_state_load={sentinel}/secret",
        "mem=mmap:{sentinel}/secret",
        "verify_pattern='{sentinel}/secret'",
        "buffer_pattern='{sentinel}/secret'",
        "ioengine=external:{sentinel}/secret",
        "ioscheduler=none",
        "uid=1000",
        "[../../sentinel/secret]",
        "unlink=1",
    ],
)
def test_a_job_of_fio_reaches_nothing_outside(guarded: Guarded, line: str) -> None:
    shell = guarded.scene.shell
    (shell.home / "own.fio").write_text(FIO.format(line=line.format(sentinel=guarded.sentinel)))
    done = shell.run("baseline", "own.fio", "--target", guarded.scene.mount)
    assert done.code in {0, 2, 4}, done.err
    guarded.check()
    assert [path.name for path in guarded.scene.mount.iterdir()] == ["foreign"]


SLOW_JOB = """\
[escape]
ioengine=psync
rw=write
bs=4k
size=64k
filename={names}
openfiles=1
file_service_type=sequential
create_on_open=1
file_append=0
thinktime=1ms
runtime=4s
time_based=1
"""


FILES = [f"file{number}" for number in range(50)]


def plant(mount: Path, sentinel: Path, stop: threading.Event) -> None:
    """Put links in the place of fio's files, to a file that is there and to new ones."""
    while not stop.is_set():
        for folder in mount.glob("replayer-2*"):
            for name in FILES:
                with suppress(OSError):
                    (folder / name).symlink_to(sentinel / "secret")
                with suppress(OSError):
                    (folder / f"new-{name}").symlink_to(sentinel / f"new-{name}")
                    (folder / f"new-{name}").rename(folder / name)


@with_fio
@pytest.mark.parametrize("first", ["replayer-2*", "replayer-2*/file0"])
def test_links_that_are_planted_in_the_place_of_files_of_fio_lead_it_nowhere(
    guarded: Guarded, first: str
) -> None:
    """Before it makes its files, and while it does, each when it comes to it."""
    scene, stop = guarded.scene, threading.Event()
    (scene.shell.home / "own.fio").write_text(SLOW_JOB.format(names=":".join(FILES)))
    scene.begin("own.fio", command="baseline")
    scene.wait(lambda: any(scene.mount.glob(first)), "it has begun")
    scene.happens()
    words = (scene.mount, guarded.sentinel, stop)
    with meanwhile(threading.Thread(target=plant, args=words), stop):
        assert scene.process is not None
        scene.process.wait(60)
    ending = scene.end()
    assert ending.code in {1, 3, 4}, ending.said
    guarded.check()
    scene.clean()
    guarded.check()


@with_fio
def test_a_log_of_fio_that_is_changed_for_a_link_is_not_read_through_it(guarded: Guarded) -> None:
    scene = guarded.scene
    job = "[one]\nrw=write\nsize=64k\nruntime=2s\ntime_based=1\nwrite_bw_log=own\n"
    (scene.shell.home / "own.fio").write_text(job)
    scene.begin("own.fio", command="baseline")
    scene.wait(lambda: any(scene.mount.glob("replayer-2*/one.*")), "fio works")
    (scene.folder / "stolen_bw.log").symlink_to(guarded.sentinel / "secret")
    scene.happens()
    scene.end()
    kept = [path for path in (scene.shell.home / "replayer-runs").rglob("*") if path.is_file()]
    assert any(path.name.startswith("own_bw") for path in kept)
    assert not any("this is secret" in path.read_text(errors="replace") for path in kept)
    guarded.check()
