"""A call that only finds the end counts, and is in no percentile of the calls that move data."""

from replayer.measure.record import load_run
from tests.behaviour.shell import Shell

SCENARIO = """\
name: ends
about: Reads to the end.
users: {count: 1}
iterations: 500
datasets:
  files: {files: 20, sizes: 8KiB}
mix: {look: 1}
transactions:
  look:
    - open: {from: files}
    - read: {size: 64KiB, until: end}
    - close
"""


def test_reads_until_the_end_have_times_of_data_only(shell: Shell) -> None:
    shell.target()
    (shell.home / "ends.yaml").write_text(SCENARIO)
    done = shell.run(
        *("run", "ends.yaml", "--target", "here=mount", "--json", "-o", "out", "--quiet")
    )
    assert done.went_well, done.out
    (target,) = done.document()["summary"]["targets"]
    (look,) = target["overall"]["transactions"]
    (read,) = [op for op in look["ops"] if op["op"] == "read"]
    counts = {found["outcome"]: found["count"] for found in read["outcomes"]}
    assert counts["ok"] == counts["END"] == read["time"]["count"] == look["count"] == 500
    assert read["count"] == 2 * look["count"]
    assert (read["errors"], look["errors"]) == (0, 0)
    log = load_run(shell.home / "out").log
    data = [
        histogram
        for key, histogram in log.histograms.items()
        if (key.op, key.outcome, key.segment.phase) == ("read", "ok", "measured")
    ]
    assert read["time"]["p50_ns"] == data[0].percentile(50)
    table = shell.run("report", "out", "--details").out
    (row,) = [line for line in table.splitlines() if "found the end" in line]
    assert f"{look['count']:,}" in row
