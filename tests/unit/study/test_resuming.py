"""A study goes on only where and as it began."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from replayer.errors import ReplayerError
from replayer.study.flow import resume_study
from replayer.study.journal import Journal, create_journal, find_places, refuse_other_places
from replayer.study.model import load_study
from tests.unit.study.states import make_state

STUDY: dict[str, Any] = {
    "letter": "Z",
    "name": "own",
    "title": "A study of one's own",
    "source": "this test",
    "conditions": [],
    "steps": {"reads": {"scenario": "small-reads", "words": ["--cache", "cold"]}},
    "tables": [{"title": "Reads", "each": "reads"}],
}


@pytest.fixture
def begun(tmp_path: Path) -> Journal:
    """A study of one's own on a folder that a link leads to; none of its steps is done."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "mount").symlink_to("disk")
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump(STUDY))
    targets = (f"nfs={tmp_path}/mount",)
    state = make_state(
        str(file),
        steps=load_study(str(file)).fingerprint,
        targets=targets,
        places=find_places(targets),
    )
    return create_journal(tmp_path / "study", state)


def test_steps_that_were_changed_meanwhile_are_refused(begun: Journal) -> None:
    words = {"steps": {"reads": {**STUDY["steps"]["reads"], "words": ["--cache", "warm"]}}}
    Path(begun.state.study).write_text(yaml.safe_dump({**STUDY, **words}))
    with pytest.raises(ReplayerError, match="have changed since this study started") as refusal:
        resume_study(begun.path, quiet=True)
    assert refusal.value.exit_code == 2


def test_tables_may_be_changed_meanwhile(begun: Journal) -> None:
    table = {"title": "What was read", "each": "reads"}
    Path(begun.state.study).write_text(yaml.safe_dump({**STUDY, "tables": [table]}))
    assert load_study(begun.state.study).fingerprint == begun.state.steps


def test_a_target_that_is_gone_is_refused_before_a_step_fails(begun: Journal) -> None:
    (begun.path.parent / "disk").rmdir()
    with pytest.raises(ReplayerError, match="mount"):
        resume_study(begun.path, quiet=True)
    assert not begun.state.attempts


def test_a_target_that_is_another_mount_now_is_refused(begun: Journal) -> None:
    link = begun.path.parent / "mount"
    link.unlink()
    link.symlink_to("/dev/shm")  # noqa: S108 - nothing is made there
    with pytest.raises(ReplayerError, match=r"target nfs: .* is tmpfs .*, but was") as refusal:
        resume_study(begun.path, quiet=True)
    assert refusal.value.exit_code == 3


def test_a_mount_that_is_not_there_any_more_leaves_a_folder_of_another_one(begun: Journal) -> None:
    (now,) = find_places(begun.state.targets)
    then = now.model_copy(update={"filesystem": "nfs4", "source": "server:/export"})
    refuse_other_places([then], [then])
    with pytest.raises(ReplayerError, match=r"but was nfs4 server:/export on"):
        refuse_other_places([then], [now])


def test_a_study_of_an_earlier_version_says_so(begun: Journal) -> None:
    file = begun.path / "study.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 1}))
    with pytest.raises(ReplayerError, match="format 1, this version reads format 2"):
        resume_study(begun.path, quiet=True)
