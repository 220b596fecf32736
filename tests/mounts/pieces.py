"""What is played on every mount: each shipped scenario in a short form, and every shipped trace."""

from collections.abc import Sequence
from dataclasses import dataclass

from replayer.trace.shipped import shipped_traces

__all__ = ["PIECES", "Piece"]


@dataclass(frozen=True)
class Piece:
    """Something to play to its end.

    Attributes:
        name: As it is called in tests.
        words: The command, without targets.
        quick: Whether it is played everywhere; the others with all mounts only.
        exact: Whether every mount must end with the same files, and the same outcomes of calls.
    """

    name: str
    words: tuple[str, ...]
    quick: bool = True
    exact: bool = True


def _short(name: str, *settings: str, users: int = 1, rounds: int = 2) -> tuple[str, ...]:
    """Return a scenario with so many transactions for each user, without pauses."""
    # Rounds end it: a duration that a busy machine reaches would leave some of them out.
    changes = (f"iterations={rounds}", "duration=300s", *settings)
    sets = [word for change in changes for word in ("--set", change)]
    return ("run", name, "-u", str(users), "--seed", "7", *sets)


def _scenario(
    name: str, *settings: str, users: int = 1, rounds: int = 2, quick: bool = True
) -> Piece:
    return Piece(name, _short(name, *settings, users=users, rounds=rounds), quick)


def _of_two_clients(name: str, *, users: int = 2, rounds: int = 1) -> Piece:
    """Return a scenario whose outcomes depend on when one client sees what another does."""
    words = _short(name, users=users, rounds=rounds)
    return Piece(name, words, quick=False, exact=False)


SCENARIOS: Sequence[Piece] = (
    _of_two_clients("close-to-open"),
    _of_two_clients("lock-contention", rounds=20),
    _of_two_clients("visibility", users=8),
    _scenario("docroot-copy", rounds=10, quick=False),
    _scenario("file-server", "files.files=60", rounds=40),
    _scenario("fio-cache", "files.files=1", "files.sizes=4MiB", rounds=1, quick=False),
    _scenario("fio-upload", "transactions.file.1.write.size=4MiB", quick=False),
    _scenario("kernel-build-like", "tree.files=300", rounds=5, quick=False),
    _scenario(
        "kernel-untar",
        "linux={files: 300, sizes: 4KiB, per_directory: 10, depth: 2, layout: false}",
        rounds=1,
        quick=False,
    ),
    _scenario("mail-spool", "spool.files=60", rounds=30),
    _scenario("mdtest-easy", "names.files=60", rounds=1, quick=False),
    _scenario("mdtest-hard", "names.files=60", rounds=1, quick=False),
    _scenario("php-sessions", "sessions.files=50", rounds=30),
    _scenario("rm-rf", "tree.files=200", rounds=1),
    _scenario("small-reads", "files.files=200", rounds=100, quick=False),
    _scenario("stream-burst", "transactions.stream.1.write.size=8MiB", rounds=1, quick=False),
    _scenario("sync-async-writes", "files.files=2", "files.sizes=4MiB", rounds=8, quick=False),
    _scenario("uploads", "sequences.receive.0.write.size=1MiB", rounds=6),
    _scenario("web-server", "files.files=100", rounds=5, quick=False),
    _scenario("wordpress-deploy", "users.think_time=0s", users=2, rounds=1, quick=False),
    _scenario("wordpress-pages", "users.think_time=0s", rounds=20, quick=False),
    _scenario("wordpress-replay", "users.think_time=0s", rounds=5, quick=False),
    _scenario("wordpress-update", "users.think_time=0s", rounds=3, quick=False),
    _scenario("wordpress-uploads", "users.think_time=0s", rounds=3, quick=False),
    _scenario("write-100mb-files", "transactions.write_file.1.write.size=8MB", quick=False),
    _scenario("write-1mb-files", rounds=5, quick=False),
    _scenario("write-size-sweep", rounds=10, quick=False),
)

VERIFIED: Sequence[Piece] = tuple(
    Piece(f"{name}-verified", (*_short(name, *settings, rounds=rounds), "--verify"), quick=False)
    for name, settings, rounds in (
        ("uploads", ("sequences.receive.0.write.size=1MiB",), 6),
        ("write-1mb-files", (), 5),
        ("small-reads", ("files.files=200",), 100),
        ("file-server", ("files.files=60",), 40),
    )
)
"""Reads that do not hold what was written are errors of theirs: none is expected anywhere."""

QUICK_TRACES = frozenset({"php/sessions", "wordpress/upload", "wordpress/plugin-delete"})
"""Those that write, rename, lock and remove the most for their length."""

TRACES: Sequence[Piece] = tuple(
    Piece(name, ("replay", name, "--pace", "asap"), quick=name in QUICK_TRACES)
    for name in shipped_traces()
)

PIECES = (*SCENARIOS, *VERIFIED, *TRACES)
