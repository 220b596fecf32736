"""Locust's real Flask application with our page on it, asked by Flask's own test client."""

import argparse
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import locust
import pytest
from flask.testing import FlaskClient
from locust import argument_parser, stats
from locust.env import Environment
from werkzeug.test import TestResponse

from replayer.locust.listeners import register
from replayer.locust.page import open_page
from replayer.locust.users import ScenarioUser
from replayer.run.options import Settings
from replayer.web.guard import TOKEN, TOKEN_HEADER
from replayer.web.run_control import RunControl
from tests.behaviour.parts import free_port

HOST = "127.0.0.1:8089"
SECRET = "correct horse battery"  # noqa: S105 - of these tests alone
ORDER = {
    "user_count": "2",
    "spawn_rate": "2",
    "run_time": "5s",
    "host": "near, far",
    "profile": "",
    "scenario": "tiny",
    "targets": ["near", "far"],
    "cache": "as-is",
    "pace": "as the scenario says",
}
"""What the form sends."""

TINY = """\
name: tiny
about: A few files that are read.
users: {count: 2, think_time: 2ms}
duration: 400ms
datasets:
  files: {files: 20, sizes: 1KiB}
mix: {look: 1}
transactions:
  look:
    - open: {from: files, pick: uniform}
    - read: {size: 4KiB}
    - close
"""


@dataclass(frozen=True)
class Served:
    """The page of one process."""

    control: RunControl
    client: FlaskClient
    environment: Environment
    options: argparse.Namespace
    token: str

    def ask(self, path: str, **headers: str) -> TestResponse:
        """GET something under the page's own name."""
        return self.client.get(path, headers={"Host": HOST, **headers})

    def send(
        self, path: str, form: Mapping[str, object] | None = None, **headers: str
    ) -> TestResponse:
        """POST as our own page does; headers given replace those."""
        own = {"Host": HOST, "Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {**own, TOKEN_HEADER: self.token, **named}
        return self.client.post(path, data=form or {}, headers=sent)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patches:
        yield from _serve(tmp_path_factory.mktemp("served"), patches, [])


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patches:
        patches.setenv("REPLAYER_WEB_SECRET", SECRET)
        home = tmp_path_factory.mktemp("locked")
        yield from _serve(home, patches, ["--web-login", "--web-host=0.0.0.0"])


def _serve(home: Path, patches: pytest.MonkeyPatch, more: list[str]) -> Iterator[Served]:
    patches.chdir(home)
    for name in ("near", "far"):
        (home / name).mkdir()
    (home / "tiny.yaml").write_text(TINY)
    # Nobody is served there; but the page sees that it could be.
    port = f"--web-port={free_port()}"
    words = ["--scenario=tiny.yaml", "--target=near=near", "--target=far=far", port, *more]
    patches.setattr(sys, "argv", ["locust", *words])
    patches.setattr(stats, "PERCENTILES_TO_STATISTICS", stats.PERCENTILES_TO_STATISTICS)
    register()
    options = argument_parser.parse_options(words)
    environment = Environment(
        user_classes=[ScenarioUser], events=locust.events, parsed_options=options
    )
    runner = environment.create_local_runner()
    web_ui = environment.create_web_ui(
        host=options.web_host,
        port=0,
        web_login=options.web_login,
        delayed_start=True,
    )
    control = open_page(environment, web_ui, Settings.read(options))
    assert web_ui.app is not None
    token = web_ui.app.extensions[TOKEN]
    yield Served(control, web_ui.app.test_client(), environment, options, token)
    runner.greenlet.kill()
    signal.signal(signal.SIGINT, signal.default_int_handler)
