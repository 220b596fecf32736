"""Locust's own page, with our form, our script and true figures: its files stay as they are.

It is opened in Locust's ``init`` event, before it listens. Its template is rendered by Locust; a
script and a style are put into what comes out. Its views of start, stop and figures are ours. Its
script is served without the rounding of times.
"""

import argparse
import base64
import hashlib
import json
import re
import ssl
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, Protocol, cast
from urllib.parse import quote

import gevent
from flask import Flask, Response, g, jsonify, request, url_for
from flask.json.provider import DefaultJSONProvider
from locust.env import Environment
from locust.runners import MasterRunner
from locust.web import WebUI

from replayer.cluster.cluster_run import PersistentPool
from replayer.errors import ReplayerError
from replayer.locust.patches import round_figure, show_digits
from replayer.locust.ports import LocustMaster
from replayer.locust.spawner import LocustSpawner, begin_test, options_of
from replayer.locust.users import has_scenario_users
from replayer.measure.units import DASH
from replayer.run.addresses import put_address, try_address, try_certificate
from replayer.run.controller import ControlledRun
from replayer.run.local_run import open_local_run
from replayer.run.options import Settings
from replayer.run.prepared_run import RunRequest, chosen_targets
from replayer.run.progress import Observer
from replayer.run.roles import ClusterSettings
from replayer.run.targets import DEFAULT_FOLDER
from replayer.run.web_options import is_loopback, read_secret
from replayer.web import guard, login, pages
from replayer.web.choices import TASKS_ALONE, offered
from replayer.web.form import make_form
from replayer.web.guard import INLINE_SCRIPTS, TOKEN
from replayer.web.op_totals import PERCENTS, WHOLE, OpLine, supported
from replayer.web.run_control import ActiveRun, RunControl, answer_order
from replayer.web.start import render_start


class _InOrder(DefaultJSONProvider):
    """JSON whose keys come as they were put: ops after their transaction."""

    sort_keys = False


class LocustHost:
    """Locust, as the page needs it."""

    def __init__(self, environment: Environment, web_ui: WebUI, settings: Settings) -> None:
        self._environment = environment
        self._web_ui = web_ui
        self._pool: PersistentPool | None = None
        if isinstance(environment.runner, MasterRunner):
            port = LocustMaster(environment, environment.runner)
            terms = ClusterSettings.read(options_of(environment))
            self._pool = PersistentPool(port, settings, terms)
        self.has_targets = self._pool is None
        self.has_scenario_users = has_scenario_users(environment)
        stated = environment.host or any(kind.host for kind in environment.user_classes)
        self._tells_host = not stated

    def new_spawner(self) -> LocustSpawner:
        """Return what starts the users of one run."""
        return LocustSpawner(self._environment)

    def show(self, request: RunRequest) -> None:
        """Show the targets of a run, and no figures of the one before."""
        if self._tells_host:  # Locust's report and the names of its downloads have it
            self._environment.host = ", ".join(target.name for target in request.targets)
        runner = self._environment.runner
        if runner is not None:  # by itself it would show the last run until all is laid out
            runner.stats.clear_all()
            runner.exceptions = {}

    def open_run(self, request: RunRequest, observer: Observer) -> ControlledRun:
        """Lay out a run."""
        if self._pool is None:
            return open_local_run(request, observer)
        return self._pool.open(request, observer)

    def begin_test(self, request: RunRequest) -> None:
        """Start the users of a run that is laid out."""
        begin_test(self._environment, request)

    def stop_page(self) -> None:
        """End the page, and with it the process."""
        self._web_ui.stop()


def open_page(environment: Environment, web_ui: WebUI, settings: Settings) -> RunControl:
    """Make the page of a process.

    Raises:
        ReplayerError: A scenario or target cannot be meant, or the page cannot be served there.
    """
    options = options_of(environment)
    try_address("--web-port", options.web_host, options.web_port)
    try_certificate(options.tls_cert or None, options.tls_key or None)
    several = has_scenario_users(environment)
    if settings.changes and not several:
        message = "--set (--verify) needs a scenario, and only a locustfile is run"
        raise ReplayerError(message, hint="leave it out")
    choices = list(offered(settings, options.offer)) if several else [TASKS_ALONE]
    form = make_form(settings, choices, str(DEFAULT_FOLDER))
    control = RunControl(LocustHost(environment, web_ui, settings), form)
    _set_up(web_ui, control, options)
    # Nothing is printed when somebody speaks plain http to https, or refuses the certificate.
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, ssl.SSLError)
    _announce(web_ui, options.web_base_path or "")
    if (settings.targets or settings.reuse) and (options.processes or not options.master):
        gevent.spawn(control.warn_of_targets, chosen_targets(settings))
    return control


def _set_up(web_ui: WebUI, control: RunControl, options: argparse.Namespace) -> None:
    """Guard Locust's application, and add the login and our pages."""
    app = _app_of(web_ui)
    app.debug = False
    app.json = _InOrder(app)
    app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}  # the form's order is ours
    hosts = frozenset() if web_ui.web_login else guard.own_names(options.web_host)
    guard.install(app, guard.Guard(hosts))
    if web_ui.web_login:
        login.install(app, web_ui.login_manager, read_secret(options), tls=_has_tls(web_ui))
    pages.install(app, control)
    _install(web_ui, control)


