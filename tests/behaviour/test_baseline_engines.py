"""What ``replayer baseline`` makes of what only some engines and options of fio say."""

import shutil

import pytest

from tests.behaviour.shell import Shell
from tests.behaviour.test_baseline import baseline, ops

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


@pytest.mark.parametrize(
    ("engine", "op"), [("filecreate", "open"), ("filestat", "stat"), ("filedelete", "unlink")]
)
def test_jobs_of_one_call_a_file_are_told_by_that_call(shell: Shell, engine: str, op: str) -> None:
    text = f"[a]\nioengine={engine}\nnrfiles=50\nfilesize=4k\nopenfiles=1\n"
    limit = ("--threshold", f"a/{op}.p95 < 1s")
    done = baseline(shell, text, "--target", shell.target(), "--json", *limit)
    assert done.code in {0, 4}, done.err
    assert ops(done.document()) == {("a", op): (50, 0)}
    assert [each["outcome"] for each in done.document()["verdict"]["judgements"]] == ["pass"] * 2


def test_a_limit_of_the_jobs_own_is_no_server_that_does_not_answer(shell: Shell) -> None:
    text = "[a]\nrw=write\nsize=1m\nsync=1\nmax_latency=1us\n"
    done = baseline(shell, text, "--target", shell.target(), "--json")
    assert done.code == 1, done.err
    (transaction,) = done.document()["summary"]["targets"][0]["overall"]["transactions"]
    outcomes = [each["outcome"] for each in transaction["ops"][0]["outcomes"]]
    assert outcomes == ["LATE", "ok"]
