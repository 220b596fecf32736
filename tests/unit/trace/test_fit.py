"""A fit in a trace's trace.json: readers see it, and nothing else of the trace changes."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from replayer.trace.errors import TraceError
from replayer.trace.facts import Fit, keep_fit, load_facts
from replayer.trace.reading import load_trace
from replayer.trace.shipped import shipped_traces

FIT = Fit(pauses_percent=131, filesystem="ext4", rounds=7, asap_ns=10, closed_ns=20)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return Path(shutil.copytree(shipped_traces()["wordpress/front-warm"], tmp_path / "trace"))


def test_a_fit_is_read_again_and_taken_out_again(trace: Path) -> None:
    before = load_trace(trace)
    assert load_facts(str(trace), Path()).pauses_percent is None
    keep_fit(trace, FIT)
    found = load_trace(trace)  # its checksum is right
    assert found["calibration"].pop("fit") == asdict(FIT)
    assert load_facts(str(trace), Path()).pauses_percent == 131
    assert {**found, "checksum": ""} == {**before, "checksum": ""}
    keep_fit(trace, None)
    assert {**load_trace(trace), "checksum": ""} == {**before, "checksum": ""}


def test_the_file_keeps_its_mode_and_nothing_is_left_beside_it(trace: Path) -> None:
    names = sorted(path.name for path in trace.iterdir())
    (trace / "trace.json").chmod(0o640)
    keep_fit(trace, FIT)
    assert (trace / "trace.json").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in trace.iterdir()) == names


def test_a_damaged_trace_is_left_as_it_is(trace: Path) -> None:
    path = trace / "trace.json"
    document = json.loads(path.read_text())
    document["note"] = "changed by hand"
    path.write_text(json.dumps(document))
    changed = path.read_bytes()
    with pytest.raises(TraceError, match="checksum differs"):
        keep_fit(trace, FIT)
    assert path.read_bytes() == changed
