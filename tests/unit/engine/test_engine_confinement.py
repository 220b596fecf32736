"""Nothing outside of a run's folder can be reached, by either confinement."""

import os
from pathlib import Path
from typing import Any

import pytest

from replayer._native import Sandbox, confinement
from tests.unit.engine.drafts import Drafts, Run


@pytest.fixture(params=["as-possible", "guarded"])
def _mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", request.param)


def test_the_fallback_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", "guarded")
    assert confinement() == "guarded"


def attacks(drafts: Drafts) -> list[dict[str, Any]]:
    """Ops through links that lead outside, each of which must fail."""
    c, call = drafts.const, drafts.call
    steps: list[dict[str, Any]] = []
    for link in ("absolute", "relative"):
        steps += [
            drafts.name(0, link),
            drafts.name(1, link, "/secret"),
            drafts.name(2, link, "/made"),
            drafts.name(3, "mine"),
            drafts.name(4, link, "-file"),
        ]
        refused = [
            call("open", path=1, flags=0, mode=None),
            call("open", path=2, flags=0o101, mode=0o644),
            call("open", path=4, flags=0o1001, mode=None),
            call("open", path=0, flags=0o200000, mode=None),
            call("stat", path=1),
            call("stat", path=4),
            call("lstat", path=1),
            call("access", path=4, mode=4),
            call("mkdir", path=2, mode=0o755),
            call("rmdir", path=2),
            call("unlink", path=1),
            call("rename", path=3, to=2, flags=0),
            call("rename", path=1, to=3, flags=0),
            call("link", path=3, to=2),
            call("link", path=1, to=3),
            call("symlink", path=2, target="x"),
            call("readlink", path=1),
            call("truncate", path=4, size=c(0)),
            call("chmod", path=4, mode=0o777),
            call("chown", path=1, uid=1, gid=1),
            call("utimens", path=1, mtime_ns=c(0)),
            call("setxattr", path=4, name="user.x", size=c(3)),
            call("getxattr", path=4, name="user.y"),
            call("listxattr", path=4),
            call("removexattr", path=4, name="user.y"),
        ]
        steps += [step | {"expect": ["any"]} for step in refused]
    return steps


@pytest.mark.usefixtures("_mode")
def test_links_that_lead_outside_lead_nowhere(
    drafts: Drafts, run: Run, sandbox: Sandbox, tmp_path: Path
) -> None:
    outside, files = tmp_path / "outside", Path(sandbox.path, "files")
    for folder in (outside, files):
        folder.mkdir()
    secret = outside / "secret"
    secret.write_text("secret")
    os.setxattr(secret, "user.y", b"1")
    (files / "mine").write_text("mine")
    (files / "absolute").symlink_to(outside)
    (files / "relative").symlink_to("../../outside")
    (files / "absolute-file").symlink_to(secret)
    (files / "relative-file").symlink_to("../../outside/secret")
    before = secret.stat()
    rows = run(drafts.plan(attacks(drafts)))
    assert [key for key in rows if key[1] == "ok" and not key[0].startswith("transaction")] == []
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert secret.read_text() == "secret"
    assert secret.stat().st_mode == before.st_mode
    assert secret.stat().st_mtime_ns == before.st_mtime_ns
    assert os.listxattr(secret) == ["user.y"]


@pytest.mark.usefixtures("_mode")
def test_links_inside_are_followed(drafts: Drafts, run: Run, sandbox: Sandbox) -> None:
    files = Path(sandbox.path, "files")
    (files / "real").mkdir(parents=True)
    (files / "real/file").write_text("x")
    (files / "link").symlink_to("real")
    steps = [
        drafts.name(0, "link/file"),
        drafts.call("stat", path=0),
        drafts.call("open", path=0, flags=0, mode=None),
        drafts.call("chmod", path=0, mode=0o600),
        drafts.call("unlink", path=0),
    ]
    rows = run(drafts.plan(steps))
    assert {key[1] for key in rows} == {"ok"}
    assert list((files / "real").iterdir()) == []


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "a/../../../x", ""])
def test_links_to_the_outside_are_not_made(
    drafts: Drafts, run: Run, sandbox: Sandbox, target: str
) -> None:
    Path(sandbox.path, "files").mkdir()
    steps = [drafts.name(0, "link"), drafts.call("symlink", path=0, target=target)]
    rows = run(drafts.plan(steps))
    assert rows["symlink", "EINVAL", False].histogram.count == 1
    assert list(Path(sandbox.path, "files").iterdir()) == []


@pytest.mark.parametrize("part", ["..", "../x", "a//b", "/etc", "a/./b", "a/", "x" * 256])
def test_composed_paths_are_checked(drafts: Drafts, run: Run, part: str) -> None:
    steps = [drafts.name(0, part), drafts.call("mkdir", path=0, mode=0o755)]
    rows = run(drafts.plan(steps))
    assert rows["mkdir", "EINVAL", False].histogram.count == 1


def test_a_sandbox_is_a_marked_folder(tmp_path: Path) -> None:
    sandbox = Sandbox.create(str(tmp_path), "one", '{"note": 1}')
    assert Path(sandbox.path) == tmp_path / "replayer-one"
    assert Path(sandbox.path).stat().st_mode & 0o7777 == 0o700
    assert Sandbox.open(sandbox.path).note == '{"note": 1}'
    with pytest.raises(FileExistsError):
        Sandbox.create(str(tmp_path), "one", "{}")
    with pytest.raises(FileNotFoundError):
        Sandbox.create(str(tmp_path / "missing"), "one", "{}")
    with pytest.raises(ValueError, match="run must be"):
        Sandbox.create(str(tmp_path), "../one", "{}")


def test_foreign_folders_are_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with pytest.raises(ValueError, match="no marker"):
        Sandbox.open(str(foreign))
    (foreign / ".replayer-run").mkdir()
    with pytest.raises(ValueError, match="no marker"):
        Sandbox.open(str(foreign))
    (tmp_path / "link").symlink_to(foreign)
    with pytest.raises(OSError, match="symbolic links"):
        Sandbox.open(str(tmp_path / "link"))
    with pytest.raises(FileNotFoundError):
        Sandbox.open(str(tmp_path / "missing"))
