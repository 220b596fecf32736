"""Opening the desk in Locust's ``init`` event: form, guard, login and pages, before it listens."""

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from flask.json.provider import DefaultJSONProvider
from locust import stats
from locust.env import Environment
from locust.web import WebUI

from replayer.load.options import Settings, options_of
from replayer.load.session import DEFAULT_FOLDER
from replayer.load.users import has_scenario_users
from replayer.load.web import guard, locust_page, login, pages
from replayer.load.web.desk import Desk
from replayer.load.web.form import Choice, Form, make_form
from replayer.load.web_options import is_loopback, read_secret
from replayer.scenario import load_scenario, shipped_scenarios

__all__ = ["open_desk"]

DIGITS = 3
"""Of times in Locust's tables; chosen: as many as the histograms hold."""
SHOWN = [0.5, 0.95, 0.99]
"""Percentiles of Locust's table; its column for the median has two decimals of a millisecond."""
NS_PER_S = 1e9
TASKS_ALONE = Choice("locustfile", None, "The tasks of the locustfile.", 1, 1.0)


class _InOrder(DefaultJSONProvider):
    """JSON whose keys come as they were put: ops after their transaction."""

    sort_keys = False


def open_desk(environment: Environment, web_ui: WebUI, settings: Settings) -> Desk:
    """Make the page of a process.

    Raises:
        ReplayerError: A scenario or target cannot be meant.
    """
    options = options_of(environment)
    choices = (
        list(_choices(settings, options.offer))
        if has_scenario_users(environment)
        else [TASKS_ALONE]
    )
    form = make_form(settings, choices, str(DEFAULT_FOLDER))
    desk = Desk(environment, web_ui, form)
    _describe_first(environment, form)
    stats.bucket_response_time = _round_time  # type: ignore[assignment] # its manual says so
    stats.PERCENTILES_TO_STATISTICS = SHOWN
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
    pages.install(web_ui, desk)
    locust_page.install(web_ui, desk)
    _announce(web_ui, options.web_base_path or "")
    return desk


def _choices(settings: Settings, offered: Sequence[str]) -> Iterator[Choice]:
    """Yield what was named on the command line, then what comes with the program."""
    first = [] if settings.scenario is None else [settings.scenario]
    named = list(dict.fromkeys((*first, *offered)))
    names: set[str] = set()
    for source in named:
        name = Path(source).stem if Path(source).stem not in names else source
        names.add(name)
        changes = settings.changes if source == settings.scenario else ()
        yield _choice(name, source, changes)
    yield from (choice for choice in _shipped() if choice.name not in names)


@cache
def _shipped() -> tuple[Choice, ...]:
    """Return the scenarios that come with the program; they are the same for as long as it runs."""
    return tuple(_choice(name, name, ()) for name in shipped_scenarios())


def _choice(name: str, source: str, changes: tuple[str, ...]) -> Choice:
    scenario = load_scenario(source, changes)
    users, seconds = scenario.users.count, scenario.users.ramp_up_ns / NS_PER_S
    return Choice(
        name=name,
        source=source,
        about=" ".join(scenario.about.split()),
        users=users,
        spawn_rate=round(users / seconds, 3) if seconds else float(users),
    )


def _describe_first(environment: Environment, form: Form) -> None:
    """Have the form begin with the command line's numbers, or else the first scenario's."""
    options = options_of(environment)
    options.num_users = options.num_users or form.choices[0].users
    options.spawn_rate = options.spawn_rate or form.choices[0].spawn_rate


def _round_time(milliseconds: float) -> float:
    """Round a time to three digits, where Locust would round to whole milliseconds."""
    return float(f"{milliseconds:.{DIGITS}g}")


def _announce(web_ui: WebUI, base: str) -> None:
    scheme = "https" if web_ui.tls_cert and web_ui.tls_key else "http"
    where = web_ui.host or "0.0.0.0"  # noqa: S104 - shown, not bound
    lines = [f"replayer: the page is at {scheme}://{where}:{web_ui.port}{base}/ (Ctrl-C ends it)"]
    if web_ui.web_login:
        lines.append("replayer: it asks for the secret before it shows anything")
    if web_ui.web_login and scheme == "http" and not is_loopback(web_ui.host):
        lines.append(
            "replayer: secret and figures cross the network unencrypted; "
            "--tls-cert and --tls-key would change that"
        )
    sys.stderr.write("\n".join(lines) + "\n")
