"""``python -m tests.bench [PART…]``: measure, print tables, write it all as one JSON file."""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tests.bench import (
    agreement,
    arena,
    contenders,
    control,
    crowd,
    imports,
    overhead,
    race,
    replay,
    untar,
)

SHORT = 3
"""Turns of a race for one of the longer measurements (chosen)."""
PARTS = ("c", "fio", "agree", "null", "hub", "crowd", "untar", "import", "replay", "control")


class Judged(Protocol):
    """A figure with a limit."""

    def passes(self) -> bool: ...


def main() -> None:
    options = _parse()
    results: dict[str, Any] = {"machine": _machine(), "turns": options.turns}
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = Path(scratch)
        options.binary = contenders.build_yardstick(options.scratch)
        for part in options.parts or PARTS:
            results[part] = RUNNERS[part](options)
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nall figures: {options.output}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    # A checker and not `choices`: argparse judges the empty list of "all parts" as one value.
    parser.add_argument("parts", nargs="*", type=_part, metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--turns",
        type=int,
        default=7,
        help="turns of each contender (7; three times as many short ones of races)",
    )
    parser.add_argument("--users", type=int, nargs="+", default=[1, 2, 16], help="(1 2 16)")
    parser.add_argument("--arena", nargs="+", default=_arenas(), choices=list(arena.ARENAS))
    parser.add_argument("--crowd", type=int, default=10_000, help="users of the crowd (10000)")
    parser.add_argument(
        "--events", type=int, default=100_000_000, help="of the long trace (100000000)"
    )
    parser.add_argument("-o", "--output", type=Path, default=_default_output(), help="JSON file")
    return parser.parse_args()


def _part(text: str) -> str:
    if text not in PARTS:
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(PARTS)}")
    return text


def _arenas() -> list[str]:
    return ["tmpfs", "ext4"] if arena.has_loop_devices() else ["tmpfs"]


def _default_output() -> Path:
    return Path("bench-results") / f"{time.strftime('%Y%m%dT%H%M%S')}.json"


def _machine() -> dict[str, object]:
    return {"cpus": os.cpu_count(), "kernel": platform.release(), "load": os.getloadavg()}


def _races(
    options: argparse.Namespace, run: Callable[[race.Place, int], list[race.Duel]]
) -> list[dict[str, object]]:
    documents = []
    print(race.HEADER)
    for name in options.arena:
        for users in options.users:
            with arena.ARENAS[name]() as folder:
                duels = run(race.Place(name, folder, options.scratch), users)
            for duel in duels:
                print(duel.row(), flush=True)
            documents += [duel.document() for duel in duels]
    return documents


def _run_c(options: argparse.Namespace) -> object:
    print("\nengine against C, the same system calls")
    print("(batch: files a transaction of the engine's; ratio: engine / rival, above 1 is faster)")
    return _races(
        options,
        lambda place, users: race.race_c(place, users, SHORT * options.turns, options.binary),
    )


def _run_fio(options: argparse.Namespace) -> object:
    print("\nengine against fio's file engines")
    return _races(options, lambda place, users: race.race_fio(place, users, SHORT * options.turns))


def _run_agree(options: argparse.Namespace) -> object:
    documents = []
    print("\nengine and fio on the same patterns (ratios: quartiles of pairs)")
    print(agreement.HEADER)
    for name in options.arena:
        with arena.ARENAS[name]() as folder:
            for found in agreement.agreements(name, folder, options.scratch, SHORT * options.turns):
                print(found.row(), flush=True)
                documents.append(found.document())
    return documents


def _run_null(options: argparse.Namespace) -> object:
    with arena.tmpfs() as folder:
        null = overhead.null_target(folder, options.turns)
    print(f"\nown cost on a null target: {null.op_ns:.0f} ns an op: {_word(passes=null.passes())}")
    print(f"  as a whole: {null.create_ns:.0f} ns an op with three ops a transaction,")
    print(f"  {null.stat_ns:.0f} ns with one (so that includes the cost of a transaction)")
    return null.document()


def _run_hub(options: argparse.Namespace) -> object:
    with arena.tmpfs() as folder:
        hub = overhead.spinning_hub(folder, options.turns)
    print(f"\nspinning greenlet: {hub.loss:+.1%} of throughput lost: {_word(passes=hub.passes())}")
    print(f"  quiet hub          {hub.quiet:>10,.0f} ops/s, p50 and p99 {hub.quiet_ns} ns")
    print(f"  another spins      {hub.other:>10,.0f} ops/s, p50 and p99 {hub.other_ns} ns")
    print(f"  a greenlet spins   {hub.busy:>10,.0f} ops/s, p50 and p99 {hub.busy_ns} ns")
    return hub.document()


