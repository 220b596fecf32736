"""Some shipped scenarios as a person runs them: short, on a local folder, without an error."""

import pytest

from tests.behaviour.shell import Shell


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("lock-contention", [], {"flock", "fcntl"}),
        ("write-size-sweep", ["sequences.finish=[fsync, close, {unlink: file}]"], {"write_64b"}),
        ("mdtest-hard", ["names.files=50"], {"round"}),
        ("docroot-copy", ["iterations=20"], {"copy_folder"}),
        (
            "kernel-build-like",
            ["tree.files=300", "sequences.read_again.0.repeat.times=50"],
            {"compile"},
        ),
        ("wordpress-uploads", ["users.think_time=0s", "mix={upload_rest: 1}"], {"upload_rest"}),
        ("visibility", ["users.think_time=0s"], {"see_created", "see_replaced", "see_removed"}),
        ("close-to-open", ["users.think_time=0s"], {"write", "checked"}),
    ],
)
def test_a_scenario_runs_without_an_error(
    shell: Shell, name: str, settings: list[str], expected: set[str]
) -> None:
    changes = [word for setting in settings for word in ("--set", setting)]
    done = shell.run("run", name, "-t", "1s", "--json", *changes)
    assert done.code in {0, 4}, done.err  # 4: a second is too short for a verdict
    document = done.document()
    (target,) = document["summary"]["targets"]
    found = {row["name"]: row for row in target["overall"]["transactions"]}
    assert expected <= set(found)
    assert document["verdict"]["judgements"][0]["measured"] == 0  # errors
