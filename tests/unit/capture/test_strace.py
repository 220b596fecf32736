"""strace's flags, its version, and what a refusal is explained by."""

from pathlib import Path

import pytest

from replayer.capture.refusal import explain_refusal
from replayer.capture.strace import Strace, attach_words, find_strace, launch_words, try_strace


def test_the_filter_is_for_commands_alone() -> None:
    strace = Strace("/bin/strace", (6, 1), ("--seccomp-bpf",))
    launched = launch_words(strace, Path("/t/log"), ["ls", "-l"])
    assert "--seccomp-bpf" in launched
    assert launched[-5:] == ["-o", "/t/log", "--", "ls", "-l"]
    attached = attach_words(strace, Path("/t/log"), [1, 2])
    assert "--seccomp-bpf" not in attached
    assert attached[-4:] == ["-p", "1", "-p", "2"]


def test_the_strace_of_this_machine_takes_all_flags(tmp_path: Path) -> None:
    strace = try_strace(find_strace(), tmp_path)
    assert strace.version >= (5, 15)
    assert list(tmp_path.iterdir()) == []


def test_a_strace_without_the_filter_is_used_without_it(tmp_path: Path) -> None:
    found = find_strace()
    assert try_strace(Strace(found.path, found.version, ()), tmp_path).launch_flags == ()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("strace: attach: ptrace(PTRACE_SEIZE, 1): No such process", "could not attach"),
        ("strace: PTRACE_TRACEME: Operation not permitted", "cannot trace here"),
        ("strace: ptrace(PTRACE_TRACEME, ...): Function not implemented", "cannot trace here"),
        ("strace: invalid system call 'x'", "strace failed"),
        ("", "exited without a message"),
    ],
)
def test_a_refusal_names_what_strace_said_and_a_way_out(said: str, expected: str) -> None:
    error = explain_refusal(said)
    assert expected in str(error)
    assert error.hint
    assert error.exit_code == 3
