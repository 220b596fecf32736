"""How Locust's own end of a program becomes an exit code of ours."""

import argparse
from pathlib import Path

import locust
import pytest

from replayer.errors import OutsideError, ReplayerError
from replayer.locust import user_code
from replayer.locust.launch import code_of
from replayer.locust.user_code import OURS

ARGUMENTS = argparse.Namespace(master_host="leader", master_port=None)


MAIN = Path(locust.__file__).parent / "main.py"


def leave(name: str, code: object, cause: str | None = None, file: Path = MAIN) -> SystemExit:
    """Leave from within a function of Locust's main module, or of another file."""
    raised = f"raise {cause}" if cause else "pass"
    text = f"def {name}():\n try: {raised}\n finally: raise SystemExit({code!r})\n{name}()"
    try:
        exec(compile(text, str(file), "exec"))  # noqa: S102
    except SystemExit as leaving:
        return leaving.with_traceback(getattr(leaving.__traceback__, "tb_next", None))  # not ours
    pytest.fail("it stayed")


@pytest.mark.parametrize(
    ("name", "code", "wanted"), [("shutdown", 4, 4), ("shutdown", 1, 1), ("main", 1, 2)]
)
def test_what_locust_refuses_is_a_mistake_and_an_end_keeps_its_code(
    name: str, code: int, wanted: int
) -> None:
    assert code_of(leave(name, code), ARGUMENTS) == wanted


@pytest.mark.parametrize("file", [MAIN, OURS / "locust" / "listeners.py"])
def test_an_end_that_locust_or_we_have_chosen_is_no_mistake_of_a_person(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_code, "_is_of_people", lambda _: True)
    assert code_of(leave("shutdown", 0, file=file), ARGUMENTS) == 0


def test_a_file_beside_locust_that_leaves_is_a_persons(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.touch()
    with pytest.raises(ReplayerError, match=r"mine\.py:3"):
        code_of(leave("shutdown", 0, file=file), ARGUMENTS)


def test_a_master_who_never_answers_is_named() -> None:
    with pytest.raises(OutsideError, match="no master answers at leader:5557"):
        code_of(leave("main", -1, "ConnectionError"), ARGUMENTS)


def test_a_worker_that_is_interrupted_while_it_waits_is_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt):
        code_of(leave("connect_to_master", 1, "KeyboardInterrupt"), ARGUMENTS)
