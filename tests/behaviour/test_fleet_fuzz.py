"""Messages that nobody can read, really sent to a master: it drops them and goes on."""

import random
import re
import signal
import time
from collections.abc import Iterator, Mapping
from itertools import islice

import msgpack  # type: ignore[import-untyped]
import pytest
import zmq

from replayer.cluster import wire
from replayer.measure.record import RunRecord, load_run
from tests.behaviour.parts import COUNTED, Meeting, counts, wait_for, workers
from tests.behaviour.shell import Process, Shell

SEED = 28
BEFORE, MEANWHILE, STRANGE = 3_000, 9_000, 2_000
"""Messages while the master waits for workers, while they are measured, and of strangers then."""
SENDERS = (*(f"fuzz-{number}".encode() for number in range(7)), b"\xff\xfe", b"a b\n")
JUNK: tuple[object, ...] = ({"?": [1]}, [[{}]], b"\xc1", -7.5, float("nan"))
OTHERS: tuple[object, ...] = ("somebody", None, 7, [], {}, [{}])
KINDS: tuple[object, ...] = (None, 7, [], {"a": 1}, b"stats", "", "unheard_of")
RAW = (
    *(
        b"",
        b"\x00",
        b"\xc1",
        b"\x93",
        b"\xdf\xff\xff\xff\xff",
        b"\x91" * 3000,
        b"\xa4\xff\xfe\xfd\xfc",
    ),
    *map(msgpack.dumps, ([], {"a": 1}, [1, 2], ["stats", None], [1, 2, 3, 4], 7, "hello", None)),
    msgpack.dumps({"__datetime__": True, "as_str": "never"}),
    msgpack.dumps({"__ObjectId__": True, "as_str": "1"}),
)
ENTRY: Mapping[str, object] = {
    "name": "look",
    "method": "FILE",
    "last_request_timestamp": None,
    "start_time": 1.5,
    "num_requests": 1,
    "num_none_requests": 0,
    "num_failures": 0,
    "total_response_time": 1,
    "max_response_time": 1,
    "min_response_time": 1,
    "total_content_length": 0,
    "response_times": {1: 1},
    "num_reqs_per_sec": {1: 1},
    "num_fail_per_sec": {},
}
STATE: Mapping[str, object] = {"serial": 1, "running": 1, "busy": 1, "given_up": 0, "hanging": []}
WELL_FORMED: Mapping[str, object] = {
    "client_ready": "2.47.0",
    "exception": {"msg": "no", "traceback": "none"},
    "heartbeat": {"state": "running", "current_cpu_usage": 1.5},
    "locustfile": {"version": "2.47.0"},
    "logs": {"worker_id": "w", "logs": []},
    "spawning_complete": {"user_classes_count": {"FileUser": 1}},
    "stats": {"stats": [ENTRY], "stats_total": ENTRY, "errors": {}, "user_classes_count": {}},
    wire.HELLO: {"protocol": wire.PROTOCOL, "host": "h", "pid": 1, "targets": ["here"]},
    wire.ANSWER: {"ticket": 1, "error": {"message": "no", "exit_code": 3}},
    wire.NEWS: {"state": STATE, "number": 1, "intervals": [], "events": ['{"kind": "slow"}']},
}
REQUIRED = frozenset(
    {
        *("msg", "traceback", "state", "current_cpu_usage", "version", "worker_id", "logs"),
        *("user_classes_count", "stats", "stats_total", "errors", *ENTRY),
        *("protocol", "host", "pid", "targets", "ticket", "message", "exit_code"),
    }
)


def spoiled(value: object, chance: random.Random) -> object:
    """Return something of the same form, but for one place that nothing optional is at."""
    if isinstance(value, Mapping) and value and chance.random() < 0.9:
        at = chance.choice(list(value))
        if chance.random() < 0.3 and at in REQUIRED:
            return {name: each for name, each in value.items() if name != at}
        return {**value, at: spoiled(value[at], chance)}
    if isinstance(value, list) and value:
        return [spoiled(value[0], chance), *value[1:]]
    if value is None or isinstance(value, Mapping | list):
        return b"\xc1"
    if isinstance(value, float | int):
        return chance.choice([*JUNK[:3], "one"])
    return chance.choice(JUNK)


