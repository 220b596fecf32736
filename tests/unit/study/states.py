"""What study.json holds, made up."""

from typing import Any

from replayer.study.journal import StudyState


def make_state(study: str, **changes: Any) -> StudyState:  # noqa: ANN401
    """A study of no target, just begun."""
    facts = {"study": study, "steps": "f" * 64, "targets": (), "places": (), "quick": False}
    return StudyState.model_validate({**facts, "rounds": None, **changes})
