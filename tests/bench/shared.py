"""Traces and what ``replayer share`` makes of them: are replays as long, and do they ask as much?

    python -m tests.bench.shared [--pairs 7] [--nfs] [TRACE…]

Both are replayed without pauses, in turns, in memory; with ``--nfs`` on kernel NFS in a guest, too
(root, and half an hour).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.mounts.guest import MOUNTS, boot

TRACES = ("wordpress/login", "wordpress/theme-install", "php/sessions", "linux/untar")
MEMORY = Path("/dev/shm")  # noqa: S108 - a memory file system, and folders of its own there
GUEST_S = 3600
REPLAYER = (sys.executable, "-m", "replayer")
WENT_WELL = {0, 4}
"""Exit codes of a replay that was done: 4 says that a user without pauses keeps a CPU busy."""


def main() -> None:
    """Share each trace, replay both, and print how many times as long the shared one takes."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.shared", description=__doc__)
    parser.add_argument("traces", nargs="*", default=TRACES)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--nfs", action="store_true")
    parser.add_argument("--on", type=Path, help="replay on this mount alone (used in the guest)")
    options = parser.parse_args()
    if options.on is not None:
        compare_all(options.traces, options.pairs, options.on)
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        compare_all(options.traces, options.pairs, Path(folder))
    if options.nfs:
        in_guest(options.traces, options.pairs)


def in_guest(traces: Sequence[str], pairs: int) -> None:
    """The same on each export of kernel NFS."""
    for name, (place, *_) in MOUNTS.items():
        with tempfile.TemporaryDirectory() as folder:
            words = (
                sys.executable,
                "-m",
                "tests.bench.shared",
                f"--on={place}",
                f"--pairs={pairs}",
            )
            said = boot(Path(folder)).run(*words, *traces, limit_s=GUEST_S)
        print(name, said, sep="\n", flush=True)


def compare_all(traces: Sequence[str], pairs: int, place: Path) -> None:
    for trace in traces:
        with tempfile.TemporaryDirectory() as folder:
            compare(trace, pairs, place, Path(folder))


def compare(trace: str, pairs: int, place: Path, folder: Path) -> None:
    """Print how many times as long a shared trace takes, and what both asked of an NFS server."""
    shared = folder / "shared"
    command = [*REPLAYER, "share", trace, "-o", str(shared), "--keep-known", "wordpress"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    both = [[replay(name, place) for name in (trace, str(shared))] for _ in range(pairs)]
    ratios = [other["ns"] / one["ns"] for one, other in both]
    asked = [sum(found[at]["asked"] for found in both) / pairs for at in (0, 1)]
    diverged = sum(each["diverged"] for found in both for each in found)
    print(
        f"{trace}: {median(ratios):.3f} times as long ({min(ratios):.3f} to {max(ratios):.3f}), "
        f"{asked[0]:.1f} and {asked[1]:.1f} requests, {diverged} diverged",
        flush=True,
    )


def replay(name: str, place: Path) -> dict[str, Any]:
    """Replay a trace once; return its time, its requests to an NFS server, its divergences."""
    command = [*REPLAYER, "replay", name, f"--target=here={place}", "--pace=asap", "--json"]
    done = subprocess.run([*command, "--quiet"], check=False, capture_output=True, text=True)
    assert done.returncode in WENT_WELL, done.stderr
    document = json.loads(done.stdout)
    (target,) = document["summary"]["targets"]
    return {
        "ns": target["overall"]["transactions"][0]["latency"]["p50_ns"],
        "asked": sum(each["count"] for each in document["server"]),
        "diverged": sum(each["count"] for each in document["replay"]["results"]["diverged"]),
    }


if __name__ == "__main__":
    main()
