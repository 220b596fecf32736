"""A scenario that is made of a trace runs for several users, without an error."""

import pytest

from tests.behaviour.shell import Shell


@pytest.mark.parametrize(
    "trace",
    [
        *("wordpress/front-cold", "wordpress/login", "wordpress/single-post"),
        *("wordpress/page-cache-miss", "php/sessions"),
    ],
)
def test_a_scenario_of_a_trace_is_run(shell: Shell, trace: str) -> None:
    made = shell.run("synth", trace, "-o", "mine.yaml")
    assert made.code == 0, made.err
    pace = ("-u", "3", "-t", "1s", "--set=users.think_time=5ms", "--json")
    done = shell.run("run", "mine.yaml", f"--target=here={shell.target()}", *pace)
    assert done.went_well, done.err
    (target,) = done.document()["summary"]["targets"]
    found = target["overall"]["transactions"]
    assert sum(each["count"] for each in found) > 0
    assert sum(each["errors"] for each in found) == 0
