"""What the work of two runs has in common, and in what it differs: plan.json against plan.json.

Two runs do the same work where their plans are alike apart from how long they last. A longer run of
a scenario is compared with a shorter one, and the report says so. Everything else (users, seed,
files, steps, pace) changes what is measured, and makes it other work. So do users of a locustfile:
they take the places of users who run the plan, or work beside them.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from replayer.measure.clients import with_kinds
from replayer.measure.record import RunRecord

NONE_BESIDE = "no neighbour"
_LENGTHS = frozenset({"stop", "warm_up_ns"})
"""What a plan says of how long it lasts. ``stop`` holds the time of one round, too."""
_FIO_LENGTHS = ("runtime=", "time_based", "ramp_time=")
_LONGEST = 40  # characters of a value that is still shown: chosen
_MOST = 6  # differences that are named: chosen


def same_work(one: RunRecord, other: RunRecord) -> bool:
    """Whether two runs did the same work, for however long."""
    if one.run.user_kinds != other.run.user_kinds or beside(one) != beside(other):
        return False
    alike = one.run.plan.fingerprint == other.run.plan.fingerprint
    return alike or work_of(one) == work_of(other)


def work_of(record: RunRecord) -> str:
    """Return the SHA-256 of a run's plan apart from its length; without plan.json, of all of it."""
    return record.run.plan.fingerprint if record.plan is None else work_in(record.plan)


def work_in(plan: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a plan, as plan.json has it, apart from its length."""
    text = json.dumps(_without_lengths(plan), sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def beside(record: RunRecord) -> str:
    """Say which load ran beside the measured one."""
    return NONE_BESIDE if record.run.neighbour is None else record.run.neighbour.says


def users_of(record: RunRecord) -> str:
    """Say how many users a run had, and which, where a locustfile brought some."""
    return with_kinds(str(record.run.load.users), record.run.user_kinds)


def plan_changes(one: RunRecord, other: RunRecord) -> str:
    """Name what differs between the work of two runs, in one line."""
    if beside(one) != beside(other):
        return f"what ran beside: {beside(one)} against {beside(other)}"
    if one.run.user_kinds == other.run.user_kinds:
        return _plan_changes(one, other)
    users = f"who works: {users_of(one)} against {users_of(other)}"
    plans_differ = work_of(one) != work_of(other)
    return f"{users}; {_plan_changes(one, other)}" if plans_differ else users


def _plan_changes(one: RunRecord, other: RunRecord) -> str:
    left, right = one.plan, other.plan
    if left is None or right is None:
        return "what is not known: a plan.json is missing"
    found = list(_changes(_parts(left), _parts(right), ""))
    shown = ", ".join(found[:_MOST])
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"{shown}{more}" if found else "nothing that plan.json shows"


def _without_lengths(plan: Mapping[str, Any]) -> object:
    if plan.get("engine") == "fio":  # which fio ran the jobs is a fact of the run, not of the work
        return [_job_without_lengths(job) for job in plan.get("jobs", ())]
    return _less_lengths(plan)


def _parts(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is named where it differs: of fio's jobs each with its options."""
    if plan.get("engine") != "fio":
        return _less_lengths(plan)
    parts: dict[str, dict[str, str]] = {}
    options: dict[str, str] = {}
    for job in plan.get("jobs", ()):
        for line in _job_without_lengths(job):
            name, _, value = line.partition("=")
            if line.startswith("["):
                options = parts.setdefault(line.strip("[]"), {})
            elif line:
                options[name] = value
    return parts


def _less_lengths(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in plan.items() if key not in _LENGTHS}


def _job_without_lengths(job: Mapping[str, Any]) -> list[str]:
    lines = str(job.get("text")).splitlines()
    return [line for line in lines if not line.startswith(_FIO_LENGTHS)]


def _changes(left: Mapping[str, Any], right: Mapping[str, Any], under: str) -> Iterator[str]:
    for key in sorted({*left, *right}):
        one, other = left.get(key), right.get(key)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict) and not under:
            yield from _changes(one, other, f"{key}.")
            continue
        texts = [json.dumps(value) for value in (one, other)]
        if max(map(len, texts)) <= _LONGEST:
            yield f"{under}{key} ({texts[0]} and {texts[1]})"
        else:
            yield f"{under}{key}"
