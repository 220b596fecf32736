"""Targets as the command line names them."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.errors import ReplayerError
from replayer.run.targets import (
    MountError,
    TargetError,
    check_place,
    explain,
    parse_targets,
    refuse_aliases,
)

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
PATHS = st.from_regex(r"/[a-z]{1,8}(/[a-z]{1,8}){0,3}", fullmatch=True)


@given(NAMES, st.lists(PATHS, min_size=1, max_size=3, unique=True))
def test_a_name_and_its_paths_come_back_as_written(name: str, paths: list[str]) -> None:
    (target,) = parse_targets([f"{name}={','.join(paths)}"])
    assert (target.name, [str(path) for path in target.paths]) == (name, paths)


@given(st.lists(PATHS, min_size=1, max_size=4, unique=True))
def test_targets_without_names_get_names_that_differ(paths: list[str]) -> None:
    names = [target.name for target in parse_targets(paths)]
    assert len(set(names)) == len(paths)


def test_an_equals_sign_in_a_path_is_part_of_the_path() -> None:
    (target,) = parse_targets(["/srv/a=b/c"])
    assert target.paths == (Path("/srv/a=b/c"),)


@pytest.mark.parametrize("word", ["", "=/srv", "nfs=", "nfs=/srv,", ",/srv", "/srv,/srv/"])
def test_a_target_with_a_path_missing_or_doubled_is_refused(word: str) -> None:
    if word == "=/srv":
        assert parse_targets([word])[0].paths == (Path("/srv"),)
        return
    with pytest.raises(TargetError, match="target"):
        parse_targets([word])


@pytest.mark.parametrize("name", ["t\ng", "t\x1b[31m", "t\u2028g", "t\udcff"])
@pytest.mark.parametrize("word", ["{}=/srv", "/srv/{}"])
def test_a_name_that_would_break_a_table_is_refused_however_it_came(name: str, word: str) -> None:
    with pytest.raises(TargetError, match="control characters") as caught:
        parse_targets([word.format(name)])
    assert str(caught.value).isprintable()
    assert parse_targets([f"fine=/srv/{name}"])[0].name == "fine"


def test_a_path_is_shown_without_dots_unless_they_lead_elsewhere(tmp_path: Path) -> None:
    for name in ("here", "there/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("there/deep")
    words = [f"{tmp_path}/here/../here", f"{tmp_path}/link/.."]
    (plain,), (behind,) = (parse_targets([word])[0].paths for word in words)
    assert str(plain) == f"{tmp_path}/here"
    assert behind.samefile(tmp_path / "there")


def test_a_name_may_be_in_any_script() -> None:
    (target,) = parse_targets(["/srv/\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"])
    assert "\u200c" in target.name


def test_two_targets_of_one_name_are_refused() -> None:
    with pytest.raises(TargetError, match="'nfs'"):
        parse_targets(["nfs=/a", "nfs=/b"])


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("b={0}/real/", "a and b are the same folder"),
        ("b={0}/link", "a and b are the same folder"),
        ("{0}/link", "a and link are the same folder"),
        ("b={0},{0}/real", "a and b are the same folder"),
        ("b={0},{0}/", "b: the same folder twice"),
        ("b={0}/other,{0}/another", "b: the same folder twice"),
    ],
)
def test_one_folder_under_two_names_is_refused(tmp_path: Path, word: str, message: str) -> None:
    for name in ("real", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "another").symlink_to("other")
    with pytest.raises(TargetError, match=message) as caught:
        refuse_aliases(parse_targets([f"a={tmp_path}/real", word.format(tmp_path)]))
    assert caught.value.exit_code == 2


def test_parsing_looks_at_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    with monkeypatch.context() as patched:
        for name in ("lstat", "stat"):
            patched.setattr(os, name, looked.append)
        targets = parse_targets(["a=/mnt/one", "b=/mnt/other,/mnt/another", "/mnt/third/"])
    assert ([target.name for target in targets], looked) == (["a", "b", "third"], [])


def look_at(word: str) -> None:
    (target,) = parse_targets([word])
    for path in target.paths:
        check_place(target, path)


@pytest.mark.parametrize("path", ["/", "/dev", "/proc/self", "/sys/kernel", "/nowhere/at/all"])
def test_places_of_the_system_and_missing_ones_are_refused_as_the_users_mistake(path: str) -> None:
    (target,) = parse_targets([path])
    with pytest.raises(TargetError) as caught:
        check_place(target, target.paths[0])
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_a_link_to_a_place_of_the_system_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc")
    with pytest.raises(TargetError, match="proc"):
        look_at(str(tmp_path / "link"))


def test_a_file_is_refused_and_a_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    look_at(str(tmp_path))
    with pytest.raises(TargetError, match="is not a folder"):
        look_at(str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.ENOSPC, MountError, 3),
        (errno.EDQUOT, MountError, 3),
        (errno.EROFS, MountError, 3),
        (errno.EACCES, MountError, 3),
        (errno.ESTALE, MountError, 3),
        (errno.EIO, MountError, 3),
        (errno.EMFILE, MountError, 3),
        (errno.ENOENT, TargetError, 2),
        (errno.ENOTDIR, TargetError, 2),
    ],
)
def test_each_failure_has_its_exit_code_and_names_the_path(
    number: int, kind: type[ReplayerError], code: int
) -> None:
    refusal = explain(Path("/srv/x"), OSError(number, ""))
    assert isinstance(refusal, kind)
    assert refusal.exit_code == code
    assert str(refusal).startswith("/srv/x: ")


def test_a_folder_with_a_comma_in_its_name_is_told_from_two_mount_points(tmp_path: Path) -> None:
    (tmp_path / "a,b").mkdir()
    with pytest.raises(TargetError, match="contains one") as caught:
        look_at(f"nfs={tmp_path}/a,b")
    assert "ln -s" in caught.value.hint
    (tmp_path / "a").mkdir()
    with pytest.raises(TargetError, match="b: does not exist"):
        look_at(f"nfs={tmp_path}/a,{tmp_path}/b")
