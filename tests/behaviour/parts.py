"""Several processes of one run, and what each of them counted."""

import os
import random
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from replayer._native import Histogram
from replayer.measure.hlog import Key
from replayer.measure.record import RunRecord, load_run
from tests.behaviour.shell import Process, Shell

Buckets = dict[Key, dict[int, int]]

COUNTED = """\
name: counted
about: A fixed number of transactions a user, on shared and on private files.
users: {count: 7, think_time: 1ms}
iterations: 60
datasets:
  files: {files: 40, sizes: 2KiB}
  work: {directory: true, per: user}
mix: {look: 3, save: 1, miss: 1}
transactions:
  look:
    - open: {from: files, pick: {zipf: 1.1}}
    - read: {size: 4KiB}
    - close
  save:
    - open: {in: work, name: "note_{seq}", flags: [create, excl, wronly]}
    - write: {size: 2KiB}
    - close
  miss:
    - stat: {in: work, name: "nothing_{seq}", expect: ENOENT}
"""


def free_port() -> int:
    """Return a port below those that the kernel gives to connections: other tests ask for some."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port


def wait_for(is_so: Callable[[], object], limit_s: float = 150) -> None:
    """Wait until something is so; several processes start slowly on a busy machine."""
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline, f"it has not come to be so within {limit_s:g} s"
        time.sleep(0.05)


@dataclass(frozen=True)
class Meeting:
    """Where master and workers meet: on the loopback, or each worker in a network of its own."""

    host: str = "127.0.0.1"
    port: int = field(default_factory=free_port)
    within: tuple[tuple[str, ...], ...] = ()

    @property
    def of_master(self) -> tuple[str, ...]:
        """What a master is told."""
        return ("--master-bind-host", self.host, "--master-bind-port", str(self.port))


@contextmanager
def workers(
    shell: Shell,
    meeting: Meeting,
    lines: Sequence[Sequence[str | Path]],
    program: tuple[str, ...] = ("-m", "replayer"),
) -> Iterator[list[Process]]:
    """Start workers; those that are left at the end are killed."""
    where = ("--master-host", meeting.host, "--master-port", str(meeting.port))
    places = meeting.within or ((),) * len(lines)
    found = [
        shell.start(*words, "--worker", *where, program=program, within=within)
        for words, within in zip(lines, places, strict=True)
    ]
    try:
        yield found
    finally:
        for process in found:
            if process.poll() is None:
                process.kill()
            if process.stdout is not None and not process.stdout.closed:
                process.communicate(timeout=20)


@contextmanager
def networks(count: int) -> Iterator[Meeting]:
    """Give each worker a network of its own, joined by a bridge; the loopback without root."""
    name = f"rp{os.getpid() % 100_000}"
    if os.geteuid() != 0 or shutil.which("ip") is None:
        yield Meeting()
        return
    try:
        _ip("link", "add", name, "type", "bridge")
        _ip("addr", "add", "10.98.0.1/24", "dev", name)
        _ip("link", "set", name, "up")
        for number in range(count):
            _join(f"{name}-{number}", name, f"10.98.0.{number + 2}/24")
        within = tuple(("ip", "netns", "exec", f"{name}-{number}") for number in range(count))
        yield Meeting("10.98.0.1", within=within)
    finally:
        for number in range(count):
            subprocess.run(
                ["ip", "netns", "del", f"{name}-{number}"], check=False, stderr=subprocess.DEVNULL
            )
        subprocess.run(["ip", "link", "del", name], check=False, stderr=subprocess.DEVNULL)


def _join(namespace: str, bridge: str, address: str) -> None:
    _ip("netns", "add", namespace)
    _ip("link", "add", namespace, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    _ip("link", "set", namespace, "master", bridge)
    _ip("link", "set", namespace, "up")
    _ip("-n", namespace, "addr", "add", address, "dev", "eth0")
    _ip("-n", namespace, "link", "set", "eth0", "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def counts(record: RunRecord) -> Counter[tuple[str, str, str]]:
    """Return how often each op of each transaction ended in each way."""
    found: Counter[tuple[str, str, str]] = Counter()
    for key, histogram in record.log.histograms.items():
        found[key.transaction, key.op, key.outcome] += histogram.count
    return found


def buckets(records: Sequence[RunRecord]) -> Buckets:
    """Return the counts of every bucket of every key, of all records together."""
    keys = {key for record in records for key in record.log.histograms}
    found = {}
    for key in keys:
        parts = [record.log.histograms.get(key) for record in records]
        whole = Histogram.merged([part for part in parts if part is not None])
        found[key] = dict(whole.buckets())
    return found


def parts_of(home: Path) -> list[RunRecord]:
    return [load_run(path) for path in sorted((home / "replayer-runs" / "parts").iterdir())]


@contextmanager
def led(
    shell: Shell, meeting: Meeting, words: Sequence[str], lines: Sequence[Sequence[str]]
) -> Iterator[tuple[Process, list[Process]]]:
    """Start a master with some words, and a worker for each line; all are ended at the end."""
    with workers(shell, meeting, lines) as processes:
        master = shell.start(*words, "--master", *meeting.of_master)
        try:
            yield master, processes
        finally:
            if master.poll() is None:
                master.kill()
            if master.stderr is not None and not master.stderr.closed:
                print(master.communicate(timeout=20)[1])  # noqa: T201 - shown where a test fails
