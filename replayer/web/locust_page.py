"""Locust's own page, with our form, our script and true figures: its files stay as they are.

Its template is rendered by Locust; a script and a style are put into what comes out. Its views of
start, stop and figures are ours. Its script is served without the rounding of times.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, Protocol, cast
from urllib.parse import quote

from flask import Response, g, jsonify, request, url_for
from locust.web import WebUI

from replayer.locust.patches import round_figure, show_digits
from replayer.web.guard import INLINE_SCRIPTS, TOKEN
from replayer.web.op_totals import PERCENTS, WHOLE, OpLine, supported
from replayer.web.run_control import ActiveRun, RunControl
from replayer.web.start_answer import answer_order

__all__ = ["COLUMNS", "install", "operation_rows"]


NS_PER_US = 1e3
BYTES_PER_MB = 1e6
DASH = "\N{EN DASH}"

COLUMNS = (
    ("target", "Target"),
    ("transaction", "Transaction"),
    ("op", "Operation"),
    ("count", "Count"),
    ("errors", "Errors"),
    ("rate", "Rate (/s)"),
    ("megabytes", "MB/s"),
    ("p50", "p50 (µs)"),
    ("p95", "p95 (µs)"),
    ("p99", "p99 (µs)"),
    ("p99_9", "p99.9 (µs)"),
    ("max", "Max (µs)"),
)


def operation_rows(active: ActiveRun) -> list[dict[str, Any]]:
    """Return a row for each transaction on each target, and one for each op of it."""
    return list(_rows(active))


def _rows(active: ActiveRun) -> Iterator[dict[str, Any]]:
    names = [target.name for target in active.request.targets]
    for (target, transaction, op), line, rate, moved in active.op_totals.rows():
        yield {
            "target": names[target],
            "transaction": transaction,
            "op": "whole transaction" if op == WHOLE else op,
            "count": line.count,
            "errors": _errors(line),
            "rate": round_figure(rate),
            "megabytes": round_figure(moved / BYTES_PER_MB) if line.bytes else DASH,
            **_times(line),
        }


def _errors(line: OpLine) -> str | int:
    return ", ".join(f"{name} {count:,}" for name, count in line.errors.most_common()) or 0


def _times(line: OpLine) -> dict[str, float | str]:
    found = supported(line.times)
    longest = line.times.max if line.times.count else None
    return {
        **{name.removesuffix("_ns"): _us(found[name]) for name in PERCENTS},
        "max": _us(longest),
    }


def _us(value_ns: int | None) -> float | str:
    return DASH if value_ns is None else round_figure(value_ns / NS_PER_US)


HEAD_END = "</head>"
INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
TAB = "operations"
SCRIPT = re.compile(r'(/assets/[^"]+\.js)"')
BARE_NAME = "attachment;filename="
"""How Locust begins the header of a download, which ends with a name as it is."""


def install(web_ui: WebUI, control: RunControl) -> None:
    """Put our form, tab and script into Locust's page, and take over start and stop."""
    app = web_ui.app
    assert app is not None  # noqa: S101 - Locust makes it in its constructor
    web_ui.template_args["extended_tabs"] = [{"title": "File operations", "key": TAB}]
    web_ui.template_args["extended_tables"] = [
        {"key": TAB, "structure": [{"key": key, "title": title} for key, title in COLUMNS]}
    ]
    _dress(web_ui, control)
    app.view_functions["locust.swarm"] = web_ui.auth_required_if_enabled(_starter(control))
    app.view_functions["locust.stop"] = web_ui.auth_required_if_enabled(_stopper(control))
    figures = cast("_Figures", app.view_functions["locust.request_stats"])
    app.view_functions["locust.request_stats"] = _figures_of_now(figures, control)
    assets = cast("Callable[[str], Response]", app.view_functions["locust.send_assets"])
    app.view_functions["locust.send_assets"] = _with_digits(assets)
    token: str = app.extensions[TOKEN]
    app.after_request(lambda response: _put_script(response, token))
    app.after_request(_quote_name)


def _dress(web_ui: WebUI, control: RunControl) -> None:
    """Have Locust's template arguments say what ours say."""
    update: Callable[[], None] = web_ui.update_template_args

    def update_ours() -> None:
        update()
        web_ui.template_args.update(
            state=control.state,
            host=control.form.host,
            extra_options=control.form.fields(),
            override_host_warning=False,
            missing_host_warning=False,
            run_time=control.run_time_s,
        )

    web_ui.update_template_args = update_ours  # type: ignore[method-assign] # it is asked for each page


def _starter(control: RunControl) -> Callable[[], Response]:
    return lambda: answer_order(control, control.form.read)


def _stopper(control: RunControl) -> Callable[[], Response]:
    def stop() -> Response:
        control.stop()
        return jsonify({"success": True, "message": "Test stopping"})

    return stop


class _Figures(Protocol):
    """Locust's view of its figures, which keeps its answer for two seconds."""

    def __call__(self) -> Response:
        """Answer."""

    def clear_cache(self) -> None:
        """Forget the answer."""


def _figures_of_now(view: _Figures, control: RunControl) -> Callable[[], Response]:
    """Return Locust's figures with ours beside them, all of the same moment."""

    def request_stats() -> Response:
        view.clear_cache()
        found: dict[str, Any] = json.loads(view().get_data())
        active = control.active
        rows = [] if active is None else operation_rows(active)
        found.update(state=control.state, extended_stats=[{"key": TAB, "data": rows}])
        return jsonify(found)

    return request_stats


def _with_digits(view: Callable[[str], Response]) -> Callable[[str], Response]:
    """Return the view of Locust's files, whose script shows times as they are sent."""

    def send_assets(path: str) -> Response:
        response = view(path)
        if response.status_code == HTTPStatus.OK and path.endswith(".js"):
            response.direct_passthrough = False
            response.set_data(show_digits(response.get_data(as_text=True)))
        return response

    return send_assets


def _quote_name(response: Response) -> Response:
    """Have a header hold the name of a download whatever is in it, such as a target's name."""
    before, _, name = response.headers.get("Content-Disposition", "").partition(BARE_NAME)
    if name and not before:
        encoded = {} if name.isascii() else {"filename*": f"UTF-8''{quote(name, safe='')}"}
        plain = name.encode("ascii", "replace").decode().replace("?", "_")
        response.headers.set("Content-Disposition", "attachment", filename=plain, **encoded)
    return response


def _put_script(response: Response, token: str) -> Response:
    """Put our script and style into Locust's index, and let its own inline script run."""
    if (
        request.endpoint != "locust.index"
        or response.status_code != HTTPStatus.OK
        or response.is_streamed
    ):
        return response
    page = response.get_data(as_text=True)
    script, style = (url_for("replayer.assets", name=name) for name in ("page.js", "page.css"))
    link = f'<link rel="stylesheet" href="{style}"><script src="{script}"></script>'
    setting = (
        f'<meta name="replayer" content="{url_for("replayer.overview")}">'
        f'<meta name="replayer-token" content="{token}">'
    )
    if HEAD_END not in page:
        response.set_data("This version of Locust's page is not known: the page is not shown.")
        response.status_code = 500
        return response
    # A browser may hold the script as Locust has it: under another address it asks for ours.
    own = SCRIPT.sub(r'\1?digits"', page).replace(HEAD_END, setting + link + HEAD_END, 1)
    response.set_data(own)
    setattr(g, INLINE_SCRIPTS, tuple(map(_digest, INLINE.findall(page))))
    return response


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
