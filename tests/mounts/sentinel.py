"""A scene beside a tree that must not change, whatever is planted or asked for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mounts.scene import Scene, make_scene
from tests.mounts.tree import Tree, differences, fingerprint

__all__ = ["BOTH", "Guarded", "make_guarded", "meanwhile"]

BOTH = pytest.mark.parametrize("confinement", ["as-possible", "guarded"])

CHURN = """\
name: churn
about: Everything that creates, changes and removes, below one folder.
users: {count: 4, think_time: 1ms}
duration: 3s
datasets:
  files: {files: 40, sizes: 1KiB, per_directory: 10, depth: 2}
  work: {directory: true}
mix: {change: 1, save: 1}
transactions:
  change:
    - open: {from: files, pick: uniform, flags: [rdwr, create, trunc], expect: [any]}
    - write: {size: 1KiB, expect: [any]}
    - close: {expect: [any]}
    - chmod: {from: files, pick: uniform, mode: 0o600, expect: [any]}
    - unlink: {from: files, pick: uniform, expect: [any]}
  save:
    - open: {in: work, name: "secret", flags: [create, wronly, trunc], expect: [any]}
    - write: {size: 2KiB, expect: [any]}
    - close: {expect: [any]}
    - mkdir: {in: work, name: "inner-{user}-{seq}", expect: [any]}
    - bind: {in: work, name: "secret-{user}-{seq}", as: moved}
    - rename: {in: work, name: "secret", to: moved, expect: [any]}
    - unlink: {path: moved, expect: [any]}
"""


@dataclass
class Guarded:
    """A scene beside a tree that must not change."""

    scene: Scene
    sentinel: Path
    before: Tree

    def check(self) -> None:
        assert differences(fingerprint(self.sentinel), self.before) == []
        self.scene.check_foreign()


def plant_sentinel(folder: Path) -> Tree:
    """Make a tree with the names that the scenario works on."""
    for name in ("files", "work", "inner"):
        (folder / name).mkdir(parents=True)
    for name in ("secret", "files/secret", "work/secret", "inner/file"):
        (folder / name).write_text(f"this is {name}\n" * 50)
    (folder / "inner" / "file").chmod(0o640)
    (folder / "link").symlink_to("secret")
    return fingerprint(folder)


@contextmanager
def meanwhile(mischief: "threading.Thread", stop: threading.Event) -> Iterator[None]:
    mischief.start()
    try:
        yield
    finally:
        stop.set()
        mischief.join()


def make_guarded(place: Path, home: Path) -> Guarded:
    """Make a target with a sentinel beside it."""
    (place / "mount").mkdir()
    scene = make_scene(home / "shell", place / "mount")
    (scene.shell.home / "churn.yaml").write_text(CHURN)
    sentinel = place / "sentinel"
    before = plant_sentinel(sentinel)
    return Guarded(scene, sentinel, before)
