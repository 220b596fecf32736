"""Headless Chromium, driven by its DevTools protocol: pages are opened, looked at and used."""

import base64
import itertools
import json
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import websocket

LIMIT_S = 30.0
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-extensions", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb"),
    *("--disable-breakpad", "--disable-crash-reporter"),
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)


def find_chromium() -> str | None:
    """Return the program, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Driven(ABC):
    """A tab of any browser, and what a person does in it."""

    complaints: list[str]
    """What the browser said was wrong."""
    asked: set[str]
    """The addresses that were loaded."""

    @abstractmethod
    def run(self, script: str) -> Any:  # noqa: ANN401 - JSON
        """Run a script and return what it gives."""

    @abstractmethod
    def open(self, url: str) -> None:
        """Go to a page and wait until it is complete."""

    @abstractmethod
    def look(self, width: int, scheme: str) -> None:
        """Have another width, and light or dark."""

    def until(self, script: str, limit_s: float = LIMIT_S) -> Any:  # noqa: ANN401 - JSON
        """Wait until a script gives something that is true, and return it."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                found = self.run(script)
            except AssertionError:  # the page is being exchanged for another
                found = None
            if found:
                return found
            assert time.monotonic() < deadline, (
                f"not so within {limit_s} s: {script}\n{self.text()}"
            )
            time.sleep(0.1)

    def text(self) -> str:
        """Return what can be read on the page."""
        return str(self.run("document.body.innerText"))

    def press(self, label: str) -> None:
        """Press the button or link that bears a label, once it can be seen."""
        found = (
            "[...document.querySelectorAll('button, a, [role=tab], label')]"
            ".filter(each => each.getClientRects().length)"
            f".find(each => each.innerText.trim().toLowerCase() == {json.dumps(label.lower())})"
        )
        self.until(f"!!{found}")
        self.run(f"{found}.click()")

    def write(self, name: str, text: str) -> None:
        """Write into a field of a form as a person does, so that its script hears of it."""
        self.run(
            f"""(() => {{
              const field = document.querySelector('[name="{name}"]');
              const kind = Object.getPrototypeOf(field);
              Object.getOwnPropertyDescriptor(kind, "value").set.call(field, {json.dumps(text)});
              for (const event of ["input", "change"])
                field.dispatchEvent(new Event(event, {{ bubbles: true }}));
            }})()"""
        )


class Page(Driven):
    """A tab of Chromium."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=LIMIT_S)
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """Let go of it."""
        self._socket.close()

    def call(self, method: str, **parameters: Any) -> Any:  # noqa: ANN401 - JSON
        """Make one call of the protocol and return its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        details = message.get("params", {})
        if message["method"] == "Network.requestWillBeSent":
            self.asked.add(details["request"]["url"])
        if message["method"] == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(details["exceptionDetails"]))
        if message["method"] == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.complaints.append(f"{details['entry']['text']} {details['entry'].get('url', '')}")

    def open(self, url: str) -> None:
        """Go to a page and wait until it is complete."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState == 'complete' && location.href != 'about:blank'")

    def leave(self) -> None:
        """Leave a page whose program has ended, and forget what it complained of."""
        self.call("Page.navigate", url="about:blank")
        self.complaints.clear()

    def run(self, script: str) -> Any:  # noqa: ANN401 - JSON
        """Run a script and return what it gives."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def look(self, width: int, scheme: str) -> None:
        """Have another width, and light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, file: Path) -> None:
        """Keep a picture of the whole page."""
        height = self.run("Math.min(document.documentElement.scrollHeight, 4000)")
        width = self.run("window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def open_page(home: Path) -> Iterator[Page]:
    """Start Chromium with an empty profile, and end it with everything it started."""
    program = find_chromium()
    assert program is not None
    command = [program, *FLAGS, f"--user-data-dir={home}", "about:blank"]
    with started(command, home):
        page = Page(_address(home))
        yield page
        page.close()


@contextmanager
def started(command: list[str], home: Path) -> Iterator[None]:
    """Start a browser whose profile is a folder, and end it."""
    with (home.parent / f"{home.name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _address(home: Path) -> str:
    """Return where the first tab listens: Chromium writes its port into its profile."""
    file = home / "DevToolsActivePort"
    deadline = time.monotonic() + LIMIT_S
    while not file.exists() or "\n" not in file.read_text():
        assert time.monotonic() < deadline, "Chromium has not started"
        time.sleep(0.1)
    port = file.read_text().splitlines()[0]
    tabs = requests.get(f"http://127.0.0.1:{port}/json", timeout=LIMIT_S).json()
    return str(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
