"""UntracedRuns: real commands, whose times are known."""

import os
import sys
from pathlib import Path

import pytest

from replayer.capture.order import Verbosity
from replayer.capture.progress import make_progress
from replayer.capture.untraced_runs import Preparation, UntracedRuns, on_one_cpu, run_untraced
from replayer.errors import ReplayerError

QUIET = make_progress(Verbosity.QUIET, sys.stderr)
COMPUTES = """
import time
end = time.process_time() + 0.3
while time.process_time() < end:
    sum(range(10_000))
"""
NOTHING = Preparation(None, [])
WAITS = "import time\ntime.sleep(0.3)"


def found(user_ns: int, system_ns: int, elapsed_ns: int = 1000) -> UntracedRuns:
    return UntracedRuns(elapsed_ns=(elapsed_ns,), user_ns=(user_ns,), system_ns=(system_ns,))


def test_who_computes_and_who_waits_is_told_apart() -> None:
    computes, waits = (
        run_untraced((sys.executable, "-S", "-c", program), NOTHING, 2, QUIET)
        for program in (COMPUTES, WAITS)
    )
    assert (computes.count, waits.count) == (2, 2)
    assert computes.computed_ns > 10 * waits.computed_ns
    assert waits.waited_ns > 0.2e9
    assert min(waits.elapsed_ns) > 0.3e9


def test_each_run_begins_as_prepared(tmp_path: Path) -> None:
    folder, log = tmp_path / "new", tmp_path / "log"
    shell = f"rm -rf {folder} && echo prepared >> {log}"
    run_untraced(("mkdir", str(folder)), Preparation(shell, [tmp_path]), 3, QUIET)
    assert log.read_text() == "prepared\n" * 4  # the recording begins so, too
    assert not folder.exists()


def test_a_preparation_may_remove_the_root_that_the_command_makes(tmp_path: Path) -> None:
    root = tmp_path / "new" / "site"
    preparation = Preparation(f"rm -rf {root.parent}", [root])
    assert run_untraced(("mkdir", "-p", str(root)), preparation, 2, QUIET).count == 2
    assert not root.exists()


def test_one_that_fails_says_so_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ReplayerError, match="rehearsal 2 of 3 ended with exit status 1: mkdir: "):
        run_untraced(("mkdir", str(tmp_path / "new")), NOTHING, 3, QUIET)
    with pytest.raises(ReplayerError, match=r"--prepare 'exit 3' ended with exit status 3$"):
        run_untraced(("true",), Preparation("exit 3", [tmp_path]), 1, QUIET)
    refusing = tmp_path / "sync"
    refusing.write_text("#!/bin/sh\necho sync: error syncing $3 >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ReplayerError, match=r"sync after --prepare ended with .*: sync: .*gone"):
        run_untraced(
            ("true",), Preparation(f"mkdir {tmp_path}/gone", [tmp_path / "gone"]), 1, QUIET
        )


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("true\n")
    script.chmod(0o755)
    with pytest.raises(ReplayerError, match="script: cannot be executed: Exec format error"):
        run_untraced((str(script),), NOTHING, 1, QUIET)


def test_what_works_on_several_cpus_is_not_bound_to_one() -> None:
    assert found(500, 500).is_alone
    assert not found(1000, 500).is_alone
    assert found(100, 200).waited_ns == 700
    assert found(1000, 500).waited_ns == 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="there is one CPU alone")
def test_one_cpu_is_kept_to_only_meanwhile() -> None:
    before = os.sched_getaffinity(0)
    with on_one_cpu(found(500, 500)) as cpu:
        assert os.sched_getaffinity(0) == {cpu}
    assert os.sched_getaffinity(0) == before
    for rehearsals in (None, found(1000, 500)):
        with on_one_cpu(rehearsals) as cpu:
            assert cpu is None
            assert os.sched_getaffinity(0) == before
