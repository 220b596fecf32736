"""Options that would change nothing are refused, and those that do something are not."""

import argparse
from typing import Any

import pytest

from replayer.errors import ReplayerError
from replayer.run.roles import refuse_idle_options

NONE: dict[str, Any] = {
    "headless": True,
    "worker": False,
    "master": False,
    "processes": None,
    "trace": None,
    "scenario": "tiny",
    "changes": [],
    "check_order": False,
    "event_log": None,
    "pace": "closed",
    "speed": None,
    "rate": None,
    "loops": None,
    "requests": None,
    "threshold": [],
    "results": "screen",
    "report_html": None,
    "junit": None,
    "csv_prefix": None,
    "metrics": None,
    "json": False,
    "json_file": None,
    "html_file": None,
    "on_lost_worker": "fail",
    "remount_command": None,
    "reuse": [],
    "offer": [],
    "web_secret_file": None,
    "worker_timeout": 10,
    "expect_workers": 1,
    "expect_workers_max_wait": 0,
    "master_host": "127.0.0.1",
    "master_port": 5557,
    "master_bind_host": "*",
    "master_bind_port": 5557,
    "spawn_rate": None,
}
"""What the parser makes of a command line without options."""
PAGE = {"headless": False}
TRACE = {"trace": "some/trace"}
WORKER = {"headless": False, "worker": True}


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{**NONE, **given})


@pytest.mark.parametrize("given", [{}, PAGE, TRACE, WORKER, {"master": True}, {"processes": 2}])
def test_no_role_refuses_what_nobody_gave(given: dict[str, object]) -> None:
    refuse_idle_options(options(**given))


@pytest.mark.parametrize(
    "given",
    [
        {**TRACE, "check_order": True, "event_log": "there", "loops": 3, "requests": []},
        {**TRACE, "processes": 2, "pace": "asap", "speed": 2.0},
        {"master": True, "threshold": ["errors == 0"], "junit": "v.xml", "metrics": "9646"},
        {"processes": 2, "worker": True, "results": "json", "on_lost_worker": "continue"},
        {"processes": 2, "reuse": ["kept"], "remount_command": "mount"},
        {"processes": 2, "worker_timeout": 20, "on_lost_worker": "continue"},
        {"master": True, "expect_workers": 3, "expect_workers_max_wait": 60},
        {**WORKER, "worker_timeout": 20},
        {**WORKER, "master_host": "leader", "master_port": 6000},
        {**WORKER, "processes": 4, "master_host": "leader"},
        {"master": True, "master_bind_host": "10.0.0.1", "master_bind_port": 6000},
        {"processes": 2, "master_bind_host": "0.0.0.0", "master_bind_port": 6000},
        {"spawn_rate": 2.0},
        {**WORKER, "reuse": ["kept"], "remount_command": "mount"},
        {"changes": ["verify=true"]},
        {**WORKER, "scenario": None, "changes": ["verify=true"]},
        {**PAGE, "scenario": None, "changes": ["verify=true"]},
        {**PAGE, "offer": ["own.yaml"], "web_secret_file": "secret", "threshold": ["errors == 0"]},
    ],
)
def test_what_a_role_heeds_is_taken(given: dict[str, object]) -> None:
    refuse_idle_options(options(**given))


@pytest.mark.parametrize(
    ("role", "name", "value", "says"),
    [
        *(
            ({**TRACE, **role}, name, value, "needs one process")
            for role in ({"processes": 2}, {"master": True}, WORKER)
            for name, value in (("check_order", True), ("event_log", "there"))
        ),
        ({}, "check_order", True, "needs a trace"),
        ({}, "requests", [], "needs a trace"),
        ({}, "pace", "timed", "needs a trace"),
        (PAGE, "trace", "some/trace", "is not for the web page"),
        ({**PAGE, "trace": None}, "loops", 3, "is not for the web page"),
        (PAGE, "budget", 60, "is not for the web page"),
        (WORKER, "precision", 0.05, "has no effect on a worker"),
        ({"master": True}, "remount_command", "mount", "has no effect on a master"),
        ({"master": True}, "reuse", ["kept"], "has no effect on a master"),
        (WORKER, "threshold", ["errors == 0"], "has no effect on a worker"),
        (WORKER, "metrics", "9646", "has no effect on a worker"),
        (WORKER, "results", "json", "has no effect on a worker"),
        (WORKER, "csv_prefix", "own", "has no effect on a worker"),
        (WORKER, "on_lost_worker", "continue", "has no effect on a worker"),
        ({}, "on_lost_worker", "continue", "needs several processes"),
        (PAGE, "worker_timeout", 20, "needs several processes"),
        ({}, "expect_workers", 3, "needs several processes"),
        *(
            (role, name, value, says)
            for role, says in (
                ({}, "needs several processes"),
                (PAGE, "needs several processes"),
                ({"processes": 2}, "connect by themselves"),
                ({"master": True}, "has no effect on a master"),
            )
            for name, value in (("master_host", "leader"), ("master_port", 6000))
        ),
        ({}, "master_bind_host", "10.0.0.1", "needs several processes"),
        ({"processes": 2}, "master_bind_port", 6000, "connect by themselves"),
        (WORKER, "master_bind_host", "10.0.0.1", "has no effect on a worker"),
        (WORKER, "master_bind_port", 6000, "has no effect on a worker"),
        (WORKER, "spawn_rate", 2.0, "has no effect on a worker"),
        ({"processes": 2}, "expect_workers", 3, "has no effect with --processes"),
        (WORKER, "expect_workers", 3, "has no effect on a worker"),
        ({"scenario": None}, "changes", ["verify=true"], "needs a scenario"),
        ({**TRACE, "scenario": None}, "changes", ["a=1"], "needs a scenario"),
        ({}, "offer", ["own.yaml"], "none is served"),
        ({}, "web_secret_file", "secret", "none is served"),
    ],
)
def test_what_a_role_would_not_heed_is_refused_by_name(
    role: dict[str, object], name: str, value: object, says: str
) -> None:
    shown = {"csv_prefix": "csv", "results": "json", "changes": "set"}.get(
        name, name.replace("_", "-")
    )
    with pytest.raises(ReplayerError, match=rf"^--{shown}\b.*{says}") as refused:
        refuse_idle_options(options(**{**role, name: value}))
    assert refused.value.exit_code == 2
    assert refused.value.hint
