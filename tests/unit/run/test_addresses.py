"""Addresses and certificates are tried before anything is made."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from replayer.errors import OutsideError, ReplayerError
from replayer.run.addresses import find_host, put_address, try_address, try_certificate
from tests.certificates import make_certificate


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which somebody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        found.listen()
        yield found.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "", "*", "localhost"])
def test_a_port_that_somebody_has_is_named(taken: int, host: str) -> None:
    with pytest.raises(OutsideError, match=f"--web-port {taken}: .*already in use") as told:
        try_address("--web-port", host, taken)
    assert told.value.exit_code == 3


def test_a_port_that_nobody_has_stays_free(taken: int) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        free = found.getsockname()[1]
    assert free != taken
    try_address("--web-port", "127.0.0.1", free)
    try_address("--web-port", "127.0.0.1", free)


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_a_port_that_is_none_is_a_mistake(port: int) -> None:
    with pytest.raises(ReplayerError, match="from 1 to 65535") as told:
        try_address("--web-port", "127.0.0.1", port)
    assert told.value.exit_code == 2


def test_an_address_of_another_machine_is_refused(taken: int) -> None:
    with pytest.raises(OutsideError, match=r"cannot listen at 192\.0\.2\.1"):
        try_address("--web-port", "192.0.2.1", taken)  # RFC 5737: nobody's


def test_a_name_that_nobody_knows_is_the_environments() -> None:
    with pytest.raises(OutsideError, match="unknown host") as caught:
        find_host("--master-host", "nowhere.invalid", patience_s=0)
    assert caught.value.exit_code == 3
    find_host("--master-host", "127.0.0.1")
    find_host("--master-host", "[::1]")


def test_an_address_is_put_as_urls_have_it() -> None:
    assert put_address("example.org", 80) == "example.org:80"
    assert put_address("*", 5557) == "*:5557"
    assert put_address("::1", 8089) == put_address("[::1]", 8089) == "[::1]:8089"


def test_a_certificate_serves_only_with_its_own_key(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    _, other = make_certificate(tmp_path, "other")
    try_certificate(None, None)
    try_certificate(certificate, key)
    for words, says in (
        ((certificate, None), "--tls-key is missing"),
        ((None, key), "--tls-cert is missing"),
        ((certificate, other), "cannot be used for https"),
        ((certificate, str(tmp_path)), "--tls-key .*: cannot be read"),
        ((str(tmp_path / "none"), key), "--tls-cert .*: cannot be read"),
    ):
        with pytest.raises(ReplayerError, match=says):
            try_certificate(*words)
