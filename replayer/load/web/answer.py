"""The answer to an order: started, or why not, in the words that Locust's page shows."""

from collections.abc import Callable, Mapping, Sequence

from flask import Response, jsonify, request

from replayer.errors import ReplayerError
from replayer.load.web.desk import Desk
from replayer.load.web.form import ForeignError, Order

__all__ = ["answer_order"]

FORBIDDEN = 403


def answer_order(desk: Desk, read: Callable[[Mapping[str, Sequence[str]]], Order]) -> Response:
    """Start what the request orders, and say so; a mistake is answered with a line."""
    sent = {name: request.form.getlist(name) for name in request.form}
    try:
        desk.start(read(sent))
    except ForeignError as error:
        response = _answer(desk, f"refused: {error}", success=False)
        response.status_code = FORBIDDEN
        return response
    except ReplayerError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return _answer(desk, f"{error}{hint}", success=False)
    return _answer(desk, "Swarming started", success=True)


def _answer(desk: Desk, message: str, *, success: bool) -> Response:
    return jsonify({"success": success, "message": message, "host": desk.form.host})
