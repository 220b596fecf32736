"""The options of a run, written and read back."""

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.load.options import Settings, add_options, words_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
LISTS = st.lists(TEXTS, max_size=3).map(tuple)
SETTINGS = st.builds(
    Settings,
    scenario=st.none() | TEXTS,
    targets=LISTS,
    cache=st.sampled_from([None, "as-is", "cold", "warm"]),
    remount_command=st.none() | TEXTS,
    rounds=st.none() | st.integers(1, 1000),
    seed=st.none() | st.integers(0, 2**64 - 1),
    changes=LISTS,
    keep=st.booleans(),
    reuse=LISTS,
    output=st.none() | st.just(Path("somewhere/else")),
    thresholds=LISTS,
    results=st.sampled_from(["tables", "json", "none"]),
    quiet=st.booleans(),
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    made.add_argument("--scenario")
    made.add_argument("--results", default="tables")
    add_options(made)
    return made


@given(SETTINGS)
def test_settings_come_back_from_the_words_they_are_written_as(settings: Settings) -> None:
    assert Settings.read(parser().parse_args(words_of(settings))) == settings


@pytest.mark.parametrize("words", [["--rounds=0"], ["--rounds=x"], ["--seed=-1"], ["--cache=hot"]])
def test_numbers_out_of_bounds_are_refused(words: list[str]) -> None:
    with pytest.raises(argparse.ArgumentError):
        parser().parse_args(words)
