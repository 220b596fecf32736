"""Searches for capacities from the page, with the real program behind it."""

import json
import shutil
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.behaviour.page import ORDER, Server, serve
from tests.behaviour.shell import Shell, make_shell
from tests.processes import children_of

SEARCH = {"scenario": "look", "limits": "look.p95 < 200ms", "budget": "20s", "by": "users"}
LIMIT_S = 100.0


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    made = make_shell(tmp_path_factory.mktemp("web"))
    made.target()
    return made


@pytest.fixture(scope="module")
def server(house: Shell) -> Iterator[Server]:
    with serve(house, "look.yaml", "--target", "mount=mount", "-o", "kept") as found:
        yield found


def stands(server: Server) -> Any:  # noqa: ANN401 - JSON
    return json.loads(server.get("replayer/capacities/now"))


def search(server: Server, **changes: str) -> tuple[int, str]:
    code, text = server.post("replayer/capacities", {**SEARCH, **changes})
    return code, str(json.loads(text)["message"])


def until_known(server: Server, *, ended: bool) -> Any:  # noqa: ANN401 - JSON
    deadline = time.monotonic() + LIMIT_S
    while True:
        found = stands(server)
        if found["document"] is not None and found["goes_on"] is not ended:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_a_search_is_started_watched_and_kept(server: Server, house: Shell) -> None:
    assert search(server)[0] == 200
    assert server.now()["search"] == "the capacity for look.yaml"
    _, text = server.post("swarm", {**ORDER, "scenario": "look"})
    assert "the capacity for look.yaml is being measured" in text
    assert "the capacity for look.yaml is being measured" in search(server)[1]
    found = until_known(server, ended=True)
    assert found["failure"] == ""
    (target,) = found["document"]["targets"]
    assert target["name"] == "mount"
    assert target["trials"][0]["load"] == 2
    page = server.get("replayer/capacities")
    assert found["document"]["answers"][0].split()[0] in page
    report = server.get(f"replayer/capacities/{found['name']}/report.html")
    assert "<svg" in report
    assert "look.p95 &lt; 200ms" in report
    assert (house.home / "kept/capacities" / found["name"] / "001-mount/run.json").exists()
    assert list((house.home / "mount").iterdir()) == []


def test_a_search_is_stopped_with_what_is_known(server: Server, house: Shell) -> None:
    assert search(server, budget="10m")[0] == 200
    until_known(server, ended=False)
    server.post("replayer/capacities/stop", {})
    found = until_known(server, ended=True)
    assert "at least" in found["document"]["answers"][0]
    assert list((house.home / "mount").iterdir()) == []


@pytest.mark.skipif(shutil.which("fio") is None, reason="there is no fio here")
def test_a_raw_baseline_is_a_run_of_its_own(server: Server, house: Shell) -> None:
    assert server.post("replayer/baseline", {"targets": "mount=/etc"})[0] == 403
    assert server.post("replayer/baseline", {"targets": "mount", "jobs": "x"})[0] == 403
    assert server.post("replayer/baseline", {"targets": "mount"})[0] == 200
    assert server.now()["search"] == "the raw baseline"
    deadline = time.monotonic() + LIMIT_S
    while not (house.home / "kept" / stands(server)["name"] / "run.json").exists():
        assert time.monotonic() < deadline, stands(server)
        time.sleep(0.2)
    time.sleep(1)  # a job of fio has begun
    server.post("replayer/capacities/stop", {})
    while (found := stands(server))["goes_on"]:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    assert found["failure"] == ""
    assert found["is_run"]
    assert "fio" in server.get(f"replayer/runs/{found['name']}")
    assert list((house.home / "mount").iterdir()) == []


def test_what_cannot_be_searched_for_says_why(server: Server) -> None:
    assert "limits" in search(server, limits="look.p95 <")[1]
    assert search(server, limits="lok.p95 < 200ms")[0] == 200  # the search itself knows its names
    deadline = time.monotonic() + LIMIT_S
    while (found := stands(server))["goes_on"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert "did you mean 'look'?" in found["failure"] + found["hint"]


@pytest.mark.parametrize("name", ["..", "%2e%2e%2f..", "none"])
def test_no_other_folder_is_served(server: Server, name: str) -> None:
    with pytest.raises(OSError, match=r"40[04]"):
        server.get(f"replayer/capacities/{name}/report.html")


def test_the_end_of_the_page_is_the_end_of_its_search(shell: Shell) -> None:
    shell.target()
    with serve(shell, "look.yaml", "--target", "mount=mount", "-o", "kept") as server:
        assert search(server, budget="10m")[0] == 200
        until_known(server, ended=False)
        server.process.send_signal(signal.SIGINT)
        server.process.communicate(timeout=60)
    assert children_of(server.process.pid) == []
    assert list((shell.home / "mount").iterdir()) == []
