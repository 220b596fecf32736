"""Where the kernel, or a filter before it, lacks a call."""

import json
import shutil
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, forbidding

ASKS = """\
name: asks
about: A few files that are looked for.
users: {count: 2, think_time: 2ms}
duration: 400ms
datasets:
  files: {files: 20, sizes: 1KiB}
mix: {ask: 1}
transactions:
  ask:
    - access: {from: files, pick: uniform, check: read}
    - access: {in: files, name: missing, expect: [ENOENT]}
"""

LOG = """\
10 1700000000.000000 faccessat2(AT_FDCWD, "/r/f", R_OK, AT_EACCESS) = 0 <0.000010>
10 1700000000.001000 faccessat2(AT_FDCWD, "/r/none", F_OK, AT_EACCESS) = -1 ENOENT (…) <0.000010>
"""


def test_nothing_is_left_where_a_run_cannot_be_confined(shell: Shell, tmp_path: Path) -> None:
    target = shell.target()
    within = (str(forbidding(tmp_path, "openat2", "ENOSYS")),)
    process = shell.start("run", "look.yaml", "--target", target, within=within)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "has no openat2" in err
    assert not list(target.iterdir())


@pytest.mark.parametrize("confinement", ["as-possible", "guarded"])
def test_access_needs_no_call_of_linux_5_8(
    shell: Shell, tmp_path: Path, confinement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", confinement)
    (shell.home / "asks.yaml").write_text(ASKS)
    (shell.home / "log").write_text(LOG)
    assert shell.run("import", "log", "-o", "trace", "--root", "/r").code == 0
    within = (str(forbidding(tmp_path, "faccessat2", "ENOSYS")),)
    target = shell.target()
    for words in (("run", "asks.yaml"), ("replay", "trace")):
        process = shell.start(*words, "--target", target, within=within)
        out, err = process.communicate(timeout=60)
        assert process.returncode in {0, 4}, out + err


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_where_the_kernel_cannot_keep_fio_in_its_folder_the_run_says_so(
    shell: Shell, tmp_path: Path
) -> None:
    (shell.home / "own.fio").write_text("[own]\nrw=write\nbs=4k\nsize=64k\n")
    words = ("baseline", "own.fio", "--target", shell.target(), "-o", "run")
    within = (str(forbidding(tmp_path, "landlock_create_ruleset", "ENOSYS")),)
    process = shell.start(*words, within=within)
    out, err = process.communicate(timeout=60)
    assert process.returncode in {0, 4}, err
    assert "Only the checked job file keeps fio in its folder" in " ".join(out.split())
    run = json.loads((shell.home / "run/run.json").read_text())
    assert run["targets"][0]["confinement"] == "checked"
