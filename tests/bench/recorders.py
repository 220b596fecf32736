"""``python -m tests.bench.recorders``: what a recorder costs the recorded program, and others.

Each contender is run in turn, on tmpfs: the program alone, recorded with eBPF, beside a recording
with eBPF, and, if asked for, recorded with strace. Figures are medians and minima of all turns.
``--storm SECONDS`` instead: four threads make 400,000 calls a second; what is lost of them.
``--page`` instead: a page of PHP, whose server is attached to.
"""

import argparse
import http.client
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
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
#include <pthread.h>
static long part, seconds;
/* A part of the calls in each millisecond. */
static void *storm(void *nothing)
{
	struct timespec now, begin;
	struct stat found;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (long done = 0; done < part;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		double passed = (now.tv_sec - begin.tv_sec) + (now.tv_nsec - begin.tv_nsec) / 1e9;
		long due = part * passed / seconds;
		if (due > part)
			due = part;
		while (done < due && ++done)
			stat("file", &found);
		usleep(1000);
	}
	return nothing;
}
int main(int count, char **words)
{
	long turns = atol(words[2]);
	if (*words[1] == 't') {
		pthread_t threads[4];
		part = turns;
		seconds = atol(words[3]);
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], 0, storm, 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], 0);
		return 0;
	}
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
MODULES = 300
THREADS = 4
STORM_CALLS_S = 400_000
SECONDS = 3
"""In which a page is asked for, in each turn."""

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


def _measure(
    words: Sequence[str], run: Run, home: Path, *, turns: int, traces: bool
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"alone": [], "ebpf": [], "beside": []}
    if traces:
        found["strace"] = []
    for _ in range(turns):
        _clear(home)
        found["alone"].append(run(words))
        with _recording(home) as recording:
            _clear(home)
            found["beside"].append(run(words))
            _clear(home)
            recording.arm()
            found["ebpf"].append(run(words))
        if traces:
            _clear(home)
            strace = launch_words(find_strace(), home / "log.strace", words)
            found["strace"].append(run(strace))
    return found


def _storm(home: Path, seconds: int) -> None:
    """Record 400,000 calls a second of four threads: how many are lost, and what it takes."""
    calls = STORM_CALLS_S * seconds
    begin = time.monotonic()
    with _recording(home) as recording:
        recording.arm()
        words = ["./loop", "t", str(calls // THREADS), str(seconds)]
        with subprocess.Popen(words) as loop:
            time.sleep(seconds / 10)
            early_kib = _most_kib()
        assert loop.returncode == 0
        took_s = time.monotonic() - begin
        late_kib = _most_kib()
    told = json.loads(recording.progress())
    size = (home / "log.bpf").stat().st_size
    print(
        f"storm: {told['records'] / took_s:,.0f} records a second for {took_s:.0f} s, "
        f"{told['lost']} lost, {size / told['records']:.1f} bytes each; the recorder took "
        f"{late_kib / 1024:,.0f} MiB at most (after a tenth of the time {early_kib / 1024:,.0f}), "
        f"its ring {RING_BYTES >> 20} MiB of it; its log has {size / 1e9:.2f} GB"
    )


def _most_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


PAGE = """<?php
foreach (range(1, 100) as $part) require "part$part.php";
session_save_path("sessions"); session_id("bench"); session_start(); $_SESSION["at"] = time();
echo strlen(serialize(get_defined_vars()));
"""


@contextmanager
def _site(home: Path) -> Iterator[tuple[int, int]]:
    """Serve a page of 100 files and a session with PHP's own server: its process and its port."""
    site = home / "site"
    (site / "sessions").mkdir(parents=True)
    (site / "index.php").write_text(PAGE)
    for part in range(1, 101):
        (site / f"part{part}.php").write_text(f"<?php $part{part} = '{'x' * 500}';")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    words = ["php", "-S", f"127.0.0.1:{port}", "-t", "."]
    with subprocess.Popen(words, cwd=site, stdout=quiet, stderr=quiet) as server:
        time.sleep(1)
        try:
            yield server.pid, port
        finally:
            server.kill()


def _views(port: int, seconds: float, interval_s: float) -> list[float]:
    """Ask for the page, each time that it is due: latencies in ms from when it was."""
    begin = time.monotonic()
    due, found = begin, []
    while due < begin + seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        asked = due if interval_s else time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/index.php")
        assert connection.getresponse().read().isdigit()
        connection.close()
        found.append((time.monotonic() - asked) * 1e3)
        due = due + interval_s if interval_s else time.monotonic()
    return found


def _page(home: Path, turns: int) -> None:
    """A page of PHP at half of what its server can do, alone and attached to, in turns."""
    with _site(home) as (server, port):
        interval_s = 2 * statistics.median(_views(port, 3, 0)) / 1e3
        found: dict[str, list[list[float]]] = {"alone": [], "attached": []}
        for _ in range(turns):
            found["alone"].append(_views(port, SECONDS, interval_s))
            with _recording(home) as recording:
                recording.attach_to([server])
                found["attached"].append(_views(port, SECONDS, interval_s))
        for who, runs in found.items():
            middle = statistics.median(statistics.median(run) for run in runs)
            rate = statistics.median(len(run) / SECONDS for run in runs)
            print(f"page {who}: p50 {middle:.2f} ms, {rate:.0f} requests a second")


def _clear(home: Path) -> None:
    shutil.rmtree(home / "out", ignore_errors=True)
    (home / "out").mkdir()


def _lay_out(home: Path) -> None:
    for number in range(FILES):
        folder = home / f"src/{number % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(number)).write_bytes(b"x" * (number % 8000))
    (home / "file").write_bytes(b"x" * 4096)
    (home / "modules").mkdir()
    for number in range(MODULES):
        text = f"def f{number}(value):\n    return [value + {number}, 'x' * {number}]\n"
        (home / f"modules/m{number}.py").write_text(text)
    subprocess.run(["tar", "cf", home / "src.tar", "-C", home, "src"], check=True)
    (home / "loop.c").write_text(LOOP)
    subprocess.run(
        ["cc", "-O2", "-w", "-pthread", "-o", home / "loop", home / "loop.c"], check=True
    )


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
    parser.add_argument("--strace", action="store_true", help="record with strace, too")
    parser.add_argument("--storm", type=int, metavar="SECONDS")
    parser.add_argument("--page", action="store_true", help="a page of PHP instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as scratch:
        home = Path(scratch)
        _lay_out(home)
        os.chdir(home)
        if options.storm:
            _storm(home, options.storm)
            return
        if options.page:
            _page(home, options.turns)
            return
        for name, letter in CALLS.items():
            words = ["./loop", letter, str(options.calls)]
            _show(
                name,
                "ns",
                _measure(words, _calls, home, turns=options.turns, traces=options.strace),
            )
        programs = {
            "cp -a": ["cp", "-a", "src", "out"],
            "tar xf": ["tar", "xf", "src.tar", "-C", "out"],
        }
        if shutil.which("rsync"):
            programs["rsync -a"] = ["rsync", "-a", "src", "out"]
        subprocess.run(["git", "init", "-q", "."], check=True)
        programs["git status"] = ["git", "status", "--short"]
        programs["compileall"] = [sys.executable, "-m", "compileall", "-qf", "modules"]
        for name, words in programs.items():
            _show(
                name,
                "s",
                _measure(words, _seconds, home, turns=options.turns, traces=options.strace),
            )
        os.chdir("/")


if __name__ == "__main__":
    main()
