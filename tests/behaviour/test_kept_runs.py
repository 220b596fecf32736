"""A run is kept, and later ones are held against it: a slower mount fails, other work may not."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.behaviour.shell import Shell

SAVES = """\
name: saves
about: Files that are written and synced, one after the other.
users: {count: 1, think_time: 3ms}
duration: 9s
datasets:
  work: {directory: true, per: user}
mix: {save: 1}
transactions:
  save:
    - open: {in: work, name: "note_{seq}", flags: [create, wronly]}
    - write: {size: 4KiB}
    - fsync
    - close
"""


@pytest.fixture
def memory() -> Iterator[Path]:
    path = Path(mkdtemp(prefix="replayer-test-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


def make_quiet(run: Path) -> None:
    """Have a run say that nobody else used the CPUs: other tests run beside this one."""
    told = json.loads((run / "run.json").read_text())
    told["health"] |= {"run_queue_delay_ns": 0, "client_cpu_share": 0.1}
    (run / "run.json").write_text(json.dumps(told))


def test_a_run_on_a_slower_mount_fails_against_the_kept_one(shell: Shell, memory: Path) -> None:
    (shell.home / "saves.yaml").write_text(SAVES)
    fast, slow = f"--target=site={memory}", f"--target=site={shell.target()}"
    shell.run("run", "saves.yaml", fast, "--rounds", "6", "--seed", "1")
    (kept,) = [path for path in (shell.home / "replayer-runs").iterdir() if path.is_dir()]
    make_quiet(kept)
    assert shell.run("runs", "keep", "v1", "latest").out == f"v1 is {kept.name}\n"

    words = ("--baseline", "v1", "--tolerance", "50%", "--rounds", "6", "--seed", "1", "--json")
    done = shell.run("run", "saves.yaml", slow, *words)
    document = done.document()
    judged = [each for each in document["verdict"]["judgements"] if each["source"] != "default"]
    assert [each["threshold"] for each in judged] == [
        "save.p50 <= 150% of v1",
        "save.p95 <= 150% of v1",
    ]
    assert judged[0]["measured"] > 1.5
    outcomes = {each["outcome"] for each in judged}
    assert "pass" not in outcomes  # undecided only where other tests keep the machine busy
    assert done.code == (1 if "fail" in outcomes else 4)
    again = shell.run("report", "latest", "--json").document()
    assert again["verdict"] == document["verdict"], "the folder alone tells as much"
    assert "save.p50 <= 150% of v1" in shell.run("report", "latest").out


REFUSED = (
    (["--baseline", "v1", "-u", "3"], "ran saves with other work"),
    (["--baseline", "nothing"], "nothing: no run has that name"),
    (["--tolerance", "5%"], "--tolerance needs --baseline"),
    (["--baseline", "v1", "--tolerance", "-5%"], "from 0% to 1000%, such as 15%, got '-5%'"),
)


def test_what_a_run_cannot_be_held_against_is_refused_before_anything_is_made(
    shell: Shell,
) -> None:
    (shell.home / "saves.yaml").write_text(SAVES)
    mount = shell.target()
    target = f"--target=site={mount}"
    shell.run("run", "saves.yaml", target, "-t", "1s", "--seed", "1")
    (kept,) = [path for path in (shell.home / "replayer-runs").iterdir() if path.is_dir()]
    make_quiet(kept)
    shell.run("runs", "keep", "v1", "latest")
    more = ("-t", "1s", "--seed", "1", "--baseline", "v1", "--json", "-o", "held")
    held = shell.run("run", "saves.yaml", target, *more)
    assert held.document()["load"]["rounds"] == 3, "one round hardly shows how much rounds differ"
    for words, said in REFUSED:
        done = shell.run("run", "saves.yaml", target, "--seed", "1", *words)
        assert done.code == 2, words
        assert said in done.err
    assert list(mount.iterdir()) == []
    assert [path for path in (shell.home / "replayer-runs").iterdir() if path.is_dir()] == [kept]
