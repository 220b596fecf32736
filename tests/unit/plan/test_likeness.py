"""Transactions of shipped scenarios make the calls that the recorded applications made."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from replayer.plan.compile import compile_plan
from replayer.plan.likeness import LIMIT_POINTS, compare_calls
from replayer.plan.summary import TransactionExpectation, describe_plan
from replayer.scenario.loading import load_scenario
from replayer.trace.reading import load_statistics

TRACES = Path(__file__).parents[3] / "traces"

MODELLED = [
    ("wordpress-pages", "front_page", "wordpress/front-warm", "/"),
    ("wordpress-pages", "front_page_revalidated", "wordpress/front-revalidate", "/"),
    ("wordpress-pages", "front_page_cold", "wordpress/front-cold", "/"),
    ("wordpress-pages", "classic_page", "wordpress/front-classic-theme", "/"),
    ("wordpress-pages", "single_post", "wordpress/single-post", "single post"),
    ("wordpress-pages", "login", "wordpress/login", None),
    ("wordpress-pages", "dashboard", "wordpress/dashboard", "dashboard"),
    ("wordpress-pages", "cached_page", "wordpress/page-cache-hit", "post"),
    ("wordpress-pages", "uncached_page", "wordpress/page-cache-miss", "post"),
    ("wordpress-uploads", "upload", "wordpress/upload", "upload"),
    (
        "wordpress-update",
        "plugin_install_only",
        "wordpress/plugin-install",
        "plugin upload+install",
    ),
    ("wordpress-update", "plugin_delete_only", "wordpress/plugin-delete", "delete plugin (ajax)"),
    ("wordpress-update", "theme_install_only", "wordpress/theme-install", "theme upload+install"),
    ("wordpress-deploy", "cp", "wordpress/deploy-cp", None),
    ("wordpress-deploy", "release_cp_unchecked", "wordpress/deploy-release", None),
    ("wordpress-deploy", "rsync_3_5", "wordpress/deploy-rsync", None),
    ("php-sessions", "own_session", "php/sessions", None),
    ("kernel-untar", "untar", "linux/untar", None),
]
ELSEWHERE = {
    "kernel-untar": {"read"}
}  # the archive of the trace; the scenario's is not on the mount


ITS_TREE = {"kernel-untar": ("linux.manifest=linux-6.1-subtree", "linux.part=100%")}
"""How many writes a file has depends on its size: the tree that was unpacked."""
REFRESHED = {"lstat": 7163, "open": 2381, "close": 2379, "getdents": 672, "fstat": 337}
"""Calls of rsync 3.5.0 -a where nothing differs, on WordPress 6.1.9 (counted by strace)."""
DOCROOT = ("linux.manifest=wordpress-6.1.9", "linux.part=100%")
UNPACKED = {"write": 9226, "open": 2910, "close": 2910, "futimens": 2909, "mkdir": 336}
"""Calls of GNU tar as an ordinary user on the same tree (counted by strace)."""

UNZIPPED = {
    "stat": 19_331,
    "lstat": 5_818,
    "write": 3_481,
    "utimens": 3_245,
    "open": 2_909,
    "fchmod": 2_908,
    "close": 2_908,
    "chmod": 672,
    "mkdir": 336,
}
"""Calls of Info-ZIP on the same tree (counted by strace); 11,972 of them find nothing."""

REPLACED = {
    "stat": 3_626,
    "fstat": 3_030,
    "lstat": 2_825,
    "open": 2_148,
    "close": 2_134,
    "chmod": 1_400,
    "access": 1_371,
    "unlink": 1_289,
    "copy_file_range": 428,
    "mkdir": 116,
    "rmdir": 113,
}
"""Calls on the docroot of the two requests that update a plugin by upload (counted by strace)."""
REINSTALLED = {
    "fstat": 14_121,
    "stat": 13_146,
    "lstat": 8_986,
    "chmod": 5_764,
    "unlink": 2_914,
    "copy_file_range": 2_517,
    "access": 2_216,
    "getdents": 1_366,
    "mkdir": 338,
    "rmdir": 337,
}
"""Calls on the docroot that reinstall the core, with the request that follows (by strace)."""


@cache
def said(scenario: str, overrides: tuple[str, ...] = ()) -> dict[str, TransactionExpectation]:
    summary = describe_plan(compile_plan(load_scenario(scenario, overrides)))
    return {found.name: found for found in summary.transactions}


@pytest.mark.parametrize(("scenario", "transaction", "trace", "label"), MODELLED)
def test_no_share_of_calls_is_off_by_more_than_two_points(
    scenario: str, transaction: str, trace: str, label: str | None
) -> None:
    census = load_statistics(TRACES / trace, label)
    without = ELSEWHERE.get(scenario, set())
    plan = said(scenario, ITS_TREE.get(scenario, ()))
    found = compare_calls(plan[transaction], census, without)
    over = [row for row in found.rows if abs(row.difference) > LIMIT_POINTS]
    assert over == []
    assert found.alike


@pytest.mark.parametrize(("scenario", "transaction", "trace", "label"), MODELLED)
def test_a_transaction_has_as_many_calls_as_a_request(
    scenario: str, transaction: str, trace: str, label: str | None
) -> None:
    if transaction == "login":
        pytest.skip("the form and the log-in: two requests")
    plan = said(scenario, ITS_TREE.get(scenario, ()))
    without = ELSEWHERE.get(scenario, set())
    found = compare_calls(plan[transaction], load_statistics(TRACES / trace, label), without)
    calls = found.amounts[0]
    assert calls.plan == pytest.approx(calls.trace, rel=0.05)


def test_every_shipped_trace_has_a_transaction_that_is_held_against_it() -> None:
    shipped = {
        f"{path.parent.parent.name}/{path.parent.name}" for path in TRACES.glob("*/*/*.json")
    }
    assert shipped == {trace for _, _, trace, _ in MODELLED}


def test_another_page_is_not_alike() -> None:
    census = load_statistics(TRACES / "wordpress/front-warm", "/")
    found = compare_calls(said("wordpress-pages")["login"], census)
    assert not found.alike
    assert found.largest.what == "access"


def test_a_refresh_by_the_newer_rsync_opens_every_component() -> None:
    ops = said("wordpress-deploy")["refresh_3_5"].ops
    assert ops == pytest.approx(REFRESHED, rel=0.01)


def test_files_of_any_tree_are_unpacked_in_the_pieces_that_tar_writes() -> None:
    ops = said("kernel-untar", DOCROOT)["untar_as_user"].ops
    assert {op: ops[op] for op in UNPACKED} == pytest.approx(UNPACKED, rel=0.005)


def test_a_release_by_unzip_looks_as_often_as_unzip() -> None:
    release = said("wordpress-deploy")["unzip"]
    assert {op: release.ops[op] for op in UNZIPPED} == pytest.approx(UNZIPPED, rel=0.01)
    assert release.failing_lookups == pytest.approx(11_972, rel=0.01)


def calls(transaction: TransactionExpectation, counted: dict[str, int]) -> dict[str, float]:
    """Return how often a transaction makes the calls that were counted; PHP copies in one call."""
    return {op: transaction.ops[op] - transaction.ends.get(op, 0) for op in counted}


def test_an_update_by_upload_unpacks_the_package_twice() -> None:
    update = said("wordpress-update")["plugin_update"]
    assert calls(update, REPLACED) == pytest.approx(REPLACED, rel=0.05)


def test_an_update_of_the_core_leaves_plugins_and_themes_alone() -> None:
    update = said("wordpress-update")["core_update"]
    assert calls(update, REINSTALLED) == pytest.approx(REINSTALLED, rel=0.1)


def test_an_upload_through_rest_has_its_six_sizes_whatever_the_seed() -> None:
    scenario = load_scenario("wordpress-uploads")
    for seed in (1, 7):
        found = describe_plan(compile_plan(scenario, seed=seed)).transactions
        (rest,) = (row for row in found if row.name == "upload_rest")
        assert rest.ops["write"] == 405 + 69 + 1  # the sizes, PHP's temporary file and WordPress's
        assert rest.ops["pwrite"] == 137


def test_tools_look_at_the_links_of_a_tree_too() -> None:
    found = said("kernel-build-like", ("tree.manifest=linux-6.1-subtree",))
    files, directories, links = 7589, 385, 13
    assert found["git_status"].ops["lstat"] == files + directories + links
    assert found["find_size"].ops["lstat"] == files + 2 * directories + links


def transaction(ops: dict[str, float]) -> TransactionExpectation:
    return TransactionExpectation(
        name="x",
        share=1,
        ops=ops,
        ops_total=sum(ops.values()),
        ends={},
        failing_lookups=0,
        bytes_read=0,
        bytes_written=0,
        files_created=0,
        files_removed=0,
        think_ns=0,
    )


def census(ops: dict[str, dict[str, Any]], requests: int = 0) -> dict[str, Any]:
    empty: dict[str, Any] = {"count": 0, "errors": {}, "bytes": 0}
    return {"requests": requests, "ops": {op: {**empty, **found} for op, found in ops.items()}}


def rows(said: TransactionExpectation, seen: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {row.what: (row.plan, row.trace) for row in compare_calls(said, seen).rows}


def test_shares_are_those_of_one_request() -> None:
    seen = census({"stat": {"count": 30}, "read": {"count": 10}}, requests=10)
    found = compare_calls(transaction({"stat": 3, "read": 1}), seen)
    assert found.alike
    assert [(row.plan, row.trace) for row in found.amounts] == [(4, 4), (0, 0), (0, 0)]


def test_calls_that_do_the_same_are_compared_as_one() -> None:
    seen = census({"lutimens": {"count": 1}, "writev": {"count": 1}, "lock": {"count": 2}})
    found = rows(transaction({"utimens": 1, "append": 1, "fcntl_lock": 2}), seen)
    shares = [found[op] for op in ("utimens", "write", "fcntl_lock")]
    assert shares == [(25, 25), (25, 25), (50, 50)]


def test_locks_that_are_given_back_are_compared_with_recorded_calls_on_locks() -> None:
    seen = census({"lock": {"count": 2}, "flock": {"count": 2}})
    ops: dict[str, float] = dict.fromkeys(
        ("fcntl_lock", "fcntl_unlock", "flock", "flock_unlock"), 1
    )
    found = rows(transaction(ops), seen)
    assert (found["fcntl_lock"], found["flock"]) == ((50, 50), (50, 50))


def test_calls_that_plans_have_no_word_for_are_named_and_not_counted() -> None:
    seen = census({"stat": {"count": 2}, "chdir": {"count": 8}}, requests=2)
    found = compare_calls(transaction({"stat": 1}), seen)
    assert (found.left_out, found.alike) == ({"chdir": 4}, True)


def test_only_names_that_are_missing_are_failing_look_ups() -> None:
    seen = census(
        {
            "open": {"count": 5, "errors": {"ENOENT": 1}},
            "getxattr": {"count": 5, "errors": {"ENODATA": 5}},
        }
    )
    found = rows(replace(transaction({"open": 5, "getxattr": 5}), failing_lookups=1), seen)
    assert found["failing look-ups"] == (10, 10)


def test_calls_that_only_find_the_end_count_as_all_others_do() -> None:
    plan = replace(transaction({"sendfile": 20, "open": 10}), ends={"sendfile": 10})
    seen = census({"sendfile": {"count": 20}, "open": {"count": 10}})
    assert compare_calls(plan, seen).alike
    for traced in (10, 15, 40):
        seen = census({"sendfile": {"count": traced}, "open": {"count": 10}})
        assert not compare_calls(plan, seen).alike


def test_calls_that_a_run_makes_beyond_the_trace_are_in_its_amount_and_named() -> None:
    found = compare_calls(
        said("wordpress-update")["plugin_install_only"],
        load_statistics(TRACES / "wordpress/plugin-install", "plugin upload+install"),
    )
    assert found.ends == {"sendfile": 1}
    assert said("wordpress-update")["plugin_install_only"].ops["copy_file_range"] == 428
    expected = said("wordpress-update")["plugin_install_only"].ops_total
    assert found.amounts[0].plan == pytest.approx(expected)
    copied = said("wordpress-deploy")["cp"]
    assert compare_calls(copied, load_statistics(TRACES / "wordpress/deploy-cp", None)).ends == {}


def test_calls_can_be_left_out_on_both_sides() -> None:
    seen = census({"write": {"count": 5, "bytes": 50}, "read": {"count": 5, "bytes": 50}})
    plan = replace(transaction({"write": 5}), bytes_written=50)
    found = [compare_calls(plan, seen, without).alike for without in ((), {"read"})]
    assert found == [False, True]
