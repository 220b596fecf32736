"""A transaction's way through its steps. What an op does: ops.py; what a user holds: user.py."""

from typing import Any

from tests.oracle.ops import run_call
from tests.oracle.user import Step, TransactionFailedError, UnmetError, User


def run_transaction(user: User) -> tuple[str, bool]:
    """Run a user's next transaction and return its name and whether it failed."""
    chosen = user.begin()
    failed = _fails(user, chosen["steps"])
    for number in _open_slots(user):
        failed |= _fails(user, [_closing(number)])
    user.transactions += 1
    return chosen["name"], failed


def _open_slots(user: User) -> list[int]:
    return [number for number, slot in enumerate(user.slots) if slot.descriptor is not None]


def _closing(number: int) -> Step:
    return {"do": "call", "op": "close", "file": number, "expect": ["ok"]}


def _fails(user: User, steps: list[Step]) -> bool:
    try:
        run_steps(user, steps)
    except TransactionFailedError:
        return True
    return False


def run_steps(user: User, steps: list[Step]) -> None:
    """Run steps in order."""
    for step in steps:
        KINDS[step["do"]](user, step)


def _bind(user: User, step: Step) -> None:
    user.slots[step["slot"]].binding = user.bound(step)


def _repeat(user: User, step: Step) -> None:
    for _ in range(user.drawn(step["times"])):
        run_steps(user, step["steps"])


def _choose(user: User, step: Step) -> None:
    weights = [weight for weight, _steps in step["branches"]]
    _weight, steps = step["branches"][user.stream.weighted(weights)]
    run_steps(user, steps)


def _each(user: User, step: Step) -> None:
    dataset: dict[str, Any] = user.document["datasets"][step["dataset"]]
    entries = dataset["entries"]
    for entry in reversed(entries) if step["reverse"] else entries:
        user.slots[step["slot"]].binding = user.entry_binding(dataset, entry)
        run_steps(user, step[entry[1]])


def _pipeline(user: User, step: Step) -> None:
    """Do one stage after the other: each has done with every entry before the next comes to it."""
    with user.pipeline() as begin_stage:
        for number, stage in enumerate(step["steps"]):
            begin_stage(number)
            failed = _fails(user, [stage])
            for slot in _open_slots(user):
                failed |= _fails(user, [_closing(slot)])
            if failed:
                raise TransactionFailedError


def _think(user: User, step: Step) -> None:
    user.drawn(step["time"])  # nobody waits here


def _signal(user: User, step: Step) -> None:
    signal = step["signal"]
    user.signals[signal] = max(user.signals.get(signal, -1), user.transactions)


def _await(user: User, step: Step) -> None:
    user.drawn(step["limit"])  # nobody waits here
    given = user.signals.get(step["signal"], -1) >= user.transactions
    user.waited(step, "ok" if given else "UNMET")


def _until(user: User, step: Step) -> None:
    """Look once: nothing changes while nobody else works."""
    user.drawn(step["every"])
    user.drawn(step["limit"])
    state, before = user.stream.state, _open_slots(user)
    user.looking, outcome = True, "ok"
    try:
        run_steps(user, step["steps"])
    except UnmetError:
        outcome = "UNMET"
    finally:
        user.looking = False
    if outcome == "UNMET":
        opened = [number for number in _open_slots(user) if number not in before]
        run_steps(user, [_closing(number) for number in opened])
    user.stream.state = state
    user.waited(step, outcome)


KINDS = {
    "await": _await,
    "bind": _bind,
    "call": run_call,
    "choose": _choose,
    "each": _each,
    "pipeline": _pipeline,
    "repeat": _repeat,
    "signal": _signal,
    "think": _think,
    "until": _until,
}
