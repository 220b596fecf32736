"""Plans of format 1 for the bench: files gone through in order, or users who mostly think."""

import json
import os
from dataclasses import dataclass
from typing import Any

from replayer import _native as engine

BLOCK = 4096
CREATED = os.O_WRONLY | os.O_CREAT | os.O_EXCL
FIO_CREATED = os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Work:
    """A kind of work on every file of a set.

    Attributes:
        name: As the yardstick knows it.
        passes: How often all files are gone through, so that a measurement lasts long enough.
        steps: The timed steps of one transaction, on slot 0.
    """

    name: str
    passes: int
    steps: tuple[dict[str, Any], ...]


def call(op: str, **operands: object) -> dict[str, Any]:
    return {"do": "call", "op": op, "expect": ["ok"], **operands}


def const(number: int) -> dict[str, int]:
    return {"const": number}


WRITE = call("write", file=0, total=const(BLOCK), block=const(BLOCK))
READ = call("read", file=0, size=const(BLOCK), until_end=False, check_size=False)
CLOSE = call("close", file=0)
CREATE = Work("create", 1, (call("open", path=0, flags=CREATED, mode=0o644), WRITE, CLOSE))
FIO_CREATE = Work("fio-create", 1, (call("open", path=0, flags=FIO_CREATED, mode=0o644), CLOSE))
STAT = Work("stat", 8, (call("stat", path=0),))
READ_BACK = Work("read", 3, (call("open", path=0, flags=os.O_RDONLY, mode=0), READ, CLOSE))
UNLINK = Work("unlink", 1, (call("unlink", path=0),))


def files_plan(work: Work, users: int, files: int, batch: int = 1) -> engine.Plan:
    """Compile the plan in which each user does the work on each of its own files, in order.

    Args:
        work: What to do with a file.
        users: How many users.
        files: How many files each of them has: a multiple of ``batch``.
        batch: Files a transaction.
    """
    entries = [[f"f{n:06d}", "f", BLOCK, 0o644, ""] for n in range(files)]
    steps = [{"do": "bind", "slot": 0, "pick": 0}, *work.steps]
    if batch > 1:
        steps = [{"do": "repeat", "times": const(batch), "steps": steps}]
    stop = {"duration_ns": None, "transactions": files * work.passes // batch}
    return _plan(users, entries, steps, {"stop": stop})


def thinking_plan(users: int, think_ns: tuple[int, int]) -> engine.Plan:
    """Compile the plan of users who stat one of 100 files and then think for a while."""
    entries = [[f"f{n:06d}", "f", BLOCK, 0o644, ""] for n in range(100)]
    steps = [{"do": "bind", "slot": 0, "pick": 0}, *STAT.steps]
    pace = {"kind": "closed", "think": {"uniform": list(think_ns)}}
    return _plan(users, entries, steps, {"pace": pace, "shared": True})


def _plan(users: int, entries: list[Any], steps: list[Any], changes: dict[str, Any]) -> engine.Plan:
    shared = changes.pop("shared", False)
    document = {
        "format": 1,
        "name": "bench",
        "seed": 1,
        "users": users,
        "written": "random",
        "pool_bytes": 65536,
        "tables": [],
        "datasets": [
            {
                "name": "files",
                "directory": "files",
                "laid_out": shared,
                "scope": "shared" if shared else "user",
                "content": "random",
                "entries": entries,
            }
        ],
        "pickers": [{"dataset": 0, "types": "f", "kind": "sequential"}],
        "transactions": [{"name": "work", "steps": steps}],
        "mix": [1],
        "pace": {"kind": "closed", "think": const(0)},
        "stop": {"duration_ns": None, "transactions": None},
        "warm_up_ns": 0,
    }
    return engine.Plan(json.dumps(document | changes).encode())
