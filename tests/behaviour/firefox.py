"""Headless Firefox, driven by WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi/)."""

import itertools
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import websocket

from tests.behaviour.browser import LIMIT_S, Driven, started

SCHEME = "light"
SETTINGS = """\
user_pref("layout.css.prefers-color-scheme.content-override", 1);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
"""
"""Light pages, and nothing asked of the makers of Firefox."""


def find_firefox() -> str | None:
    """Return the program, or None where there is none."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class FirefoxPage(Driven):
    """A tab of Firefox."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=LIMIT_S, suppress_origin=True)
        self._numbers = itertools.count(1)
        self.complaints = []
        self.asked = set()
        self._call("session.new", capabilities={})
        self._call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        (self._tab, *_) = (
            each["context"] for each in self._call("browsingContext.getTree")["contexts"]
        )

    def close(self) -> None:
        """Let go of it."""
        self._socket.close()

    def _call(self, method: str, **parameters: Any) -> Any:  # noqa: ANN401 - JSON
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                assert message["type"] == "success", message
                return message["result"]
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        details = message.get("params", {})
        if message.get("method") == "network.beforeRequestSent":
            self.asked.add(details["request"]["url"])
        if message.get("method") == "log.entryAdded" and details["level"] == "error":
            self.complaints.append(f"{details['text']} {details.get('source', {})}")

    def open(self, url: str) -> None:
        self._call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def run(self, script: str) -> Any:  # noqa: ANN401 - JSON
        done = self._call(
            "script.evaluate", expression=script, target={"context": self._tab}, awaitPromise=True
        )
        assert done["type"] == "success", done
        return _plain(done["result"])

    def look(self, width: int, scheme: str) -> None:
        assert scheme == SCHEME, "its profile says light"
        viewport = {"width": width, "height": 900}
        self._call("browsingContext.setViewport", context=self._tab, viewport=viewport)


def _plain(value: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return a value as JSON would have it."""
    if value["type"] == "array":
        return [_plain(each) for each in value["value"]]
    if value["type"] == "object":
        return {name: _plain(each) for name, each in value["value"]}
    return value.get("value")


@contextmanager
def open_firefox(home: Path) -> Iterator[FirefoxPage]:
    """Start Firefox with an empty profile, and end it."""
    program = find_firefox()
    assert program is not None
    (home / "user.js").write_text(SETTINGS)
    command = [program, "--headless", "--no-remote", "--profile", str(home)]
    command += ["--remote-debugging-port", "0", "about:blank"]
    with started(command, home), closing(FirefoxPage(_address(home))) as page:
        yield page


def _address(home: Path) -> str:
    """Return where it listens, which it writes into its profile."""
    file = home / "WebDriverBiDiServer.json"
    deadline = time.monotonic() + LIMIT_S
    while not file.exists() or not file.read_text().endswith("}"):
        assert time.monotonic() < deadline, "Firefox has not started"
        time.sleep(0.1)
    told = json.loads(file.read_text())
    return f"ws://{told['ws_host']}:{told['ws_port']}/session"
