"""``replayer capacity`` on a local folder: what it finds, refuses and leaves."""

import json
import signal
from pathlib import Path

import pytest

from tests.behaviour.parts import Meeting, networks, workers
from tests.behaviour.shell import LOOK_ONLY, Shell, Until


@pytest.fixture
def words(shell: Shell) -> tuple[str, ...]:
    """A scenario and a target of that name."""
    (shell.home / "tiny.yaml").write_text(LOOK_ONLY)
    return ("capacity", "tiny.yaml", "--target", f"here={shell.target()}")


def test_a_budget_for_two_trials_tells_what_is_carried_at_least(
    shell: Shell, words: tuple[str, ...], tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("stored_gb: 1\ntargets: {here: {per_month: 26.28, per_gb_read: 1}}\n")
    more = ("--prices", prices, "--html", tmp_path / "page.html", "--json", "-o", tmp_path / "out")
    limits = ("--threshold", "look.p95 < 200ms")
    done = shell.run(*words, *limits, *more, "--budget", "40s")
    assert done.code == 4, done.err
    document = json.loads(done.out)
    assert document == json.loads((tmp_path / "out/capacity.json").read_text())
    (found,) = document["targets"]
    loads = [point["load"] for point in found["trials"]]
    assert loads[:2] == [10, 40]
    assert all(point["holds"] and point["transaction"]["p95_ns"] > 0 for point in found["trials"])
    assert (found["capacity"], found["at_least"], found["less_than"]) == (None, loads[-1], None)
    (priced,) = document["prices"]["targets"]
    views = priced["views_per_s"]
    assert views == pytest.approx(loads[-1], rel=0.3)  # arrivals are drawn
    assert priced["per_month"] == pytest.approx(26.28 + views * 730 * 3600 * 1024e-9)
    assert f"at least {loads[-1]:.0f}/s" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "out/001-here/run.json").exists()
    assert list((shell.home / "mount").iterdir()) == []


