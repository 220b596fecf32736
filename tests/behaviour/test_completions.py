"""What shells complete, asked in the shells themselves."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from replayer.cli import main
from replayer.cli.completions import SHELLS
from replayer.measure.history import keep_run

PATIENCE_S = 20.0
LONGEST_S = 0.3
SAID = re.compile(r"(\[[^\r\n]*\])END")
SETUP = {
    "bash": "source replayer.bash; ",
    "zsh": "cp replayer.zsh _replayer; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u; ",
}
TELL = "replayer() { printf '[%s]' \"$@\"; echo END; }\n"
RUN = "replayer-runs/20261121T024839-ab12"
COMPLETED = [
    ("basel", "baseline"),
    ("run wordpress-pag", "run wordpress-pages"),
    ("run own", "run own.yaml"),
    ("run wordpress-pages --cac", "run wordpress-pages --cache"),
    ("run --cache c", "run --cache cold"),
    ("run -u 4 --target moun", "run -u 4 --target mounts"),
    ("run --target nfs=moun", "run --target nfs=mounts"),
    ("run --target nfs=mounts,moun", "run --target nfs=mounts,mounts"),
    ("run --target nfs=mounts wordpress-pag", "run --target nfs=mounts wordpress-pages"),
    ("run wordpress-pages -u 4 --html own", "run wordpress-pages -u 4 --html own.yaml"),
    ("show wordpress/front-w", "show wordpress/front-warm"),
    ("capture -o moun", "capture -o mounts"),
    ("report replayer-runs/2026", f"report {RUN}"),
    ("report 2026", "report 20261121T024839-ab12"),
    ("compare 2026", "compare 20261121T024839-ab12"),
    ("compare before-upgrade lat", "compare before-upgrade latest"),
    ("report befo", "report before-upgrade"),
    ("run small-reads --baseline befo", "run small-reads --baseline before-upgrade"),
    ("baseline upload rand-readw", "baseline upload rand-readwrite-4k"),
    ("compare replayer-runs/a replayer-runs/2026", f"compare replayer-runs/a {RUN}"),
    ("study wordp", "study wordpress-efs-zfs"),
    ("runs forget befo", "runs forget before-upgrade"),
    ("runs keep v1 2026", "runs keep v1 20261121T024839-ab12"),
    ("help scen", "help scenarios"),
]
WITH_EQUALS = ("run --cache=c", "run --cache=cold")  # shtab's zsh has options with a space only


@pytest.fixture
def folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make a folder with scripts of completions, and files of one's own."""
    for shell in SHELLS:
        assert main(["completions", shell]) == 0
        (tmp_path / f"replayer.{shell}").write_text(capsys.readouterr().out)
    (tmp_path / "own.yaml").touch()
    (tmp_path / "mounts").mkdir()
    (tmp_path / RUN).mkdir(parents=True)
    keep_run("before-upgrade", tmp_path / RUN, tmp_path / "replayer-runs")
    for name, value in (("HOME", str(tmp_path)), ("TERM", "dumb"), ("PS1", "> ")):
        monkeypatch.setenv(name, value)
    return tmp_path


class Terminal:
    """A shell at a terminal, which tells the words that it calls ``replayer`` with."""

    def __init__(self, shell: str, folder: Path) -> None:
        words = [shell, "--norc", "-i"] if shell == "bash" else [shell, "-f", "-i"]
        self._pid, self._file = pty.fork()
        if not self._pid:
            os.chdir(folder)
            os.execvp(words[0], words)  # noqa: S606 - a shell it is
        self._read: list[bytes] = []
        os.write(self._file, (SETUP[shell] + TELL).encode())
        self.ask("")

    def ask(self, line: str) -> str:
        """Type a line, TAB and return; give back the words that the program would see."""
        before = len(self._said())
        os.write(self._file, f"replayer {line}\t\n".encode() if line else b"replayer ready\n")
        end_s = time.monotonic() + PATIENCE_S
        while len(self._said()) == before:
            assert time.monotonic() < end_s, b"".join(self._read).decode()
            if select.select([self._file], [], [], 0.1)[0]:
                self._read.append(os.read(self._file, 1 << 16))
        return " ".join(re.findall(r"\[([^\]]*)\]", self._said()[-1]))

    def _said(self) -> list[str]:
        return SAID.findall(b"".join(self._read).decode(errors="replace"))

    def end(self) -> None:
        """Hang up."""
        with suppress(OSError):
            os.write(self._file, b"\x04")
        os.close(self._file)
        os.waitpid(self._pid, 0)


@pytest.fixture(params=["bash", pytest.param("zsh", marks=pytest.mark.nightly)])
def terminal(request: pytest.FixtureRequest, folder: Path) -> Iterator[Terminal]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    opened = Terminal(request.param, folder)
    yield opened
    opened.end()


def test_a_shell_completes_commands_options_names_and_folders(
    terminal: Terminal, request: pytest.FixtureRequest
) -> None:
    cases = list(COMPLETED)
    if request.node.callspec.params["terminal"] == "bash":
        cases.append(WITH_EQUALS)
    found = [(typed, terminal.ask(typed).rstrip("/")) for typed, _ in cases]
    assert found == cases


@pytest.mark.nightly
def test_fish_completes_commands_options_names_and_folders(folder: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    for typed, whole in (*COMPLETED, WITH_EQUALS):
        done = subprocess.run(
            ["fish", "-c", f"source replayer.fish; complete -C 'replayer {typed}'"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        offered = [line.split("\t")[0].rstrip("/") for line in done.stdout.splitlines()]
        assert [word for word in offered if word] == [whole.split()[-1]], typed
        assert done.stderr == ""


def test_a_completion_takes_less_than_what_a_person_notices(folder: Path) -> None:
    terminal = Terminal("bash", folder)
    took_s = []
    for _ in range(5):
        began_s = time.monotonic()
        terminal.ask("run wordpress-pag")
        took_s.append(time.monotonic() - began_s)
    terminal.end()
    assert min(took_s) < LONGEST_S, took_s
