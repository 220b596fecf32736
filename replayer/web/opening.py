"""Opens the page in Locust's ``init`` event, before it listens: form, guard, login and pages."""

import ssl
import sys
from collections.abc import Sequence

import gevent
from flask.json.provider import DefaultJSONProvider
from locust.env import Environment
from locust.web import WebUI

from replayer.errors import ReplayerError
from replayer.locust.users import has_scenario_users
from replayer.measure.health import RunWarning
from replayer.run.addresses import put_address, try_address, try_certificate
from replayer.run.options import Settings, options_of
from replayer.run.prepared_run import check_in_time, chosen_targets
from replayer.run.targets import DEFAULT_FOLDER, NamedTarget
from replayer.run.web_options import is_loopback, read_secret
from replayer.web import guard, locust_page, login, pages
from replayer.web.choices import TASKS_ALONE, offered, read_facts
from replayer.web.form import RunForm, make_form
from replayer.web.run_control import RunControl

__all__ = ["open_run_control", "warn_of_targets"]


class _InOrder(DefaultJSONProvider):
    """JSON whose keys come as they were put: ops after their transaction."""

    sort_keys = False


def open_run_control(environment: Environment, web_ui: WebUI, settings: Settings) -> RunControl:
    """Make the page of a process.

    Raises:
        ReplayerError: A scenario or target cannot be meant, or the page cannot be served there.
    """
    options = options_of(environment)
    try_address("--web-port", options.web_host, options.web_port)
    try_certificate(options.tls_cert or None, options.tls_key or None)
    several = has_scenario_users(environment)
    if settings.changes and not several:
        message = "--set (--verify) is about a scenario, and only a locustfile is run"
        raise ReplayerError(message, hint="leave it out")
    choices = list(offered(settings, options.offer)) if several else [TASKS_ALONE]
    form = make_form(settings, choices, str(DEFAULT_FOLDER))
    control = RunControl(environment, web_ui, form)
    _describe_first(environment, form)
    app = web_ui.app
    assert app is not None  # noqa: S101 - Locust makes it in its constructor
    app.debug = False
    app.json = _InOrder(app)
    app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}  # the form's order is ours
    hosts = frozenset() if web_ui.web_login else guard.own_names(options.web_host)
    rules = guard.Guard(hosts)
    guard.install(app, rules)
    if web_ui.web_login:
        login.install(web_ui, read_secret(options))
    pages.install(web_ui, control)
    locust_page.install(web_ui, control)
    _expect_broken_handshakes()
    _announce(web_ui, options.web_base_path or "")
    if (settings.targets or settings.reuse) and (options.processes or not options.master):
        gevent.spawn(warn_of_targets, control, chosen_targets(settings))
    return control


def _describe_first(environment: Environment, form: RunForm) -> None:
    """Have the form begin with the command line's numbers, or else the first scenario's."""
    options, first = options_of(environment), read_facts(form.choices[0])
    options.num_users = options.num_users or first.users
    options.spawn_rate = options.spawn_rate or first.spawn_rate


def _expect_broken_handshakes() -> None:
    """Print nothing when somebody speaks plain http to https, or refuses the certificate."""
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, ssl.SSLError)


def _announce(web_ui: WebUI, base: str) -> None:
    scheme = "https" if web_ui.tls_cert and web_ui.tls_key else "http"
    where = put_address(web_ui.host or "0.0.0.0", web_ui.port)  # noqa: S104 - shown, not bound
    lines = [f"replayer: the page is at {scheme}://{where}{base}/ (Ctrl-C ends it)"]
    if web_ui.web_login:
        lines.append("replayer: it asks for the secret before it shows anything")
    if web_ui.web_login and scheme == "http" and not is_loopback(web_ui.host):
        lines.append(
            "replayer: secret and figures cross the network unencrypted; "
            "--tls-cert and --tls-key would change that"
        )
    sys.stderr.write("\n".join(lines) + "\n")


def warn_of_targets(control: RunControl, targets: Sequence[NamedTarget]) -> None:
    """Say on stderr and on the page which targets would refuse a run now."""
    for target in targets:
        try:
            check_in_time(target)
        except ReplayerError as error:
            message = f"no run can begin on {target.name} as it is: {error}"
            warning = RunWarning(kind="other", message=message, hint=error.hint)
            control.target_warnings = (*control.target_warnings, warning)
            hint = f"\nhint: {error.hint}" if error.hint else ""
            sys.stderr.write(f"replayer: warning: {message}{hint}\n")
