"""Run folders as an engine writes them, made from samples by an encoder of our own.

It is written from the description of HdrHistogram and shares nothing with the decoder under test.
"""

import base64
import json
import math
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from replayer.measure.facts import Limits, MachineFacts, MountFacts, SpaceFacts
from replayer.measure.guarantee import guarantee_of
from replayer.measure.health import Health, LoadFacts
from replayer.measure.run import CacheFacts, PlanFacts, Run, Target, this_process

FINGERPRINT = "0123456789abcdef" * 4
HEADER = (
    "start_s,end_s,target,round,phase,users,transaction,op,outcome,expected,"
    "count,bytes,mean_ns,p50_ns,p95_ns,p99_ns,max_ns\n"
)


def bucket(value: int) -> int:
    """The index of a value: 2,048 steps of 1 ns, then 1,024 for each doubling."""
    shift = max(value.bit_length() - 11, 0)
    return (shift << 10) + (value >> shift)


def zigzag(number: int) -> bytes:
    """A signed number in ZigZag LEB128."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def encode(samples: Iterable[int]) -> bytes:
    """A compressed V2 histogram of nanoseconds."""
    counts: dict[int, int] = {}
    for sample in samples:
        counts[bucket(sample)] = counts.get(bucket(sample), 0) + 1
    payload, place = b"", 0
    for index in sorted(counts):
        payload += zigzag(place - index) if index > place else b""
        payload += zigzag(counts[index])
        place = index + 1
    head = struct.pack(">iiiiqqd", 0x1C849313, len(payload), 0, 3, 1, 86_400_000_000_000, 1.0)
    packed = zlib.compress(head + payload)
    return struct.pack(">ii", 0x1C849314, len(packed)) + packed


def figures(samples: Sequence[int]) -> str:
    """The figures of a row of the timeline: mean, p50, p95, p99 and maximum."""
    if not samples:
        return "0,0,0,0,0"
    ranked = sorted(samples)
    places = [max(math.ceil(share * len(ranked)), 1) - 1 for share in (0.5, 0.95, 0.99, 1)]
    return ",".join([str(sum(ranked) / len(ranked)), *(str(ranked[place]) for place in places)])


@dataclass
class RunWriter:
    """Writes a run folder: lines of histograms and timeline as they come, run.json when asked."""

    path: Path
    lines: list[str] = field(default_factory=lambda: ["#[BaseTime: 1790000000.000]\n"])
    rows: list[str] = field(default_factory=lambda: [HEADER])

    def record(
        self, tag: str, samples: Sequence[int], span: tuple[float, float] = (0, 1), moved: int = 0
    ) -> None:
        """Add one key of one interval; the tag is that of the log."""
        start, end = span
        target, number, phase, rest = tag.split("/", 3)
        transaction, op, outcome, expected = rest.rsplit("/", 3)
        tag = "/".join((target, number, phase, quote(transaction, safe=""), op, outcome, expected))
        blob = base64.b64encode(encode(samples)).decode()
        top = max(samples, default=0) / 1e6
        self.lines.append(f"Tag={tag},{start:.3f},{end - start:.3f},{top:.3f},{blob}\n")
        flag = "true" if expected == "expected" else "false"
        self.rows.append(
            f'{start},{end},{target},{number},{phase},4,"{transaction}",{op},{outcome},{flag},'
            f"{len(samples)},{moved},{figures(samples)}\n"
        )

    def transaction(
        self,
        name: str,
        samples: Sequence[int],
        place: str = "0/0",
        span: tuple[float, float] = (0, 1),
    ) -> None:
        """Add successful transactions that began when they intended to."""
        for op, values in (
            ("transaction", samples),
            ("transaction.service", samples),
            ("transaction.lag", [0] * len(samples)),
        ):
            self.record(f"{place}/measured/{name}/{op}/ok/expected", values, span)

    def call(self, name: str, place: str = "0/0", span: tuple[float, float] = (0, 1)) -> None:
        """Add a file call that a transaction made."""
        self.record(f"{place}/measured/{name}/stat/ok/expected", [1000], span)

    def write(self, run: Run, events: Sequence[Mapping[str, Any]] = ()) -> Path:
        """Write everything and return the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "run.json").write_text(run.model_dump_json())
        (self.path / "histograms.hlog").write_text("".join(self.lines))
        (self.path / "timeline.csv").write_text("".join(self.rows))
        lines = (json.dumps(event) + "\n" for event in events)
        (self.path / "events.jsonl").write_text("".join(lines))
        return self.path


def make_mount(**changes: object) -> MountFacts:
    """A local ext4."""
    facts: dict[str, Any] = {
        "path": "/srv/data",
        "mount_point": "/srv",
        "filesystem": "ext4",
        "source": "/dev/vda",
        "options": ("rw", "relatime"),
        "super_options": ("rw",),
        "device": "254:0",
        "root": "/",
        "space": SpaceFacts(
            bytes_total=10**12,
            bytes_free=4 * 10**11,
            inodes_total=10**6,
            inodes_free=10**6,
            block_bytes=4096,
            read_only=False,
        ),
    }
    return MountFacts.model_validate({**facts, **changes})


def make_target(index: int = 0, name: str = "local", **changes: object) -> Target:
    """A target on one mount."""
    mount = make_mount(**changes)
    return Target(
        index=index,
        name=name,
        confinement="jailed",
        mounts=(mount,),
        guarantee=guarantee_of(mount),
    )


def make_health(**changes: object) -> Health:
    """A harness at rest."""
    facts: dict[str, Any] = {
        "client_cpu_share": 0.2,
        "run_queue_delay_ns": 10,
        "in_call_ns": 1000,
        "overhead_ns": 61.0,
        "users_given_up": 0,
    }
    return Health.model_validate({**facts, **changes})


def make_load(**changes: object) -> LoadFacts:
    """Four users in a closed loop."""
    facts: dict[str, Any] = {
        "users": 4,
        "loop": "closed",
        "pace": "think time 0 s to 2 s",
        "rounds": 1,
        "duration_s": 10.0,
        "transactions_per_user": None,
        "warm_up_s": 0.0,
        "ramp_up_s": 0.0,
    }
    return LoadFacts.model_validate({**facts, **changes})


def make_machine() -> MachineFacts:
    """A client of two CPUs; fixed, so that goldens do not depend on where they are made."""
    return MachineFacts(
        host="0123456789ab",
        kernel="Linux 6.18.0",
        architecture="x86_64",
        cpus=2,
        cpu_list="0-1",
        memory_bytes=24_000_000_000,
        container=False,
        python="CPython 3.11.9",
        replayer="0.1.0",
        limits=Limits(open_files=1024, processes=None, file_bytes=None, address_space_bytes=None),
    )


def make_run(**changes: object) -> Run:
    """A finished run on one target."""
    facts: dict[str, Any] = {
        "id": "20261121T024839-ab12",
        "status": "finished",
        "command": ("run", "scenarios/pages.yaml"),
        "began": "2026-11-21T02:48:39Z",
        "ended": "2026-11-21T02:49:39Z",
        "process": this_process(),
        "machine": make_machine(),
        "plan": PlanFacts(
            name="pages", fingerprint=FINGERPRINT, seed=1, scenario="scenarios/pages.yaml"
        ),
        "load": make_load(),
        "cache": CacheFacts(asked="as-is", procedure="left as it was"),
        "targets": (make_target(),),
        "health": make_health(),
    }
    return Run.model_validate({**facts, **changes})
