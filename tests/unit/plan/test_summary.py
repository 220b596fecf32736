"""What a plan is said to do is what an engine then does, and what the application did."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from replayer.plan.compile import compile_plan
from replayer.plan.document import Plan
from replayer.plan.summary import TransactionExpectation, describe_plan
from replayer.scenario.loading import load_scenario, parse_scenario
from tests.oracle import in_turns, lay_out, run_plan
from tests.unit.scenario.texts import SMALL

MEASURED = {
    # Calls of one page view inside the document root, from system call traces (chdir left out).
    "front_page": {
        "access": 249, "lstat": 112, "stat": 46, "open": 96, "fstat": 173,
        "read": 254, "lseek": 92, "close": 93, "getdents": 17,
    },
    "single_post": {  # one view of ten looks whether its 339 scripts have changed
        "access": 275, "lstat": 94, "stat": 58 + 33.9, "open": 88, "fstat": 159,
        "read": 236, "lseek": 84, "close": 85, "getdents": 11,
    },
    "not_found": {
        "access": 219, "lstat": 94, "stat": 28, "open": 58, "fstat": 99,
        "read": 146, "lseek": 54, "close": 55, "getdents": 11,
    },
    "dashboard": {
        "access": 243, "lstat": 14, "stat": 17, "open": 34, "fstat": 52,
        "read": 77, "lseek": 30, "close": 31, "getdents": 8,
    },
    "login": {  # the form and the log-in
        "access": 330, "lstat": 152, "stat": 12, "open": 43, "fstat": 54,
        "read": 82, "lseek": 34, "close": 36, "getdents": 10,
    },
}  # fmt: skip
FAILING = {"front_page": 128, "single_post": 136, "not_found": 118, "dashboard": 91, "login": 189}


def described(plan: Plan) -> dict[str, TransactionExpectation]:
    return {found.name: found for found in describe_plan(plan).transactions}


@pytest.fixture(scope="module")
def pages() -> dict[str, TransactionExpectation]:
    return described(compile_plan(load_scenario("wordpress-pages")))


@pytest.mark.parametrize("page", MEASURED)
def test_a_page_view_makes_the_calls_of_the_application(
    page: str, pages: dict[str, TransactionExpectation]
) -> None:
    assert pages[page].ops == pytest.approx(MEASURED[page])
    assert pages[page].failing_lookups == pytest.approx(FAILING[page])


def test_an_upload_writes_what_the_application_wrote() -> None:
    upload = described(compile_plan(load_scenario("wordpress-uploads")))["upload"]
    assert upload.ops["write"] == 366 + 802
    assert upload.ops["pwrite"] == 229
    assert upload.bytes_written == 229 * 8179 + 1_872_992 + 3_270_692
    photo = 14 * 8192 + 8192 + 2 * 1_872_992  # and once from the temporary file
    sent, wordpress = 1_872_992, 247_163  # by nginx to PHP; what PHP reads of WordPress itself
    assert upload.bytes_read == photo + sent + wordpress


def test_an_untar_makes_the_files_of_the_published_tree() -> None:
    plan = compile_plan(load_scenario("kernel-untar", ["linux.part=100%"]))
    untar = described(plan)["untar"]
    assert untar.ops["mkdir"] == 3657
    assert untar.ops["fchmod"] == untar.ops["futimens"] == 54_000
    assert untar.bytes_written == pytest.approx(626_795_566, abs=1)


SMALL_TREE = ["release.manifest=plugin-428", "site.manifest=plugin-428"]
SHARED = [
    ("small-reads", None, ["files.files=300"]),
    ("wordpress-pages", "front_page", []),
    *(
        pytest.param("wordpress-pages", page, [], marks=pytest.mark.nightly)
        for page in ("login", "dashboard", "static_file")
    ),
    ("wordpress-uploads", "upload", []),
    ("wordpress-deploy", "rsync", SMALL_TREE),
]


@pytest.mark.parametrize(("name", "only", "overrides"), SHARED)
def test_the_reference_engine_does_what_was_said(
    tmp_path: Path, name: str, only: str | None, overrides: list[str]
) -> None:
    plan = compile_plan(load_scenario(name, overrides), users=1)
    document: dict[str, Any] = json.loads(plan.document())
    if only is not None:
        document["mix"] = [int(found == only) for found in plan.transactions]
        document.pop("roles", None)
    turns = 40 if only == "static_file" or name == "small-reads" else 2
    lay_out(document, tmp_path)
    run = run_plan(document, tmp_path, turns=in_turns([0], turns))
    assert run.failed == {}
    (transaction,) = run.finished
    made = Counter(sample.op for sample in run.samples)
    said = described(plan)[transaction]
    assert {op: count / turns for op, count in made.items()} == pytest.approx(said.ops, rel=0.1)
    failing = sum(sample.outcome == "ENOENT" for sample in run.samples)
    assert failing / turns == said.failing_lookups
    if turns == 2:
        written = sum(run.bytes[transaction, op] for op in ("write", "pwrite"))
        assert written / turns == pytest.approx(said.bytes_written)
        read = sum(run.bytes[transaction, op] for op in ("read", "sendfile"))
        assert read / turns == pytest.approx(said.bytes_read)


def test_space_and_inodes_are_those_of_the_copies() -> None:
    summary = describe_plan(compile_plan(parse_scenario(SMALL, "s.yaml"), users=5))
    files, work = summary.datasets
    assert (files.files, files.directories, files.size_bytes, files.copies) == (10, 2, 100_000, 1)
    assert (work.files, work.copies) == (0, 5)
    blocks = 10 * 3 + 2 + 1 + 5  # ten files of 10 kB, their directories, the datasets' own
    assert summary.space_bytes == blocks * 4096
    assert summary.inodes == 10 + 2 + 1 + 5
    assert summary.growth_known is False


def test_what_a_number_of_transactions_writes_is_counted() -> None:
    scenario = parse_scenario(SMALL, "s.yaml", ["iterations=10", "mix={make: 1}"])
    bounded = describe_plan(compile_plan(scenario))
    open_end = describe_plan(compile_plan(parse_scenario(SMALL, "s.yaml", ["mix={make: 1}"])))
    assert bounded.growth_known
    assert bounded.inodes == open_end.inodes + 20
    assert bounded.space_bytes > open_end.space_bytes + 20 * 4096


PASSING = """\
name: passing
users: {count: 3}
iterations: 100
datasets:
  work: {directory: true}
  list: {files: 5, layout: false}