def _announce(web_ui: WebUI, base: str) -> None:
    scheme = "https" if _has_tls(web_ui) else "http"
    where = put_address(web_ui.host or "0.0.0.0", web_ui.port)  # noqa: S104 - shown, not bound
    lines = [f"replayer: the page is at {scheme}://{where}{base}/ (stop it with Ctrl-C)"]
    if web_ui.web_login:
        lines.append("replayer: the page asks for the secret first")
    if web_ui.web_login and scheme == "http" and not is_loopback(web_ui.host):
        lines.append(
            "replayer: secret and figures cross the network unencrypted; use --tls-cert and "
            "--tls-key to encrypt them"
        )
    sys.stderr.write("\n".join(lines) + "\n")


def _has_tls(web_ui: WebUI) -> bool:
    return bool(web_ui.tls_cert and web_ui.tls_key)


def _app_of(web_ui: WebUI) -> Flask:
    app = web_ui.app
    assert app is not None  # noqa: S101 - Locust makes it in its constructor
    return app


NS_PER_US = 1e3
BYTES_PER_MB = 1e6

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


BAR = ("bar.js", "palette.css", "bar.css")
HEAD_END = "</head>"
INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
TAB = "operations"
SCRIPT = re.compile(r'(/assets/[^"]+\.js)"')
BARE_NAME = "attachment;filename="
"""How Locust begins the header of a download, which ends with a name as it is."""


def _install(web_ui: WebUI, control: RunControl) -> None:
    """Put our form, tab and script into Locust's page, and take over start and stop."""
    app = _app_of(web_ui)
    web_ui.template_args["extended_tabs"] = [{"title": "File operations", "key": TAB}]
    web_ui.template_args["extended_tables"] = [
        {"key": TAB, "structure": [{"key": key, "title": title} for key, title in COLUMNS]}
    ]
    _dress(web_ui, control)
    _move_locusts(app, web_ui, control)
    app.view_functions["locust.swarm"] = web_ui.auth_required_if_enabled(_starter(control))
    app.view_functions["locust.stop"] = web_ui.auth_required_if_enabled(_stopper(control))
    figures = cast("_Figures", app.view_functions["locust.request_stats"])
    app.view_functions["locust.request_stats"] = _figures_of_now(figures, control)
    assets = cast("Callable[[str], Response]", app.view_functions["locust.send_assets"])
    app.view_functions["locust.send_assets"] = _with_digits(assets)
    token: str = app.extensions[TOKEN]
    app.after_request(lambda response: _put_script(response, token))
    app.after_request(_quote_name)


LOCUSTS = "locust_page"
"""The endpoint of Locust's own page, which stands beside ours."""


def _move_locusts(app: Flask, web_ui: WebUI, control: RunControl) -> None:
    """Serve our start page first, and Locust's page under a name of its own.

    It asks for files and figures by names that are relative to the first page.
    """
    own = app.view_functions["locust.index"]
    base = app.blueprints["locust"].url_prefix or ""
    app.add_url_rule(f"{base}/locust", LOCUSTS, own)
    start = web_ui.auth_required_if_enabled(lambda: render_start(control))
    app.view_functions["locust.index"] = start


def _dress(web_ui: WebUI, control: RunControl) -> None:
    """Have Locust's template arguments say what ours say."""
    update: Callable[[], None] = web_ui.update_template_args

    def update_ours() -> None:
        update()
        users, spawn_rate = control.load
        web_ui.template_args.update(
            num_users=users,
            spawn_rate=spawn_rate,
            state=control.state,
            host=control.form.host,
            extra_options=control.form.fields(),
            override_host_warning=False,
            missing_host_warning=False,
            run_time=control.form.settings.run_time_s,
        )

    web_ui.update_template_args = update_ours  # type: ignore[method-assign] # it is asked for each page


def _starter(control: RunControl) -> Callable[[], Response]:
    return lambda: answer_order(control, lambda sent: control.start(control.form.read(sent)))


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
    if request.endpoint != LOCUSTS or response.status_code != HTTPStatus.OK or response.is_streamed:
        return response
    page = response.get_data(as_text=True)
    script, *styles = (url_for("replayer.assets", name=name) for name in BAR)
    link = "".join(f'<link rel="stylesheet" href="{style}">' for style in styles)
    link += f'<script src="{script}"></script>'
    setting = (
        f'<meta name="replayer" content="{url_for("replayer.overview")}">'
        f'<meta name="replayer-token" content="{token}">'
    )
    if HEAD_END not in page:
        response.set_data(
            "replayer does not know this version of Locust's page and cannot show it."
        )
        response.status_code = 500
        return response
    # A browser may hold the script as Locust has it: under another address it asks for ours.
    own = SCRIPT.sub(r'\1?digits"', page).replace(HEAD_END, setting + link + HEAD_END, 1)
    response.set_data(own)
    setattr(g, INLINE_SCRIPTS, tuple(map(_digest, INLINE.findall(page))))
    return response


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