def unreadable(chance: random.Random) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield senders and what each sends, without end; nothing of it can be read."""
    while True:
        sender = chance.choice(SENDERS)
        name = sender.decode(errors="replace")
        kind = chance.choice(list(WELL_FORMED))
        match chance.randrange(6):
            case 0:
                yield sender, [chance.choice(RAW)]
            case 1:
                yield sender, [b"\xc1" + chance.randbytes(chance.randrange(40))]
            case 2:
                yield sender, [msgpack.dumps((kind, WELL_FORMED[kind], name)), b"and more"]
            case 3:
                yield sender, [msgpack.dumps((kind, WELL_FORMED[kind], chance.choice(OTHERS)))]
            case 4:
                yield sender, [msgpack.dumps((chance.choice(KINDS), WELL_FORMED[kind], name))]
            case _:
                yield sender, [msgpack.dumps((kind, spoiled(WELL_FORMED[kind], chance), name))]


def noise(chance: random.Random) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield messages of strangers with some bits turned, which may or may not be readable."""
    while True:
        sender = chance.choice(SENDERS[:7])
        kind = chance.choice(list(WELL_FORMED))
        data = bytearray(msgpack.dumps((kind, WELL_FORMED[kind], sender.decode())))
        for _ in range(chance.randrange(3)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        yield sender, [bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])]


@pytest.fixture
def meeting() -> Meeting:
    return Meeting()


@pytest.fixture
def sockets(meeting: Meeting) -> Iterator[Mapping[bytes, zmq.Socket[bytes]]]:
    """Connections to a master, by the name that each has."""
    with zmq.Context() as context:
        found = {}
        for name in SENDERS:
            found[name] = context.socket(zmq.DEALER)
            found[name].setsockopt(zmq.IDENTITY, name)
            found[name].setsockopt(zmq.LINGER, 0)
            found[name].setsockopt(zmq.SNDTIMEO, 60_000)
            found[name].connect(f"tcp://{meeting.host}:{meeting.port}")
        yield found
        for each in found.values():
            each.close()


@pytest.fixture
def master(shell: Shell, meeting: Meeting) -> Iterator[Process]:
    """A master that waits for one worker, to lead it for minutes."""
    (shell.home / "counted.yaml").write_text(COUNTED.replace("iterations: 60", "duration: 5m"))
    words = ("run", "counted.yaml", "--master", "--expect-workers", "1", "-o", "out")
    process = shell.start(*words, "--json", *meeting.of_master)
    yield process
    process.kill()
    if process.stderr is not None and not process.stderr.closed:
        print(process.communicate()[1])  # noqa: T201 - shown where a test fails


def dropped(record: RunRecord) -> int:
    """Return how many messages a run says it could not read."""
    (told,) = (each.message for each in record.run.warnings if "could not be" in each.message)
    match = re.match(r"([0-9,]+) messages to the master could not be read", told)
    assert match is not None, told
    return int(match[1].replace(",", ""))


def test_what_cannot_be_read_is_dropped_counted_and_said_once_and_the_run_goes_on(
    shell: Shell, meeting: Meeting, master: Process, sockets: Mapping[bytes, zmq.Socket[bytes]]
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - no secret
    source, strangers = unreadable(chance), noise(chance)
    for sender, frames in islice(source, BEFORE):
        sockets[sender].send_multipart(frames)
    own = ("run", "counted.yaml", "--target", f"here={shell.target()}", "--quiet", "-o", "part0")
    with workers(shell, meeting, [own]) as (worker,):
        timeline = shell.home / "out" / "timeline.csv"
        wait_for(lambda: timeline.exists() and len(timeline.read_text().splitlines()) > 10)
        for sender, frames in islice(source, MEANWHILE):
            sockets[sender].send_multipart(frames)
        for sender, frames in islice(strangers, STRANGE):
            sockets[sender].send_multipart(frames)
        begun = len(timeline.read_text())
        wait_for(lambda: len(timeline.read_text()) > begun)
        time.sleep(2)
        master.send_signal(signal.SIGINT)
        _, err = master.communicate(timeout=60)
        assert worker.wait(20) == 0
    assert master.returncode == 4, err
    assert "Traceback" not in err
    assert err.count("replayer: a message from ") == 1, err
    record = load_run(shell.home / "out")
    assert record.status == "interrupted"
    assert [client.status for client in record.run.clients] == ["finished"]
    assert BEFORE + MEANWHILE <= dropped(record) <= BEFORE + MEANWHILE + STRANGE
    assert counts(record) == counts(load_run(shell.home / "part0"))
    assert sum(counts(record).values()) > 0
    assert list((shell.home / "mount").iterdir()) == []
