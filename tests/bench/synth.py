"""Scenarios that ``replayer synth`` makes, beside replays of the traces that they are made of.

    python -m tests.bench.synth [--pairs 5] [--on FOLDER] [TRACE…]

One user makes the requests of each label, from the scenario and as recorded, in turns.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

TRACES = (
    *("wordpress/front-warm", "wordpress/single-post", "wordpress/login"),
    *("wordpress/dashboard", "wordpress/page-cache-hit"),
)
MEMORY = Path("/dev/shm")  # noqa: S108 - a memory file system, and folders of its own there
REPLAYER = (sys.executable, "-m", "replayer")
WENT_WELL = {0, 4}
"""Exit codes of a run that was made: 4 says that it cannot be decided."""
SECONDS = 5


def main() -> None:
    """Print how many times as long a transaction takes as the request that it stands for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.synth", description=__doc__)
    parser.add_argument("traces", nargs="*", default=TRACES)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--on", type=Path, default=MEMORY)
    options = parser.parse_args()
    for trace in options.traces:
        with tempfile.TemporaryDirectory(dir=options.on) as place:
            compare(trace, options.pairs, Path(place))


def compare(trace: str, pairs: int, place: Path) -> None:
    """Compare all labels of a trace."""
    scenario = place / "mine.yaml"
    command = [*REPLAYER, "synth", trace, "-o", str(scenario), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    for transaction in json.loads(done.stdout)["transactions"]:
        found = [*_pairs(trace, transaction, pairs, place, scenario)]
        for figure in ("p50_ns", "p95_ns"):
            ratios = [own[figure] / other[figure] for own, other in found if other[figure]]
            told = f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
            print(f"{trace} {transaction['label']} {figure}: {told} times as long", flush=True)


def _pairs(
    trace: str, transaction: dict[str, Any], pairs: int, place: Path, scenario: Path
) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    common = (f"--target=here={place}", "-u", "1", "-t", f"{SECONDS}s", "--quiet", "--json")
    alone = f"--set=mix={{{transaction['name']}: 1}}"
    for _ in range(pairs):
        made = _run("run", str(scenario), alone, "--set=users.think_time=0s", *common)
        yield made, _run("replay", trace, "--requests", transaction["label"], *common)


def _run(*words: str) -> dict[str, float]:
    done = subprocess.run([*REPLAYER, *words], check=False, capture_output=True, text=True)
    assert done.returncode in WENT_WELL, done.stderr
    (target,) = json.loads(done.stdout)["summary"]["targets"]
    found: dict[str, float] = target["overall"]["transactions"][0]["latency"]
    return found


if __name__ == "__main__":
    main()
