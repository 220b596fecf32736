"""Pauses as a recording with eBPF tells them: held against a program that tells its own."""

from collections import defaultdict
from itertools import pairwise
from statistics import quantiles

from replayer.trace.reading import count_trace
from tests.behaviour.probe_records import probed_calls
from tests.behaviour.probed import load, needs_probe
from tests.behaviour.shell import Shell, compile_program

TURNS = 2000
RIGHT_TO_NS = 1000
MOSTLY = 0.9


@needs_probe
def test_times_between_calls_are_right_to_a_microsecond(shell: Shell) -> None:
    program = compile_program("gaps.c", shell.home / "gaps")
    (shell.home / "root").mkdir()
    (shell.home / "root/file").write_bytes(bytes(64))
    words = ("capture", "--keep-raw", "-o", "trace", "--root", "root", "--")
    done = shell.run(*words, program, "root/file", str(TURNS))
    assert done.code == 0, done.err
    told = [(int(meant), int(was)) for meant, was in map(str.split, done.out.splitlines())]
    reads = [
        call for call in probed_calls(shell.home / "trace/raw/log.bpf.xz") if call.name == "pread64"
    ][-TURNS - 1 :]  # the loader has some, too
    rest_ns = load(shell)["calibration"]["gap_ns"]
    found = [
        after.start_ns - before.start_ns - before.duration_ns - after.probe_ns - rest_ns
        for before, after in pairwise(reads)
    ]
    added = defaultdict(list)
    for (meant, was), recorded in zip(told, found, strict=True):
        added[meant].append(recorded - was)
    # Where the program was interrupted between its clock and its call, both are longer.
    for meant, differences in added.items():
        low, *_ = quantiles(differences, n=4)
        assert -RIGHT_TO_NS <= min(differences) <= low <= RIGHT_TO_NS, (meant, differences)
    pauses_ns = count_trace(shell.home / "trace", None).pauses.pauses_ns
    # Of what it waited for a CPU a part is left out, and it may have waited in the midst of a gap.
    assert pauses_ns >= MOSTLY * sum(meant - RIGHT_TO_NS for meant, _ in told), (
        "too much is taken off"
    )
