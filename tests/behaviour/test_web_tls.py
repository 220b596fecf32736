"""The page over https, and what those are told who speak plain http to it."""

import signal
import time
from pathlib import Path

import pytest
import requests

from tests.behaviour.page import LIMIT_S
from tests.behaviour.parts import free_port
from tests.behaviour.shell import Shell
from tests.certificates import make_certificate


def test_plain_http_to_an_https_page_is_refused_without_a_word_on_the_terminal(
    shell: Shell, tmp_path: Path
) -> None:
    shell.target()
    port, (trusted, key) = free_port(), make_certificate(tmp_path)
    tls = ("--tls-cert", trusted, "--tls-key", key)
    words = ("--web-port", str(port), "tiny.yaml", "--target", "mount=mount", "--quiet")
    process = shell.start("web", *words, *tls)
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            page = requests.get(f"https://127.0.0.1:{port}/", verify=trusted, timeout=LIMIT_S)
            break
        except requests.ConnectionError:
            assert process.poll() is None
            assert time.monotonic() < deadline, "it does not listen"
            time.sleep(0.1)
    assert "replayer-token" in page.text
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{port}/", timeout=LIMIT_S)
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"https://127.0.0.1:{port}/", timeout=LIMIT_S)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert f"the page is at https://127.0.0.1:{port}/" in said
    assert "Traceback" not in said
    assert "SSLError" not in said
