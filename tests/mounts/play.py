"""Plays a piece on several mounts in one run, and reports what each of them made of it.

Also a program, for machines that only a command reaches (the NFS guest): it plays every piece that
it is told and writes a JSON document.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.mounts.pieces import PIECES, Piece
from tests.mounts.tree import Tree, tree_of

__all__ = ["MOUNT_BROKE", "RUNS_WELL", "Outcome", "Played", "play"]

LIMIT_S = 600
Mounts = Mapping[str, Sequence[Path]]
MOUNT_BROKE = 3
RUNS_WELL = {0, 1, 4}  # 1: one of the mounts had errors; 4: too short, or the machine is busy


@dataclass
class Outcome:
    """What one mount made of a piece.

    Attributes:
        calls: ``transaction op outcome`` → how many, with the bytes of each op under ``bytes``.
        errors: Calls and transactions that failed.
        diverged: Events that did not come out as recorded.
        tree: What lay there at the end.
        requests: What NFS mounts asked their server in measured phases.
    """

    calls: dict[str, int] = field(default_factory=dict)
    errors: int = 0
    diverged: list[str] = field(default_factory=list)
    tree: Tree = field(default_factory=dict)
    requests: int = 0


@dataclass
class Played:
    """A piece as it was played.

    Attributes:
        code: The exit code.
        said: What was said on stderr, its end.
        mounts: By name.
    """

    code: int
    said: str
    mounts: dict[str, Outcome]


def play(piece: Piece, mounts: Mounts, home: Path) -> Played:
    """Play a piece in one run, each mount in its turn."""
    home.mkdir(parents=True, exist_ok=True)
    targets = [f"--target={name}={','.join(map(str, paths))}" for name, paths in mounts.items()]
    words = (*piece.words, *targets, "--rounds", "1", "--keep-used", "--json", "--quiet")
    done = subprocess.run(
        [sys.executable, "-m", "replayer", *words],
        check=False,
        cwd=home,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
    )
    try:
        document = json.loads(done.stdout) if done.stdout else None
        outcomes = {} if document is None else _outcomes(document, mounts)
    finally:
        for paths in mounts.values():
            _remove(paths[0])
    return Played(done.returncode, done.stderr[-2000:], outcomes)


def _outcomes(document: Any, mounts: Mounts) -> dict[str, Outcome]:  # noqa: ANN401 - JSON
    found = {}
    asked = {each["target"]: each["count"] for each in document["server"]}
    for summary in document["summary"]["targets"]:
        folder = Path(mounts[summary["name"]][0], f"replayer-{document['id']}")
        found[summary["name"]] = Outcome(
            calls=_calls(summary["overall"]),
            errors=summary["overall"]["errors"],
            diverged=_diverged(document, summary["index"]),
            tree=tree_of(folder),
            requests=asked.get(summary["name"], 0),
        )
    return found


def _calls(overall: Any) -> dict[str, int]:  # noqa: ANN401 - JSON
    calls: dict[str, int] = {}
    for transaction in overall["transactions"]:
        for op in transaction["ops"]:
            key = f"{transaction['name']} {op['op']}"
            calls[f"{key} bytes"] = op["bytes"]
            for outcome in op["outcomes"]:
                calls[f"{key} {outcome['outcome']}"] = outcome["count"]
    return calls


def _diverged(document: Any, target: int) -> list[str]:  # noqa: ANN401 - JSON
    results = (document["replay"] or {}).get("results") or {"diverged": ()}
    return [
        f"{each['count']} x {each['op']}: {each['recorded']} → {each['got']}"
        for each in results["diverged"]
        if each["target"] == target
    ]


def _remove(mount: Path) -> None:
    """Remove what was kept: the tests' own folders only."""
    for folder in mount.glob("replayer-2*"):
        if (folder / ".replayer-run").is_file():
            shutil.rmtree(folder)


def main() -> None:
    """Play what the command line names, and write what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mount", action="append", required=True, metavar="NAME=PATH[,PATH]")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("pieces", nargs="*")
    arguments = parser.parse_args()
    pairs = [word.split("=", 1) for word in arguments.mount]
    mounts = {name: [Path(path) for path in paths.split(",")] for name, paths in pairs}
    for paths in mounts.values():
        paths[0].mkdir(exist_ok=True)
    played = {}
    for piece in PIECES:
        if not arguments.pieces or piece.name in arguments.pieces:
            played[piece.name] = asdict(play(piece, mounts, Path("/tmp", f"play-{os.getpid()}")))  # noqa: S108
            arguments.output.write_text(json.dumps(played))


if __name__ == "__main__":
    main()
