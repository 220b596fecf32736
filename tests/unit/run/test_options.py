"""The options of a run, written and read back."""

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.report.forms import ReportFiles
from replayer.run.options import (
    ReplaySettings,
    Settings,
    add_options,
    add_replay_options,
    add_scenario_options,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
LISTS = st.lists(TEXTS, max_size=3).map(tuple)
REPLAYS = st.builds(
    ReplaySettings,
    trace=TEXTS,
    pace=st.sampled_from(["asap", "closed", "timed", "open"]),
    speed=st.none() | st.floats(1e-6, 1e9),
    rate=st.none() | st.sampled_from(["50/s", "0.5/min"]),
    loops=st.none() | st.integers(1, 10**9),
    requests=st.none() | LISTS,
    check_order=st.booleans(),
    event_log=st.none() | st.just(Path("an event/log")),
)
SETTINGS = st.builds(
    Settings,
    users=st.none() | st.integers(1, 10**6),
    spawn_rate=st.none() | st.floats(1e-3, 1e6),
    run_time_s=st.none() | st.integers(1, 10**6),
    scenario=st.none() | TEXTS,
    replay=st.none() | REPLAYS,
    targets=LISTS,
    cache=st.sampled_from([None, "as-is", "cold", "warm"]),
    remount_command=st.none() | TEXTS,
    rounds=st.none() | st.integers(1, 1000),
    seed=st.none() | st.integers(0, 2**64 - 1),
    changes=LISTS,
    keep=st.sampled_from([None, "laid-out", "used"]),
    reuse=LISTS,
    output=st.none() | st.just(Path("somewhere/else")),
    thresholds=LISTS,
    results=st.sampled_from(["screen", "details", "json", "none"]),
    files=st.builds(
        ReportFiles,
        html=st.none() | st.just(Path("a page.html")),
        junit=st.none() | st.just(Path("some/verdict.xml")),
    ),
    quiet=st.booleans(),
    command=LISTS,
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    made.add_argument("--scenario")
    made.add_argument("--results", default="screen")
    made.add_argument("--trace")
    made.set_defaults(command_line=(), num_users=None, spawn_rate=None, run_time=None)
    add_options(made)
    add_scenario_options(made)
    add_replay_options(made)
    return made


def namespace_of(settings: Settings) -> argparse.Namespace:
    """What a parser reads such settings as."""
    replay = settings.replay or ReplaySettings("")
    return argparse.Namespace(
        num_users=settings.users,
        spawn_rate=settings.spawn_rate,
        run_time=settings.run_time_s,
        scenario=settings.scenario,
        trace=None if settings.replay is None else replay.trace,
        pace=replay.pace,
        speed=replay.speed,
        rate=replay.rate,
        loops=replay.loops,
        requests=None if replay.requests is None else list(replay.requests),
        check_order=replay.check_order,
        event_log=None if replay.event_log is None else str(replay.event_log),
        target=list(settings.targets),
        reuse=list(settings.reuse),
        cache=settings.cache,
        remount_command=settings.remount_command,
        rounds=settings.rounds,
        seed=settings.seed,
        changes=list(settings.changes),
        keep=settings.keep,
        output=None if settings.output is None else str(settings.output),
        threshold=list(settings.thresholds),
        results=settings.results,
        report_html=None if settings.files.html is None else str(settings.files.html),
        junit=None if settings.files.junit is None else str(settings.files.junit),
        quiet=settings.quiet,
        command_line=settings.command,
    )


@given(SETTINGS)
def test_settings_pass_through_another_parser_as_its_defaults(settings: Settings) -> None:
    # Locust's parser has the same options: it gets what ours has read, and reads nothing of it.
    locusts = parser()
    locusts.set_defaults(**vars(namespace_of(settings)))
    assert Settings.read(locusts.parse_args([])) == settings


@pytest.mark.parametrize(
    "words",
    [
        *(["--rounds=0"], ["--rounds=x"], ["--seed=-1"], ["--cache=hot"]),
        *(["--speed=0"], ["--speed=-1"], ["--speed=inf"], ["--speed=nan"], ["--speed=fast"]),
        ["--keep", "--keep-used"],
        *(["--loops=0"], ["--loops=1.5"], ["--rate=5"], ["--rate=0/s"], ["--pace=quick"]),
    ],
)
def test_numbers_out_of_bounds_are_refused(words: list[str]) -> None:
    with pytest.raises(argparse.ArgumentError):
        parser().parse_args(words)
