"""Roots: what is refused, what is doubted, and how they are named."""

from pathlib import Path

import pytest

from replayer.capture.roots import check_roots, doubts_of
from replayer.errors import ReplayerError


def test_roots_are_named_by_their_last_component_and_numbered(tmp_path: Path) -> None:
    paths = [tmp_path / name / "www" for name in "abc"]
    for path in paths:
        path.mkdir(parents=True)
    assert [root.top for root in check_roots(paths)] == ["www", "www-2", "www-3"]
    assert [root.absolute for root in check_roots(paths)] == paths


def test_a_link_is_followed_and_kept_as_another_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    roots = check_roots([tmp_path / "link"])
    assert roots[0].absolute == tmp_path / "real"
    assert roots[0].alias == tmp_path / "link"
    assert doubts_of(roots, Path("/x/trace")) == []
    assert check_roots([tmp_path / "real"])[0].alias is None


@pytest.mark.parametrize(
    ("root", "doubt"),
    [("/proc", "the kernel generates its files"), ("/usr", "is a system directory")],
)
def test_odd_roots_are_doubted(root: str, doubt: str) -> None:
    assert any(doubt in found for found in doubts_of(check_roots([Path(root)]), Path("/x/trace")))


def test_an_ordinary_root_is_not_doubted(tmp_path: Path) -> None:
    assert doubts_of(check_roots([tmp_path]), Path("/x/trace")) == []


@pytest.mark.parametrize("roots", [["/"], ["."], [], ["/nowhere/at/all"], ["/etc/passwd"]])
def test_roots_that_cannot_be_meant_are_refused(
    roots: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    with pytest.raises(ReplayerError) as error:
        check_roots([Path(root) for root in roots])
    assert error.value.hint


def test_a_root_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ReplayerError):
        check_roots([tmp_path / "loop"])
