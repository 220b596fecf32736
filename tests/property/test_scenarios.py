"""Shipped scenarios: both engines do the same, and nothing unexpected happens."""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from replayer.plan.compile import compile_plan
from replayer.scenario.loading import load_scenario, parse_scenario
from replayer.scenario.shipped import shipped_scenarios
from tests import oracle
from tests.property.observation import Document, fresh_folder, run_reference
from tests.property.test_agreement import agree

# The reference engine replays no traces.
NAMES = sorted(set(shipped_scenarios()) - {"wordpress-replay"})
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SMALL_BYTES = 100_000_000  # chosen, as the next one: a second or two of layout in Python
SMALL_ENTRIES = 5_000
FEW = 2_000  # entries up to which a layout is made anew for each transaction (chosen)

SMALLER = {
    "docroot-copy": ["docroot.files=300"],
    "file-server": ["files.files=100"],
    "fio-cache": ["files.files=2", "files.sizes=1MiB"],
    "fio-upload": ["transactions.file.1.write.size=3MiB"],
    "kernel-build-like": ["tree.files=150"],
    "kernel-untar": ["linux={files: 150, sizes: 20KiB, per_directory: 10, layout: false}"],
    "rm-rf": ["tree.files=150"],
    "small-reads": ["files.files=150"],
    "stream-burst": ["transactions.stream.1.write.size=100KiB"],
    "sync-async-writes": ["files.files=2", "sequences.large.0.write.size=2MiB"],
    "uploads": ["sequences.receive.0.write.size=2MiB"],
    "write-100mb-files": ["transactions.write_file.1.write.size=3MiB"],
    "write-size-sweep": ["transactions.write_16m.1.write.size=5MiB"],
}
"""The same calls, fewer or smaller: what an engine in Python does in seconds."""

ELSEWHERE = {
    # What needs another user beside it, or files that are laid out only in another layout.
    "wordpress-deploy": {"front_page", "single_post"},
}
SMALL_TREE = ["release.manifest=plugin-428", "site.manifest=plugin-428"]
ONCE = {"copy", "plugin_delete_only"}


load = cache(load_scenario)


@cache
def text_of(name: str, users: int, overrides: tuple[str, ...]) -> bytes:
    """Compile a scenario for few transactions."""
    scenario = load(name, () if IS_LONG else (*SMALLER.get(name, ()), *overrides))
    plan = compile_plan(scenario, users=users, transactions=min(scenario.iterations or 2, 2))
    return plan.document()


def document_of(name: str, users: int, overrides: tuple[str, ...] = ()) -> Document:
    """Return the plan of few transactions that follow each other at once."""
    document: Document = json.loads(text_of(name, users, overrides))
    document["pace"] = {"kind": "closed", "think": {"const": 0}}
    document["stop"]["duration_ns"] = None
    document["warm_up_ns"] = 0
    sizes = [entry[2] for dataset in document["datasets"] for entry in dataset["entries"]]
    if not IS_LONG and (len(sizes) > SMALL_ENTRIES or sum(sizes) > SMALL_BYTES):
        pytest.skip(f"{len(sizes)} entries of {sum(sizes)} bytes: with HYPOTHESIS_PROFILE=long")
    return document


def users_of(name: str, least: int) -> int:
    """Return as many users as the roles need."""
    return max(least, sum(role.users for role in load(name).roles.values()))


def waits(document: Document) -> bool:
    """Tell whether users wait for each other's signals."""
    return any(step["do"] == "await" for row in document["transactions"] for step in row["steps"])


ONE_BY_ONE = "its users wait for each other; the reference runs one after the other"


@pytest.mark.parametrize("name", NAMES)
def test_shipped_scenarios_do_what_the_reference_does(memory: Path, name: str) -> None:
    if users_of(name, 1) > 1:
        pytest.skip(ONE_BY_ONE)
    agree(document_of(name, 1), memory, 0)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_shipped_scenarios_is_unexpected(memory: Path, name: str) -> None:
    document = document_of(name, users_of(name, 2))
    if waits(document):
        pytest.skip(ONE_BY_ONE)
    with fresh_folder(memory) as folder:
        run = run_reference(document, folder, 0)
    unexpected = [sample for sample in run.samples if not sample.expected]
    assert unexpected == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_unexpected_in_transactions_that_have_to_be_asked_for(
    memory: Path, name: str
) -> None:
    overrides = tuple(SMALL_TREE) if name == "wordpress-deploy" else ()
    document = document_of(name, users_of(name, 1), overrides)
    if waits(document):
        pytest.skip(ONE_BY_ONE)
    document.pop("roles", None)
    document["users"] = 1
    for transaction, samples in alone(document, memory, ELSEWHERE.get(name, set())):
        unexpected = [sample for sample in samples if not sample.expected]
        assert (transaction, unexpected) == (transaction, [])


