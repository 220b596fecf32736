"""A compiled plan: one document of plan format 1, its bytes and fingerprint, and what limits it.

The functions at the end say before a run what verifying and the warm-up leave out.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from replayer.measure.units import format_many, format_time_ns
from replayer.trace.facts import TraceFacts

FORMAT = 1


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """Return JSON in canonical form: UTF-8, keys sorted, no white space."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Plan:
    """Everything an engine needs to make the same calls again; immutable by convention.

    ``body`` is the document of plan format 1 as plain values, ``traces`` what its traces are.
    """

    body: Mapping[str, Any] = field(repr=False)
    traces: tuple[TraceFacts, ...] = field(default=(), repr=False, compare=False)

    def document(self) -> bytes:
        """Return the canonical JSON document that an engine reads."""
        return self._document

    @cached_property
    def _document(self) -> bytes:
        return canonical_bytes(self.body)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical document, in hexadecimal."""
        return hashlib.sha256(self._document).hexdigest()

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.body["name"])

    @property
    def seed(self) -> int:
        """What every random draw comes from."""
        return int(self.body["seed"])

    @property
    def users(self) -> int:
        """How many users the plan is made for."""
        return int(self.body["users"])

    @property
    def verifies(self) -> bool:
        """Whether data say whose they are, and reads are checked."""
        return bool(self.body.get("verify", False))

    @property
    def keeps_step(self) -> bool:
        """Whether users wait for signals that others give."""
        looks = (step["since"] for step in self.steps("until"))
        return any(True for _ in self.steps("await")) or any(since is not None for since in looks)

    def steps(self, do: str) -> Iterator[Mapping[str, Any]]:
        """Yield the steps of a kind of all transactions, however deep they lie."""
        for row in self.body["transactions"]:
            yield from steps_of(row["steps"], do)

    def lasting(self, duration_ns: int | None) -> "Plan":
        """Return the same with segments of another length."""
        stop = {**self.body["stop"], "duration_ns": duration_ns}
        return Plan({**self.body, "stop": stop}, self.traces)

    @property
    def duration_ns(self) -> int | None:
        """The measured time of a segment; None when only the number of transactions ends it."""
        found: int | None = self.body["stop"]["duration_ns"]
        return found

    @property
    def transactions_per_user(self) -> int | None:
        """After how many transactions a user stops; None when only the duration ends a segment."""
        found: int | None = self.body["stop"]["transactions"]
        return found

    @property
    def warm_up_ns(self) -> int:
        """Time that is run but not recorded before the measured phase."""
        return int(self.body["warm_up_ns"])

    @property
    def transactions(self) -> tuple[str, ...]:
        """The names of the transactions."""
        return tuple(row["name"] for row in self.body["transactions"])

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets."""
        return tuple(row["name"] for row in self.body["datasets"])


def steps_of(steps: Sequence[Mapping[str, Any]], do: str) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a kind (``FORMAT.md``, "Steps") among steps, however deep they lie."""
    for step in steps:
        if step["do"] == do:
            yield step
        for _, inner in step.get("branches", ()):
            yield from steps_of(inner, do)
        for key in ("steps", "f", "d", "l"):
            yield from steps_of(step.get(key, ()), do)


def tells_by_name(plan: Plan) -> bool:
    """Whether files of the same last name are one to whoever verifies."""
    return plan.verifies and _reason(plan) is not None


def say_limits(plan: Plan) -> str | None:
    """Return what verifying cannot claim, in a sentence; None: all, or nothing is verified."""
    reason = _reason(plan)
    if not plan.verifies or reason is None:
        return None
    return (
        f"files are identified by their last names only, because {reason}. Files of the same name "
        "count as one, and stale or lost reads are not detected"
    )


def _reason(plan: Plan) -> str | None:
    """Say why paths do not tell files apart; the engine decides alike (``plan/mod.rs``)."""
    ops = {step["op"] for step in plan.steps("call")}
    kinds = {entry[1] for row in plan.body["datasets"] for entry in row["entries"]}
    if "symlink" in ops or "l" in kinds:
        return "there are symbolic links"
    return "directories are made and names changed" if {"rename", "mkdir"} <= ops else None


def say_warmed(plan: Plan) -> str | None:
    """Return what is not measured of users' transactions, in a sentence; None: nothing is lost."""
    each = plan.transactions_per_user
    if each is None or not plan.warm_up_ns:
        return None
    return (
        f"of the {format_many(each, 'transaction')} of each user, those in the warm-up are not "
        f"measured (iterations include it; it lasts {format_time_ns(plan.warm_up_ns)})"
    )
