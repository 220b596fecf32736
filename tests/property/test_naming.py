"""New names say nothing of the old ones, and keep what a call's time may depend on."""

import os
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replayer.trace.naming import Naming, read_known

KEY = bytes(32)
NAMES = st.sampled_from(
    [b"a", b"index.php", b"invoices.pdf", b"J. Miller", b"uploads", b"wp-admin", b"wp-canary.php"]
) | st.binary(min_size=1, max_size=40).map(lambda name: name.replace(b"/", b"_"))
NAME = NAMES.filter(lambda name: name not in {b".", b"..", b".outside", b".removed"})
PATHS = st.lists(st.lists(NAME, min_size=1, max_size=5).map(b"/".join), min_size=1, max_size=40)
CANARY = st.text("qxz", min_size=9, max_size=20).map(str.encode)
MANY = 10_000 if os.environ.get("HYPOTHESIS_PROFILE") in {"nightly", "long"} else 50
WORDPRESS = read_known(["index.php", "wp-admin/about.php", "wp-content", "wp-includes/post.php"])


def renamed(paths: list[bytes], naming: Naming) -> list[bytes]:
    naming.learn(paths)
    return [naming.path(path) for path in paths]


@given(paths=PATHS, key=st.binary(min_size=32, max_size=32))
def test_depth_order_length_and_sameness_are_kept(paths: list[bytes], key: bytes) -> None:
    new = renamed(paths, Naming(key))
    assert len({*new}) == len({*paths})
    for old, other in zip(paths, new, strict=True):
        assert old.count(b"/") == other.count(b"/")
        for name, shown in zip(old.split(b"/"), other.split(b"/"), strict=True):
            assert len(shown) <= max(-(-len(name) // 4) * 4, 12)
            assert len(shown) >= min(-(-len(name) // 4) * 4, 255)
    parts = {
        (tuple(old.split(b"/")), tuple(other.split(b"/")))
        for old, other in zip(paths, new, strict=True)
    }
    assert all(one[1] < other[1] for one, other in pairwise(sorted(parts)))


@settings(max_examples=MANY)
@given(paths=PATHS, canaries=st.lists(CANARY, min_size=1, max_size=4), ending=st.just(b".jpg"))
def test_no_private_name_is_in_any_new_one(
    paths: list[bytes], canaries: list[bytes], ending: bytes
) -> None:
    named = [path + b"/" + canary + ending for path in paths for canary in canaries]
    whole = b"\n".join(renamed([*paths, *named], Naming(os.urandom(32), [WORDPRESS])))
    assert not any(canary in whole for canary in canaries)


def test_endings_of_a_kind_are_kept_and_others_are_not() -> None:
    naming = Naming(KEY)
    photo, owned, hidden = renamed([b"photo.JPG", b"report.miller", b".profile"], naming)
    assert photo.endswith(b".JPG")
    assert b"." not in owned + hidden


def test_what_everybody_knows_stays_where_it_is_known() -> None:
    naming = Naming(KEY, [WORDPRESS])
    site = [b"www/index.php", b"www/wp-admin/about.php", b"www/wp-includes/secret.php"]
    others = [b"www/wp-content/plugins", b"private/index.php", b"www/kept/index.php"]
    new = renamed([*site, *others], naming)
    top = new[0].split(b"/")[0]
    assert new[:2] == [top + b"/index.php", top + b"/wp-admin/about.php"]
    assert top != b"www"
    assert new[2].startswith(top + b"/wp-includes/")
    assert b"secret" not in new[2]
    assert new[3].startswith(top + b"/wp-content/")
    assert b"index" not in new[4] + new[5]
    assert new[0] < new[5] < new[1]  # in the order of the old names
    assert naming.counts() == (12, 5)
    assert naming.unordered == 0


def test_links_lead_where_they_led() -> None:
    naming = Naming(KEY)
    naming.learn([b"www/current", b"www/releases/7/index.php", b"www/logs"])
    release = naming.path(b"www/releases/7")
    assert naming.link(b"www/current", b"releases/7") == release.split(b"/", 1)[1]
    said = naming.link(b"www/releases/7/index.php", b"../../logs")
    assert said == b"../../" + naming.path(b"www/logs").split(b"/")[1]
    unknown = naming.link(b"www/current", b"elsewhere/there")
    assert b"elsewhere" not in unknown
    assert list(map(len, unknown.split(b"/"))) == [12, 8]


@pytest.mark.parametrize("depth", [2000])
def test_a_deep_path_has_a_new_name(depth: int) -> None:
    (new,) = renamed([b"/".join([b"down"] * depth)], Naming(KEY))
    assert new.count(b"/") == depth - 1


def test_another_key_gives_other_names_and_the_same_key_the_same() -> None:
    paths = [b"www/%d.php" % number for number in range(50)]
    first, same, other = (renamed(paths, Naming(key)) for key in (KEY, KEY, b"1" * 32))
    assert first == same
    assert not {*first} & {*other}