def alone(
    document: Document, memory: Path, elsewhere: set[str]
) -> Iterator[tuple[str, list[oracle.Sample]]]:
    """Run every transaction that nothing runs by itself: in a round, or a folder, of its own."""
    entries = sum(len(dataset["entries"]) for dataset in document["datasets"])
    wanted = [
        number
        for number, row in enumerate(document["transactions"])
        if not document["mix"][number] and row["name"] not in elsewhere
    ]
    if entries > FEW:
        with fresh_folder(memory) as folder:
            oracle.lay_out(document, folder)
            for number in wanted:
                yield one_of(document, number, folder)
        return
    for number in wanted:
        with fresh_folder(memory) as folder:
            oracle.lay_out(document, folder)
            yield one_of(document, number, folder)


def one_of(document: Document, number: int, folder: Path) -> tuple[str, list[oracle.Sample]]:
    name = document["transactions"][number]["name"]
    mix = [int(other == number) for other in range(len(document["mix"]))]
    turns = [0] * (1 if name in ONCE else document["stop"]["transactions"])
    run = oracle.run_plan({**document, "mix": mix}, folder, turns=turns, round_number=number)
    return name, run.samples


TWO_PATHS = """\
name: two-paths
datasets: {work: {directory: true}, kept: {files: 3, sizes: 1KiB}}
iterations: 2
mix: {move: 1}
transactions:
  move:
    - open: {in: work, name: "a-{seq}", flags: [create, wronly]}
    - write: {size: 2KiB}
    - rename: {path: file, to: {in: work, name: "{file.name}-{random}"}}
    - fsync
    - close
    - link: {path: file, to: {in: work, name: "b-{seq}"}}
    - unlink: {in: work, name: "b-{seq}", as: other}
    - stat: {path: file, expect: ENOENT}
    - mkdir: {in: work, name: "c-{seq}"}
    - rename: {in: work, name: "c-{seq}", to: {in: work, name: "d-{seq}"}}
    - rmdir
    - bind: {in: kept, name: f0}
    - rename: {path: file, to: {from: kept, pick: own}, existing: exchange, expect: any}
    - stat: file
    - rename: {path: file, to: {in: kept}, expect: [EEXIST, ENOTEMPTY, EISDIR]}
    - list: file
"""


def test_two_paths_of_one_name_are_both_known_to_the_call(memory: Path) -> None:
    document = json.loads(compile_plan(parse_scenario(TWO_PATHS, "two.yaml"), users=1).document())
    agree(document, memory, 0)
    with fresh_folder(memory) as folder:
        run = run_reference(document, folder, 0)
        assert [sample for sample in run.samples if not sample.expected] == []
        names = [path.name for path in (folder / "work").iterdir()]
    assert sorted(name[:4] for name in names) == ["a-0-", "a-1-"]


def test_a_length_that_is_not_the_last_one_closed_is_a_violation(memory: Path) -> None:
    document = document_of("close-to-open", 2)
    checks = [row["name"] == "checked" for row in document["transactions"]]
    document.pop("roles")
    for row in document["transactions"]:
        row["steps"] = [step for step in row["steps"] if step["do"] != "await"]  # for nobody
    with fresh_folder(memory) as folder:
        oracle.lay_out(document, folder)
        page = folder / "shared" / "page0"
        for size, outcomes in ((64 * 1024, {"ok", "END"}), (1024, {"ok", "END", "SHORT"})):
            page.write_bytes(bytes(size))
            run = oracle.run_plan({**document, "mix": checks}, folder, turns=[0])
            assert {sample.outcome for sample in run.samples} == outcomes
            assert sum(run.failed.values()) == ("SHORT" in outcomes)
