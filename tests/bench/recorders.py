"""``python -m tests.bench.recorders``: what a recorder costs the recorded program, and others.

Each contender is run in turn, on tmpfs: the program alone, recorded with eBPF, beside a recording
with eBPF, and recorded with strace. Figures are medians and minima of all turns.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from replayer import _native
from replayer.capture.ebpf import RING_BYTES
from replayer.capture.strace import find_strace, launch_words
from tests.bench.arena import SHARED_MEMORY

LOOP = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words)
{
	long turns = atol(words[2]);
	int file = open("file", O_RDONLY);
	struct timespec begin, end;
	struct stat found;
	char data[4096];
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (long turn = 0; turn < turns; turn++) {
		if (*words[1] == 's')
			stat("file", &found);
		else if (*words[1] == 'p')
			pread(file, data, sizeof data, 0);
		else {
			int own = open("file", O_RDONLY);
			read(own, data, sizeof data);
			close(own);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	double ns = (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
	printf("%.1f\\n", ns / turns / (*words[1] == 'o' ? 3 : 1));
}
"""
CALLS = {"stat": "s", "open+read+close": "o", "pread 4 KiB": "p"}
FILES = 3_000

Run = Callable[[Sequence[str]], float]


def _calls(words: Sequence[str]) -> float:
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(done.stdout)


def _seconds(words: Sequence[str]) -> float:
    begin = time.monotonic_ns()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.monotonic_ns() - begin) / 1e9


@contextmanager
def _recording(home: Path) -> Iterator[_native.ProbeRecording]:
    recording = _native.ProbeRecording(home / "log.bpf", RING_BYTES, 1 << 40)
    try:
        yield recording
    finally:
        recording.finish()
        assert json.loads(recording.progress())["lost"] == 0


def _measure(words: Sequence[str], run: Run, home: Path, *, turns: int) -> dict[str, list[float]]:
    strace = find_strace()
    found: dict[str, list[float]] = {"alone": [], "ebpf": [], "beside": [], "strace": []}
    for _ in range(turns):
        _clear(home)
        found["alone"].append(run(words))
        with _recording(home) as recording:
            _clear(home)
            found["beside"].append(run(words))
            _clear(home)
            recording.arm()
            found["ebpf"].append(run(words))
        _clear(home)
        found["strace"].append(run(launch_words(strace, home / "log.strace", words)))
    return found


def _clear(home: Path) -> None:
    shutil.rmtree(home / "out", ignore_errors=True)
    (home / "out").mkdir()


def _lay_out(home: Path) -> None:
    for number in range(FILES):
        folder = home / f"src/{number % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(number)).write_bytes(b"x" * (number % 8000))
    (home / "file").write_bytes(b"x" * 4096)
    subprocess.run(["tar", "cf", home / "src.tar", "-C", home, "src"], check=True)
    (home / "loop.c").write_text(LOOP)
    subprocess.run(["cc", "-O2", "-w", "-o", home / "loop", home / "loop.c"], check=True)


def _show(name: str, unit: str, found: dict[str, list[float]]) -> None:
    alone = statistics.median(found["alone"])
    cells = []
    for who, times in found.items():
        middle, least = statistics.median(times), min(times)
        cells.append(f"{who} {middle:,.3g} (x {middle / alone:.2f}, least {least:,.3g})")
    print(f"{name:16} {unit:3} {'  '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--calls", type=int, default=100_000, help="of a loop")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as scratch:
        home = Path(scratch)
        _lay_out(home)
        os.chdir(home)
        for name, letter in CALLS.items():
            words = ["./loop", letter, str(options.calls)]
            _show(name, "ns", _measure(words, _calls, home, turns=options.turns))
        programs = {
            "cp -a": ["cp", "-a", "src", "out"],
            "tar xf": ["tar", "xf", "src.tar", "-C", "out"],
        }
        if shutil.which("rsync"):
            programs["rsync -a"] = ["rsync", "-a", "src", "out"]
        for name, words in programs.items():
            _show(name, "s", _measure(words, _seconds, home, turns=options.turns))
        os.chdir("/")


if __name__ == "__main__":
    main()
