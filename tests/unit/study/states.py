"""What study.json holds, made up."""

from typing import Any

from replayer.study.journal import State


def make_state(study: str, **changes: Any) -> State:  # noqa: ANN401
    """A study of no target, just begun."""
    facts = {"study": study, "steps": "f" * 64, "targets": (), "places": (), "quick": False}
    return State.model_validate({**facts, "rounds": None, **changes})
