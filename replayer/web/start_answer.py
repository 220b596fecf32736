"""The answer to an order: started, or why not, in the words that Locust's page shows."""

from collections.abc import Callable, Mapping, Sequence

from flask import Response, jsonify, request

from replayer.errors import ReplayerError
from replayer.run.options import Settings
from replayer.web.form import ForeignError
from replayer.web.run_control import RunControl

__all__ = ["answer_order"]

FORBIDDEN = 403


def answer_order(
    control: RunControl, read: Callable[[Mapping[str, Sequence[str]]], Settings]
) -> Response:
    """Start what the request orders, and say so; a mistake is answered with a line."""
    sent = {name: request.form.getlist(name) for name in request.form}
    try:
        control.start(read(sent))
    except ForeignError as error:
        response = _answer(control, f"refused: {error}", success=False)
        response.status_code = FORBIDDEN
        return response
    except ReplayerError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return _answer(control, f"{error}{hint}", success=False)
    return _answer(control, "Swarming started", success=True)


def _answer(control: RunControl, message: str, *, success: bool) -> Response:
    return jsonify({"success": success, "message": message, "host": control.form.host})