mix: {pass: 1}
transactions:
  pass:
"""


def needed(*steps: str) -> tuple[int, int]:
    """Return the bytes and files that three users need for a hundred transactions each."""
    text = PASSING + "".join(f"    - {step}\n" for step in steps)
    summary = describe_plan(compile_plan(parse_scenario(text, "s.yaml")))
    return summary.space_bytes - 2 * 4096, summary.inodes - 2


def steps_of(name: str) -> list[str]:
    """Return the steps that make a file of 40 KiB."""
    return [
        f'open: {{in: work, name: "{name}", flags: [create, wronly]}}',
        "write: {size: 40KiB}",
        "close",
    ]


FILE = (11 * 4096, 1)


def times(count: int) -> tuple[int, int]:
    return FILE[0] * count, count


def test_a_file_that_its_transaction_removes_takes_room_once_a_user() -> None:
    assert needed(*steps_of("a-{user}-{seq}"), "unlink: file") == times(3)
    assert needed(*steps_of("{random}"), "unlink: file") == times(3)
    renamed = "rename: {path: file, to: {in: work, name: b, as: b}}"
    assert needed(*steps_of("a"), renamed, "unlink: b") == times(3)
    by_default = "rename: {path: file, to: {in: work, name: '{file.name}-{random}'}}"
    assert needed(*steps_of("a"), by_default, "unlink: file") == times(3)


def test_a_file_that_stays_takes_room_in_each_transaction() -> None:
    assert needed(*steps_of("a-{user}-{seq}")) == times(300)
    seldom = "unlink: {in: work, name: b, expect: any}"
    assert needed(*steps_of("a-{seq}"), seldom) == times(300)
    assert needed(*steps_of("a"), seldom) == times(1)
    again = "unlink: {in: work, name: '{random}', expect: any}"
    assert needed(*steps_of("{random}"), again) == times(300)
    linked = "link: {path: file, to: {in: work, name: 'b-{seq}', as: b}}"
    assert needed(*steps_of("a"), linked, "unlink: file") == times(300)


STREAM = """\
name: stream
users: {count: 2}
iterations: 1000
datasets:
  work: {directory: true}
  names: {files: 5, sizes: 1MiB, layout: false}
  old: {files: 4, sizes: 1MiB}
