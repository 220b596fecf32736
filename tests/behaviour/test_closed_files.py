"""Datasets whose modes keep an ordinary user from reading what was laid out."""

import pytest

from tests.behaviour.shell import IS_ROOT, Done, Shell, needs_setpriv

POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""What takes from root all that makes it root, but its name."""

CLOSED = """\
name: closed
about: Nobody reads the files here.
users: {count: 1, think_time: 2ms}
duration: 300ms
datasets:
  files: {manifest: ./files.tsv}
mix: {look: 1}
transactions:
  look:
    - stat: {from: files, pick: uniform}
"""
UNREADABLE = "permission denied: this user cannot read it"

pytestmark = needs_setpriv


def run(shell: Shell, *words: str) -> Done:
    process = shell.start(*words, within=POWERLESS if IS_ROOT else ())
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


@pytest.fixture
def closed(shell: Shell) -> Shell:
    """A home with a scenario of files that may be written, looked at or neither."""
    rows = (
        "path\ttype\tsize\tmode\tlink",
        "d\td\t0\t755\t",
        "d/a\tf\t10\t000\t",
        "d/b\tf\t10\t200\t",
    )
    (shell.home / "files.tsv").write_text("\n".join((*rows, "")))
    (shell.home / "closed.yaml").write_text(CLOSED)
    shell.target()
    return shell


def test_files_that_caches_are_prepared_of_must_be_readable(closed: Shell) -> None:
    """As for cold ones, where the machine's caches may not be dropped."""
    done = run(closed, "run", "closed.yaml", "--target", "mount", "--cache", "warm")
    assert done.code == 3, done.err
    assert f"/files/d/a: {UNREADABLE}\n" in done.err
    assert "hint: the scenario sets the modes of entries" in done.err
    assert "writable" not in done.err


def test_so_must_those_of_a_kept_folder(closed: Shell) -> None:
    kept = run(closed, "run", "closed.yaml", "--target", "mount", "--cache", "as-is", "--keep-used")
    assert kept.went_well, kept.err
    (folder,) = (closed.home / "mount").iterdir()
    (folder / "files").chmod(0)
    try:
        done = run(closed, "run", "closed.yaml", "--reuse", str(folder), "--cache", "as-is")
    finally:
        (folder / "files").chmod(0o755)
    assert (done.code, done.out) == (3, ""), done.err
    assert f": {UNREADABLE}\n" in done.err


def test_what_clean_may_not_look_into_is_not_said_to_be_unwritable(closed: Shell) -> None:
    mount = closed.home / "mount"
    folder = mount / "replayer-20261121T000000-abcd"
    folder.mkdir()
    mount.chmod(0o400)  # its names can be listed, and not looked at
    try:
        done = run(closed, "clean", str(mount))
    finally:
        mount.chmod(0o755)
    assert (done.code, done.out) == (3, "")
    assert f"{folder}: permission denied for this user\n" in done.err
