"""What is known of a trace before it is replayed, and how traces are found."""

import hashlib
import json
from pathlib import Path

import pytest

import replayer
from replayer.trace.errors import TraceError
from replayer.trace.facts import load_facts
from replayer.trace.shipped import find_trace, shipped_traces

ROOT = Path(__file__).parents[3]


def test_every_shipped_trace_is_found_by_its_name() -> None:
    folders = {path.parent for path in (ROOT / "traces").glob("*/*/trace.json")}
    assert folders
    found = shipped_traces()
    assert {path.resolve() for path in found.values()} == folders
    assert found["wordpress/front-warm"].parts[-2:] == ("wordpress", "front-warm")


def test_the_package_carries_the_traces() -> None:
    inside = Path(replayer.__file__).parent / "traces"
    assert {path.name for path in inside.iterdir()} == {
        path.name for path in (ROOT / "traces").iterdir()
    }


def test_a_folder_comes_before_a_shipped_name(tmp_path: Path) -> None:
    own = tmp_path / "wordpress" / "front-warm"
    own.mkdir(parents=True)
    (own / "trace.json").write_text("{}")
    assert find_trace("wordpress/front-warm", tmp_path) == own
    assert find_trace("wordpress/front-warm", ROOT).resolve() == (
        ROOT / "traces" / "wordpress" / "front-warm"
    )


@pytest.mark.parametrize(
    "name", ["wordpress/frnt-warm", "front-wram", "traces/wordpress/front-wam"]
)
def test_a_wrong_name_is_told_the_nearest_one(name: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such trace") as told:
        find_trace(name, tmp_path)
    assert told.value.hint == "did you mean wordpress/front-warm?"


def test_a_folder_of_traces_is_none_itself(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"is not a trace: it has no trace\.json") as told:
        find_trace(str(ROOT / "traces" / "wordpress"), tmp_path)
    assert "dashboard" in told.value.hint


def test_facts_are_those_of_trace_json() -> None:
    facts = load_facts("wordpress/login", Path())
    text = (ROOT / "traces/wordpress/login/trace.json").read_bytes()
    assert facts.sha256 == hashlib.sha256(text).hexdigest()
    assert facts.events == json.loads(text)["counts"]["events"]
    assert facts.requests == {"login POST": 1, "login form": 1}
    assert not facts.changes_files


def test_a_trace_that_writes_is_known_to_change_files() -> None:
    assert load_facts("wordpress/upload", Path()).changes_files
