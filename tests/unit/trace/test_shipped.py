"""Every trace that comes with the program can be read, whole, and is listed."""

import json
from pathlib import Path

import pytest

from replayer.cli import main
from replayer.trace.errors import TraceError
from replayer.trace.shipped import find_trace

TRACES = Path(__file__).parents[3] / "traces"
SHIPPED = sorted(path.parent for path in TRACES.glob("*/*/trace.json"))


@pytest.mark.parametrize("trace", SHIPPED, ids=lambda path: path.name)
def test_shipped_traces_are_whole(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(trace), "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts["events"] > 0
    assert counts["lines_not_understood"] == 0
    assert counts["calls_not_representable"] == {}
    assert counts["tree_repairs"]["unexplained"] == 0


def test_every_shipped_trace_is_listed() -> None:
    listed = (TRACES / "README.md").read_text()
    assert SHIPPED
    assert [trace.name for trace in SHIPPED if f"{trace.name}`" not in listed] == []


def test_the_front_page_makes_the_calls_that_were_counted_beside_the_trace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ten views; counted in each by system call tracepoints: 249 access, 112 lstat, 46 stat."""
    assert main(["show", str(TRACES / "wordpress" / "front-warm"), "--json"]) == 0
    ops = json.loads(capsys.readouterr().out)["counts"]["ops"]
    assert {op: ops[op] for op in ("access", "lstat", "stat", "open", "fstat", "read")} == {
        "access": 2490,
        "lstat": 1120,
        "stat": 460,
        "open": 960,
        "fstat": 1730,
        "read": 2540,
    }


def test_what_is_no_trace_is_told_with_what_to_do() -> None:
    top = Path(__file__).parents[3]
    for word, hint in (
        ("traces", f"it contains traces, such as {top}/traces/linux/untar"),
        ("scenarios/small-reads.yaml", "run a scenario with: replayer run FILE"),
    ):
        with pytest.raises(TraceError) as caught:
            find_trace(word, top)
        assert caught.value.hint == hint
