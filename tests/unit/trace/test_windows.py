from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.trace.errors import TraceError
from replayer.trace.importing import Window, load_windows

LABELS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=20)
TIMES = st.integers(0, 2**61)


@given(st.lists(st.tuples(TIMES, TIMES, LABELS), max_size=8))
def test_a_table_of_requests_reads_to_the_nanosecond(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, str]]
) -> None:
    windows = [Window(min(a, b), max(a, b), label) for a, b, label in rows]
    path = tmp_path_factory.mktemp("windows") / "requests.tsv"
    lines = [f"{show(item.start_ns)}\t{show(item.end_ns)}\t{item.label}\n" for item in windows]
    path.write_text("start\tend\tlabel\n" + "".join(lines))
    assert load_windows(path) == windows


def show(time_ns: int) -> str:
    return f"{time_ns // 10**9}.{time_ns % 10**9:09}"


@pytest.mark.parametrize(
    "line", ["1\t2", "2\t1\tbackwards", "x\t2\tfront", "1\t2\t ", "-1\t2\tfront", "1\tinf\tfront"]
)
def test_a_line_that_is_no_request_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / "requests.tsv"
    path.write_text(f"0\t1\tfront\n{line}\n")
    with pytest.raises(TraceError, match=r"requests\.tsv:2") as told:
        load_windows(path)
    assert "tab-separated" in told.value.hint


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        load_windows(tmp_path / "none")
