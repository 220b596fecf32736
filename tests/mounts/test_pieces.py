"""Every scenario and every trace on every mount: no unexpected error, and all of them alike."""

import re
from pathlib import Path

import pytest

from tests.mounts.fleet import CHOSEN, QUICK, WANTED, Fleet
from tests.mounts.pieces import PIECES, Piece
from tests.mounts.play import MOUNT_BROKE, RUNS_WELL, Outcome
from tests.mounts.tree import Tree, differences

pytestmark = [pytest.mark.mounts, pytest.mark.timeout(900)]  # of a piece on all mounts

REFERENCE = "tmpfs"

_OWN_PAGES = "how many calls a listing takes: FUSE answers in pages of its own size"
_PAGES = {"getdents ok": _OWN_PAGES, "getdents END": _OWN_PAGES}
_LISTS = {
    "xattr E": "no POSIX access control lists: EOPNOTSUPP where others say ENODATA",
    "setxattr ok": "nor can any be set",
    "removexattr ok": "nor be removed",
}
_NONE = {"xattr ": "no extended attributes at all: EOPNOTSUPP where others list none"}
_CLONES = {"clone ": "files can be cloned, which the reference and the recorded ext4 cannot do"}

ALLOWED: dict[str, dict[str, str]] = {
    "sshfs": {**_PAGES, **_NONE},
    "xfs": _CLONES,
    "btrfs": _CLONES,
    "gluster": {**_PAGES, **_LISTS},
    "zfs-fuse": _NONE,
    "nfs-sync": _LISTS,
    "nfs-async": _LISTS,
}
"""By mount: what may differ from the reference (a part of ``transaction op outcome``), and why."""


_LINK = "SFTP's SETSTAT follows links: it fails for those that lead to nothing yet"

ALLOWED_EVENTS: dict[str, dict[str, str]] = {
    "sshfs": {"lchown: ok → ENOENT": _LINK, "lutimens: ok → ENOENT": _LINK},
    "btrfs": {"getdents: ok → less": "a listing ends with what was there when it was begun"},
    "gluster": {"getdents: ok → more": "listings have entries just removed (cause not known)"},
}
"""By mount: divergences of replays that are known of it, and why."""


NOT_KEPT: dict[tuple[str, str], str] = {
    ("close-to-open", "sshfs"): "it keeps attributes for a second: an open shows the old length",
    ("close-to-open", "gluster"): "its caches are not asked anew at open by default",
    ("visibility", "gluster"): "a file that is replaced while it is opened: ESTALE, now and then",
    ("linux/untar", "sshfs"): "links that lead upwards cannot be read there: EPERM",
    ("wordpress/deploy-release", "sshfs"): "links that lead upwards cannot be read there: EPERM",
}
"""By piece and mount: what is looked for is known not to be so there, and why."""


COPIED = {
    "wordpress/deploy-cp": "deploy-cp/dst",
    "wordpress/deploy-release": "deploy-release/site/releases/104",
}
"""By piece: what is made for its owner alone, before an access control list says who else may."""


def chosen() -> list[Piece]:
    return [piece for piece in PIECES if piece.quick or WANTED == "all"]


def outcome_on(fleet: Fleet, piece: Piece, mount: str) -> Outcome:
    if mount in fleet.missing:
        pytest.skip(f"{mount}: {fleet.missing[mount]}")
    played = fleet.played(piece)
    may_break = any((piece.name, each) in NOT_KEPT for each in played.mounts)
    assert played.code in RUNS_WELL | ({MOUNT_BROKE} if may_break else set()), played.said
    return played.mounts[mount]


@pytest.mark.parametrize("mount", CHOSEN)
@pytest.mark.parametrize("piece", chosen(), ids=lambda piece: piece.name)
def test_a_piece_ends_alike_on_every_mount(fleet: Fleet, piece: Piece, mount: str) -> None:
    judge(piece, mount, outcome_on(fleet, piece, mount), outcome_on(fleet, piece, REFERENCE))


def judge(piece: Piece, mount: str, outcome: Outcome, reference: Outcome) -> None:
    """Hold what a mount made of a piece against what the reference made of it."""
    known = ALLOWED_EVENTS.get(mount, {})
    diverged = [event for event in outcome.diverged if event.partition(" x ")[2] not in known]
    assert diverged == []
    broken = (piece.name, mount) in NOT_KEPT
    assert outcome.errors == 0 or outcome.diverged or broken
    assert outcome.calls
    if piece.exact and not broken:
        if not outcome.diverged:
            assert differences(as_allowed(outcome, mount), as_allowed(reference, mount)) == []
        assert differences(outcome.tree, tree_on(mount, piece, reference)) == []


def tree_on(mount: str, piece: Piece, reference: Outcome) -> Tree:
    """Return the final tree of the reference as it has to be on a mount."""
    has_lists = not any(part.startswith("xattr") for part in ALLOWED.get(mount, {}))
    if has_lists or piece.name not in COPIED:
        return reference.tree
    copied = COPIED[piece.name]
    return {
        path: _for_the_owner(facts) if Path(path).is_relative_to(copied) else facts
        for path, facts in reference.tree.items()
    }


def _for_the_owner(facts: str) -> str:
    return re.sub(r" 0(\d)\d\d", r" 0\g<1>00", facts, count=1)


def as_allowed(outcome: Outcome, mount: str) -> dict[str, str]:
    """Return how often each call came out how, without what may differ on a mount."""
    allowed = ALLOWED.get(mount, {})
    return {
        key: str(count)
        for key, count in outcome.calls.items()
        if not any(part in key for part in allowed)
    }


def test_the_reference_is_among_the_mounts_that_were_asked_for() -> None:
    assert REFERENCE in CHOSEN
    assert set(QUICK) <= set(CHOSEN) or "," in WANTED or WANTED in QUICK