def test_ctrl_c_ends_the_trial_and_shows_what_is_known(
    shell: Shell, words: tuple[str, ...], until: Until, tmp_path: Path
) -> None:
    limits = ("--threshold", "look.p95 < 200ms")
    process = shell.start(*words, *limits, "-o", tmp_path / "out")
    until((tmp_path / "out/capacity.json").exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "at least " in out
    assert list((shell.home / "mount").iterdir()) == []


OWN = """
name: own
about: A file of each user's own.
users: {count: 64}
duration: 10s
datasets:
  files: {files: 64, sizes: 1KiB}
mix: {hold: 1}
transactions:
  hold: [open: {from: files, pick: own}, think: 100ms, close]
"""


@pytest.mark.nightly
def test_a_scenario_whose_files_are_too_few_for_more_users_is_searched_all_the_same(
    shell: Shell, tmp_path: Path
) -> None:
    (shell.home / "own.yaml").write_text(OWN)
    # A slow machine starts the program in ten seconds, as often as there are trials.
    limits = ("--threshold", "hold.p95 < 150ms", "--budget", "200s")
    done = shell.run(
        *("capacity", "own.yaml", "--target", f"here={shell.target()}"),
        *(*limits, "-o", tmp_path / "out"),
    )
    assert "not with so many users: " in done.err
    (found,) = json.loads((tmp_path / "out/capacity.json").read_text())["targets"]
    assert found["failure"] is None
    assert found["at_least"] >= 160
    assert 640 in [trial["load"] for trial in found["trials"] if trial["client_ran_out"]]


def test_users_are_a_load_too(shell: Shell, words: tuple[str, ...], tmp_path: Path) -> None:
    more = ("--by", "users", "--budget", "20s", "--json", "-o", tmp_path / "out")
    done = shell.run(*words, "--threshold", "look.p95 < 200ms", *more)
    document = json.loads(done.out)
    assert document["unit"] == "users"
    (point,) = document["targets"][0]["trials"]
    assert point["load"] == 2
    run = json.loads((tmp_path / "out/001-here/run.json").read_text())
    assert run["load"]["users"] == 2
    assert run["load"]["loop"] == "closed"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--threshold", "lok.p95 < 1s", "--budget", "2m"), "did you mean 'look'?"),
        (("--threshold", "look.mean < 1s"), "is no goal of a capacity"),
        (("--threshold", "look.p95 < 1s", "--precision", "0.1%"), "--precision"),
        (("--threshold", "look.p95 < 1s", "-o", "tiny.yaml"), "exists"),
        (("--threshold", "look.p95 < 1s", "--html", "tiny.yaml"), "exists"),
        (("--threshold", "look.p95 < 1s", "--prices", "none.yaml"), "none.yaml"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_trial(
    shell: Shell, words: tuple[str, ...], more: tuple[str, ...], told: str
) -> None:
    done = shell.run(*words, *more)
    assert done.code == 2, done.out
    assert told in done.err
    assert list((shell.home / "mount").iterdir()) == []


@pytest.mark.usefixtures("words")
def test_workers_on_other_machines_serve_all_trials_of_a_search(
    shell: Shell, tmp_path: Path
) -> None:
    places = {name: tmp_path / name for name in ("here", "there")}
    for place in places.values():
        place.mkdir()
    targets = [word for name, place in places.items() for word in ("--target", f"{name}={place}")]
    lines = [("run", "tiny.yaml", *targets, "-o", f"part{number}") for number in range(2)]
    with networks(2) as meeting, workers(shell, meeting, lines) as processes:
        done = shell.run(
            *("capacity", "tiny.yaml", "--target", "there", "--threshold", "look.p95 < 200ms"),
            *("--budget", "50s", "--json", "-o", tmp_path / "out"),
            *("--master", "--expect-workers", "2", *meeting.of_master),
        )
        assert [process.poll() for process in processes] == [None, None]
        for process in processes:
            process.send_signal(signal.SIGINT)
        assert [process.wait(20) for process in processes] == [4, 4]
    (found,) = done.document()["targets"]
    assert [point["load"] for point in found["trials"]][:2] == [10, 40], done.err
    runs = [json.loads(run.read_text()) for run in sorted(tmp_path.glob("out/*/run.json"))]
    assert [len(run["clients"]) for run in runs] == [2] * len(found["trials"])
    assert all(list(place.iterdir()) == [] for place in places.values())


@pytest.mark.parametrize("word", ["there=mount", "/mnt"])
@pytest.mark.usefixtures("words")
def test_a_master_is_given_no_path(shell: Shell, word: str) -> None:
    limits = ("--threshold", "look.p95 < 200ms", "--master", *Meeting().of_master)
    done = shell.run("capacity", "tiny.yaml", "--target", word, *limits)
    assert done.code == 2
    assert f"--target {word}: a master uses no target" in done.err


def test_users_that_wait_for_each_other_have_no_rate(shell: Shell) -> None:
    limits = ("--threshold", "read.p95 < 1s")
    done = shell.run("capacity", "visibility", "--target", f"here={shell.target()}", *limits)
    assert done.code == 2
    assert "visibility: its users have roles" in done.err


def test_without_time_for_one_trial_it_says_so(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run(*words, "--threshold", "look.p95 < 200ms", "--budget", "5s")
    assert done.code == 4
    assert "the budget has no time for one trial of 10 s" in done.out


def test_a_capacity_is_looked_for_alone_and_beside_a_neighbour(
    shell: Shell, words: tuple[str, ...], tmp_path: Path
) -> None:
    limits = ("--threshold", "look.p95 < 200ms", "--neighbour", "look.yaml@5/s")
    done = shell.run(*words, *limits, "--budget", "40s", "--json", "-o", tmp_path / "out")
    assert done.code == 4, done.err
    document = json.loads(done.out)
    assert document["neighbour"]["rate_per_s"] == 5
    found = {one["name"]: one for one in document["targets"]}
    assert found.keys() == {"here", "here+look"}
    assert found["here+look"]["alone"] == "here"
    assert [point["load"] for point in found["here+look"]["trials"]][:1] == [10]
    beside = json.loads((tmp_path / "out/neighbour/1-round-2/run.json").read_text())
    assert beside["summary"]["targets"][0]["overall"]["transactions"][0]["count"] > 10
    assert list((shell.home / "mount").iterdir()) == []


def test_a_neighbour_that_cannot_run_is_refused_before_any_trial(
    shell: Shell, words: tuple[str, ...]
) -> None:
    done = shell.run(*words, "--threshold", "look.p95 < 1s", "--neighbour", "visibility")
    assert (done.code, "its users have roles" in done.err) == (2, True)
    assert list((shell.home / "mount").iterdir()) == []
