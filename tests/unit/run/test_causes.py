"""Likely causes of divergences are named where the outcomes tell, and nowhere else."""

import pytest

from replayer.measure.replay import Divergence
from replayer.run.replays import Circumstances, likely_cause


def event(op: str, recorded: str, got: str, path: str = "a/b") -> Divergence:
    return Divergence(
        target=0,
        user=0,
        performance=0,
        trace="t",
        row=1,
        thread=0,
        op=op,
        path=path,
        recorded=recorded,
        got=got,
        result_recorded=None,
        result_got=None,
    )


@pytest.mark.parametrize(
    ("op", "recorded", "got", "users", "says"),
    [
        ("open", "ok", "EACCES", 1, "replay as root"),
        ("open", "EACCES", "ok", 1, "had no permission for it"),
        ("write", "ok", "ENOSPC", 1, "full"),
        ("open", "ok", "EMFILE", 1, "ulimit -n"),
        ("read", "ok", "ESTALE", 1, "mount or its server failed"),
        ("setxattr", "ok", "EOPNOTSUPP", 1, "does not support"),
        ("open", "ok", "EINVAL", 1, "does not support"),
        ("read", "ok", "EBADF", 1, "was not open"),
        ("open", "ok", "ENAMETOOLONG", 1, "suffix"),
        ("unlink", "ok", "ENOENT", 8, "several users share"),
        ("unlink", "ok", "ENOENT", 8, "with -u 1"),
        ("lock", "ok", "EAGAIN", 8, "another user locked"),
        ("lock", "ok", "EAGAIN", 1, ""),
        ("read", "ok", "EAGAIN", 8, ""),
        ("unlink", "ok", "ENOENT", 1, "untraced"),
        ("read", "ok", "less", 1, "differs in size"),
        ("fsync", "ok", "more", 1, ""),
        ("read", "ok", "EINTR", 1, ""),
    ],
)
def test_a_cause_is_told_in_plain_words(
    op: str, recorded: str, got: str, users: int, says: str
) -> None:
    cause = likely_cause(event(op, recorded, got), Circumstances(users, requests=False))
    assert says in cause if says else cause == ""


def test_a_users_own_name_is_shared_with_nobody() -> None:
    own = event("stat", "ENOENT", "ok", "t/sess_1~3.17/a")
    assert "untraced" not in likely_cause(own, Circumstances(8, requests=False))
    assert "several users" not in likely_cause(own, Circumstances(8, requests=False))
    assert "another request" in likely_cause(own, Circumstances(8, requests=True))
    assert "several users" in likely_cause(
        event("stat", "ENOENT", "ok"), Circumstances(8, requests=True)
    )


def test_what_one_user_would_find_is_promised_of_whole_traces_alone() -> None:
    shared = event("stat", "ENOENT", "ok")
    assert "with -u 1" in likely_cause(shared, Circumstances(8, requests=False))
    assert "with -u 1" not in likely_cause(shared, Circumstances(8, requests=True))