def _run_crowd(options: argparse.Namespace) -> object:
    documents = {}
    for name, measure in (("engine", crowd.engine_crowd), ("replayer run", crowd.whole_crowd)):
        with arena.tmpfs() as folder:
            found = measure(folder, options.crowd)
        print(f"\n{name}, crowd of {found.users:,} users: {_word(passes=found.passes())}")
        print(f"  ramped in {found.ramp_s:.1f} s, {found.rss_bytes / 2**20:,.0f} MiB,", end=" ")
        print(f"stopped in {found.stop_s:.1f} s, {found.transactions:,} transactions", flush=True)
        documents[name] = found.document()
    return documents


def _run_untar(options: argparse.Namespace) -> object:
    documents = []
    for name in options.arena:
        with arena.ARENAS[name]() as folder:
            found = untar.untar(folder, options.turns)
        word = _word(passes=found.passes())
        print(f"\nkernel-untar on {name}: {found.ratio:.2f} x GNU tar: {word}")
        print(f"  replayer {found.engine_s:.2f} s, GNU tar {found.tar_s:.2f} s")
        documents.append({"arena": name, **found.document()})
    return documents


def _run_import(options: argparse.Namespace) -> object:
    with arena.tmpfs() as folder:
        found = imports.reading(folder, options.turns)
    print(f"\nimport of strace's text: {found.lines_s:,.0f} lines/s: {_passes(found)}")
    sizes = f"{found.rss_bytes / 2**20:,.0f} MiB, {found.long_rss_bytes / 2**20:,.0f} MiB"
    print(f"  memory {sizes} for ten times as many lines ({found.long_lines_s:,.0f} lines/s)")
    return found.document()


def _run_replay(options: argparse.Namespace) -> object:
    with arena.tmpfs() as folder:
        speed = replay.front_page(folder, options.scratch, options.turns)
        rate = f"{speed.events_s:,.0f} events/s"
        print(f"\nfront page without pauses: {rate}: {_passes(speed)}")
        own = f"{speed.in_call_ns:.0f} ns in its call, {speed.own_ns:.0f} ns beside it"
        print(f"  an event takes {own}", flush=True)
        timed = replay.punctuality(folder, options.scratch)
        late = f"late p50 {timed.late_p50_ns:,} ns, p99 {timed.late_p99_ns:,} ns"
        print(f"timed, {timed.length_s:.0f} s: {late}, drift {timed.drift:.4%}:", end=" ")
        print(_passes(timed), flush=True)
        long = replay.long_trace(folder, options.scratch, options.events)
        memory = f"{long.rss_bytes / 2**20:,.0f} MiB, {long.events_s:,.0f} events/s"
        print(f"{long.events:,} events: {memory}: {_passes(long)}", flush=True)
    likenesses = {name: _likenesses(options, name) for name in options.arena}
    return {
        **{each: found.document() for each, found in (("speed", speed), ("timed", timed))},
        "long": long.document(),
        "likenesses": likenesses,
    }


def _likenesses(options: argparse.Namespace, name: str) -> list[dict[str, object]]:
    documents = []
    with arena.ARENAS[name]() as folder:
        scratch = options.scratch / name
        scratch.mkdir()
        for each in replay.likenesses(folder, scratch, options.turns):
            times = f"untraced {each.untraced_s:.3f} s, replayed {each.closed_s:.3f} s"
            errors = f"({each.error:+.1%}, turns {each.errors[0]:+.1%} to {each.errors[-1]:+.1%})"
            print(f"{name:<6} {each.command:<10} {times} {errors},", end=" ")
            print(f"without pauses {each.asap_s:.3f} s: {_passes(each)}", flush=True)
            documents.append(each.document())
    return documents


def _run_control(_: argparse.Namespace) -> object:
    documents: dict[str, object] = {}
    with arena.tmpfs() as folder:
        for mode in ((), ("--processes", "2")):
            found = control.control(folder, *mode)
            name = "a master of two workers" if mode else "one process"
            print(f"\n{name}, {found.ops_s:,.0f} calls/s: hub {found.hub:.1%} of a core,", end=" ")
            print(f"all threads {found.whole:.1%}: {_passes(found)}", flush=True)
            documents[name] = found.document()
        poll = control.poll(folder)
    print(f"\npoll of the page with {poll.rows} rows: {poll.median_s * 1e3:.1f} ms,", end=" ")
    print(f"longest {poll.longest_s * 1e3:.1f} ms: {_passes(poll)}")
    return {**documents, "poll": poll.document()}


def _passes(figure: Judged) -> str:
    return _word(passes=figure.passes())


def _word(*, passes: bool) -> str:
    return "ok" if passes else "misses its target"


RUNNERS: dict[str, Callable[[argparse.Namespace], object]] = {
    "c": _run_c,
    "fio": _run_fio,
    "agree": _run_agree,
    "null": _run_null,
    "hub": _run_hub,
    "crowd": _run_crowd,
    "untar": _run_untar,
    "import": _run_import,
    "replay": _run_replay,
    "control": _run_control,
}

if __name__ == "__main__":
    main()
