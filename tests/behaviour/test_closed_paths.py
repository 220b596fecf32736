"""Paths that the system gives no answer about: behind a closed folder, or with too long a name."""

import json
from pathlib import Path

import pytest

from replayer.paths import ClosedPathError, UnaskablePathError, exists, is_file, is_folder, is_link
from tests.behaviour.page import serve
from tests.behaviour.shell import ORDINARY, Shell, needs_setpriv

LONG = "a" * 300

COMMANDS = {
    "run": ("run", "PATH.yaml"),
    "check": ("check", "PATH.yaml"),
    "report": ("report", "PATH"),
    "compare": ("compare", "PATH", "PATH"),
    "show": ("show", "PATH"),
    "replay": ("replay", "PATH"),
    "clean": ("clean", "PATH"),
    "baseline": ("baseline", "PATH.fio", "--target", "."),
    "offer": ("web", "--offer", "PATH.yaml"),
    "locustfile": ("run", "tiny.yaml", "-f", "PATH.py"),
    "csv prefix": ("run", "tiny.yaml", "--csv", "PATH"),
    "csv folder": ("run", "tiny.yaml", "--csv", "PATH/"),
    "against": ("check", "look.yaml", "--against", "look=PATH"),
    "against a request": ("check", "look.yaml", "--against", "look=PATH:front"),
    "manifest": ("check", "tiny.yaml", "--set", "files.manifest=PATH"),
    "tar": ("check", "tiny.yaml", "--set", "files.tar=PATH"),
    "target": ("run", "tiny.yaml", "--target", "PATH/../mount"),
}


@pytest.fixture
def closed(shell: Shell) -> Path:
    """A folder that nobody but root may look into."""
    folder = shell.target("closed")
    folder.chmod(0)
    return folder


DRIVER = """
import json, os, sys, tempfile
from replayer.cli import check, main, replay, report, run, web

for words in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            code = main(words)
            sys.stdout.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = [file.seek(0) or file.read().decode() for file in (out, err)]
    print(json.dumps([code, *said]), flush=True)
"""
"""A process that does what all need once: each would need a second for it."""


def refusals(shell: Shell, path: str, within: tuple[str, ...]) -> dict[str, str]:
    """Return what each command says that must refuse, and refuse as a person's mistake."""
    asked = [[word.replace("PATH", path) for word in words] for words in COMMANDS.values()]
    process = shell.start(json.dumps(asked), program=("-c", DRIVER), within=within)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    found = {}
    for command, line in zip(COMMANDS, out.splitlines(), strict=True):
        code, printed, said = json.loads(line)
        assert (code in {2, 3}, printed) == (True, ""), (command, code, said)
        message, hint, *more = said.splitlines()
        assert message.startswith("replayer: "), command
        assert (hint.startswith("hint: "), more) == (True, []), command
        found[command] = message
    assert not any(shell.home.glob("replayer-*"))
    return found


@needs_setpriv
def test_what_may_not_be_looked_into_is_refused(shell: Shell, closed: Path) -> None:
    for command, message in refusals(shell, f"{closed}/it", ORDINARY).items():
        assert message.endswith(": Permission denied"), (command, message)
        assert f"{closed}/it" in message, (command, message)


def test_a_name_that_is_too_long_is_refused(shell: Shell) -> None:
    for command, message in refusals(shell, LONG, ()).items():
        assert message.endswith(": File name too long"), (command, message)


def test_a_path_leads_to_a_file_a_folder_or_nothing(tmp_path: Path) -> None:
    (file := tmp_path / "file").touch()
    (link := tmp_path / "link").symlink_to(file)
    (loop := tmp_path / "loop").symlink_to(loop)
    asked = (tmp_path, file, link, loop, file / "below", tmp_path / "none", tmp_path / "\0")
    found = {ask: [ask(path) for path in asked] for ask in (is_folder, is_file, is_link, exists)}
    assert found == {
        is_folder: [True, False, False, False, False, False, False],
        is_file: [False, True, True, False, False, False, False],
        is_link: [False, False, True, True, False, False, False],
        exists: [True, True, True, False, False, False, False],
    }
    with pytest.raises(UnaskablePathError, match="File name too long") as caught:
        exists(tmp_path / LONG)
    assert caught.value.exit_code == 2
    assert ClosedPathError.exit_code == 3


@needs_setpriv
def test_the_page_shows_runs_beside_one_that_may_not_be_looked_into(
    shell: Shell, closed: Path
) -> None:
    runs = shell.home / "runs"
    done = shell.run("run", "tiny.yaml", "--target", shell.target(), "-o", runs / "mine")
    assert done.went_well, done.err
    closed.rename(runs / "another")
    with serve(
        shell, "tiny.yaml", "--target", "mount=mount", "-o", "runs", within=ORDINARY
    ) as page:
        listed = page.get("replayer/runs")
        assert ("mine" in listed, "another" in listed) == (True, False)
        for form in ("html", "md", "json"):
            assert "tiny" in page.get(f"replayer/runs/mine/report.{form}")