mix: {write: 1, turn: 0}
transactions:
  turn:
    - rename: {in: work, name: "f{user}", to: {in: work, name: "f{user}-{seq}", as: kept}}
  write:
"""


@pytest.mark.parametrize(
    ("steps", "size_bytes", "files"),
    [
        ('open: {in: work, name: "f{user}", flags: [wronly, create, trunc]}', 2 << 20, 2),
        ("open: {in: work, name: one, flags: [wronly, create, trunc]}", 1 << 20, 1),
        ('open: {in: work, name: "f{seq}", flags: [wronly, create, trunc]}', 2000 << 20, 2000),
        ('open: {in: work, name: "f{user}", flags: [wronly, create, append]}', 2000 << 20, 2),
        ("open: {from: old, flags: [wronly]}", 0, 0),
        ("open: {from: old, flags: [wronly, append]}", 2000 << 20, 0),
    ],
)
def test_a_file_that_is_written_again_and_again_takes_room_once(
    steps: str, size_bytes: int, files: int
) -> None:
    text = f"{STREAM}    - {steps}\n    - write: {{size: 1MiB}}\n    - close\n"
    plain = describe_plan(compile_plan(parse_scenario(STREAM + "    - think: 1us\n", "s")))
    found = describe_plan(compile_plan(parse_scenario(text, "s")))
    assert found.inodes - plain.inodes == files
    assert found.space_bytes - plain.space_bytes == size_bytes + 4096 * files


def test_a_file_that_others_rename_takes_room_each_time() -> None:
    step = 'open: {in: work, name: "f{user}", flags: [wronly, create]}'
    text = f"{STREAM}    - {step}\n    - write: {{size: 1MiB}}\n"
    found = describe_plan(compile_plan(parse_scenario(text, "s", ["mix.turn=1"])))
    assert found.space_bytes > 1000 << 20


def test_the_stream_of_the_study_takes_the_room_of_one_file() -> None:
    study = ["transactions.stream.1.write.size=1GB", "iterations=2000", "duration=2h"]
    found = describe_plan(compile_plan(load_scenario("stream-burst", study)))
    assert 1_000_000_000 < found.space_bytes < 1_100_000_000


def test_files_that_are_there_at_the_same_time_all_take_room() -> None:
    inside = ", ".join(f"{{{step}}}" if ":" in step else step for step in steps_of("{random}"))
    alone = f"repeat: {{times: 10, steps: [{inside}, {{unlink: file}}]}}"
    assert needed(alone) == times(3)
    entry = ", ".join(f"{{{step}}}" if ":" in step else step for step in steps_of("{e}"))
    make = f"each: {{of: list, as: e, file: [{entry}]}}"
    gone = 'each: {of: list, as: e, file: [{unlink: {in: work, name: "{e}"}}]}'
    assert needed(make, gone) == times(15)
    assert needed(make) == times(5)
    assert needed(make.replace('"{e}"', '"{e}-{seq}"')) == times(1500)


def test_what_is_removed_one_time_in_four_is_left_three_times() -> None:
    unlink, think = "{weight: 1, steps: [{unlink: file}]}", "{weight: 3, steps: [{think: 1ms}]}"
    some = f"choose: [{unlink}, {think}]"
    size_bytes, files = needed(*steps_of("a-{seq}"), some)
    assert files == 225 + 1  # of what is there for a while: a quarter of a file a user
    assert size_bytes == round(225.75 * FILE[0])


def test_the_working_set_is_what_transactions_of_the_mix_can_touch() -> None:
    both = describe_plan(compile_plan(parse_scenario(SMALL, "s.yaml")))
    none = describe_plan(compile_plan(parse_scenario(SMALL, "s.yaml", ["mix={make: 1}"])))
    assert (both.working_set_files, both.working_set_bytes) == (10, 100_000)
    assert (none.working_set_files, none.working_set_bytes) == (0, 0)


def test_shares_count_the_users_of_roles() -> None:
    override = ["roles={maker: {users: 1, mix: {make: 1}}}", "mix={look: 1}"]
    shares = described(compile_plan(parse_scenario(SMALL, "s.yaml", override), users=4))
    assert (shares["look"].share, shares["make"].share) == (0.75, 0.25)
