"""The page from outside: how soon it is painted, how much it loads, and whether it grows in a run.

    python -m tests.bench.page [--minutes 30]

Needs Chromium. The page of a run on two targets stays open. Every ten seconds the memory of the
program that serves it and the heap of its page are read, after the page has collected its garbage;
the first fifth of the time is not judged.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.behaviour.browser import Page, open_page
from tests.behaviour.page import Server, serve
from tests.behaviour.shell import make_shell
from tests.processes import children_of

PLACES = ("", "replayer/live", "replayer/runs", "replayer/capacities", "replayer/traces", "locust")
EVERY_S = 10.0
SETTLES = 0.2  # of the time, before anything is judged (chosen)
MOST_GROWTH = 0.05
"""Of the mean, in the judged time, by the slope: chosen, below what a person would notice."""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
LOADED = """['resource', 'navigation'].flatMap(kind => performance.getEntriesByType(kind))
  .filter(({ initiatorType }) => initiatorType !== 'fetch')
  .reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0)"""


def main() -> None:
    """Look at each page, then at one for a while; fail if anything grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        shell = make_shell(Path(home))
        targets = [f"--target={name}={shell.target(name)}" for name in ("near", "far")]
        profile = Path(home) / "profile"
        with serve(shell, "tiny.yaml", *targets) as server, open_page(profile) as page:
            page.look(1440, "light")
            pages = {place or "start": _first_sight(page, server, place) for place in PLACES}
            growth = _growth(page, server, options.minutes * 60)
    print(json.dumps({"pages": pages, "growth": growth}, indent=1))
    sys.exit(1 if max(each["growth"] for each in growth.values()) > MOST_GROWTH else 0)


def _first_sight(page: Page, server: Server, place: str) -> dict[str, float]:
    """Return how long it took until something was painted, and how many bytes were loaded."""
    page.call("Network.clearBrowserCache")
    page.open(server.url + place)
    return {"first_paint_ms": round(page.until(PAINTED), 1), "bytes": page.run(LOADED)}


def _growth(page: Page, server: Server, seconds: float) -> dict[str, dict[str, Any]]:
    server.start(targets="near", run_time=f"{seconds + 60:.0f}s")
    server.until("running")
    page.open(f"{server.url}replayer/live")
    begun, looks = time.monotonic(), []
    while (at_s := time.monotonic() - begun) < seconds:
        time.sleep(EVERY_S)
        looks.append((at_s, _server_bytes(server), _heap_bytes(page)))
    judged = np.array([look for look in looks if look[0] > SETTLES * seconds], dtype=float)
    return {
        name: _slope(judged[:, 0], judged[:, column])
        for column, name in ((1, "server"), (2, "page"))
    }


def _slope(times: Any, sizes: Any) -> dict[str, Any]:  # noqa: ANN401 - columns of floats
    slope = float(np.polyfit(times, sizes, 1)[0])
    mean = float(sizes.mean())
    return {"mean_bytes": int(mean), "growth": round(slope * float(np.ptp(times)) / mean, 4)}


def _server_bytes(server: Server) -> int:
    status = Path(f"/proc/{children_of(server.process.pid)[0]}/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines["VmRSS"].split()[0]) * 1024


def _heap_bytes(page: Page) -> int:
    page.call("HeapProfiler.collectGarbage")
    return int(page.call("Runtime.getHeapUsage")["usedSize"])


if __name__ == "__main__":
    main()
