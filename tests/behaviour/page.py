"""A real ``replayer web`` in a process of its own, and its page as a browser would ask for it."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

from tests.behaviour.parts import free_port
from tests.behaviour.shell import Process, Shell
from tests.processes import children_of

LIMIT_S = 40.0
ORDER = {
    "user_count": "2",
    "spawn_rate": "10",
    "run_time": "1s",
    "scenario": "tiny",
    "targets": "mount",
    "cache": "warm",
    "pace": "as the scenario says",
}


@dataclass
class Server:
    """The program that serves the page, and where."""

    process: Process
    url: str
    token: str = ""

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.origin.rpartition(":")[2])

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return "/".join(self.url.split("/")[:3])

    def get(self, path: str, **headers: str) -> str:
        """Return what is served at a path."""
        try:
            answer = requests.get(self.url + path, headers=headers, timeout=LIMIT_S)
        except requests.Timeout:
            self._show_where_it_stands()
            raise
        answer.raise_for_status()
        return answer.text

    def _show_where_it_stands(self) -> None:
        """Have a program that does not answer print what its threads do, and end it."""
        for child in children_of(self.process.pid):
            os.kill(child, signal.SIGABRT)
        print(*self.process.communicate(timeout=20), sep="\n")  # noqa: T201 - for who reads the test

    def now(self) -> Any:  # noqa: ANN401 - JSON
        """Return what the bar above the pages shows."""
        return json.loads(self.get("replayer/now"))

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> tuple[int, str]:
        """Send a form as our own page does; headers given replace those."""
        own = {"X-Replayer-Token": self.token, "Origin": self.origin, **headers}
        answer = requests.post(self.url + path, data=form, headers=own, timeout=LIMIT_S)
        return answer.status_code, answer.text

    def start(self, **changes: str) -> None:
        """Order a run."""
        code, text = self.post("swarm", {**ORDER, **changes})
        assert (code, json.loads(text)["success"]) == (200, True), text

    def until(self, state: str) -> Any:  # noqa: ANN401 - JSON
        """Wait until the page is in a state, and return what it shows."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            found = self.now()
            if found["state"] == state:
                return found["run"]
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


@contextmanager
def serve(
    shell: Shell, *words: str, within: tuple[str, ...] = (), port: int = 0, prefix: str = ""
) -> Iterator[Server]:
    """Start the program and wait until it listens; end it if the test has not."""
    port = port or free_port()
    words = (*words, "--web-base-path", prefix) if prefix else words
    process = shell.start("web", "--web-port", str(port), "--quiet", *words, within=within)
    server = Server(process, f"http://127.0.0.1:{port}{prefix}/")
    try:
        _wait(server)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _wait(server: Server) -> None:
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            page = server.get("")
        except OSError:
            assert server.process.poll() is None, server.process.communicate()
            assert time.monotonic() < deadline, "it does not listen"
            time.sleep(0.1)
            continue
        found = re.search(r'name="replayer-token" content="([^"]+)"', page)
        server.token = "" if found is None else found[1]
        return
