"""Addresses and certificates that are to be served or reached: tried before anything is made.

Locust would end with a traceback, and some of it after it has said that it listens.
"""

import socket
import ssl
import time
from pathlib import Path

from replayer.errors import OutsideError, ReplayerError

MOST_PORT = 65535
NAME_S = 30.0  # chosen: a master that is being started has its name within seconds


def put_address(host: str, port: int) -> str:
    """Return an address as URLs have it: IPv6 ones in brackets, as ports follow a colon too."""
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def try_address(option: str, host: str, port: int) -> None:
    """Listen at an address for a moment; an empty host, or ``*``, is every interface.

    Raises:
        ReplayerError: The port is none.
        OutsideError: Somebody else listens there, or this machine has no such address.
    """
    if not 0 < port <= MOST_PORT:
        message = f"{option} {port}: the port must be from 1 to {MOST_PORT}"
        raise ReplayerError(message, hint=f"for example {option} 8099")
    everywhere = "" if host == "*" else host.strip("[]")
    family = socket.AF_INET6 if ":" in everywhere else socket.AF_INET
    try:
        with socket.socket(family) as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((everywhere, port))
            found.listen()
    except OSError as error:
        message = (
            f"{option} {port}: cannot listen at {put_address(host or '*', port)}: {error.strerror}"
        )
        raise OutsideError(message, hint="choose another port or address") from error


def find_host(option: str, host: str, patience_s: float = NAME_S) -> None:
    """See that a machine's name is known, which may take a while after its start.

    Raises:
        OutsideError: Nobody knows it.
    """
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            socket.getaddrinfo(host.strip("[]"), None)
        except (socket.gaierror, UnicodeError) as error:
            if time.monotonic() >= deadline_s:
                message = f"{option} {host}: unknown host"
                hint = "give the name or address of the machine of the master"
                raise OutsideError(message, hint=hint) from error
            time.sleep(min(1.0, patience_s))
        else:
            return


def try_certificate(certificate: str | None, key: str | None) -> None:
    """Read the files that https needs.

    Raises:
        ReplayerError: One of them is missing, cannot be read, or does not belong to the other.
    """
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        message = (
            "https needs both --tls-cert and --tls-key, "
            f"{'--tls-cert' if certificate is None else '--tls-key'} is missing"
        )
        raise ReplayerError(message, hint="give both --tls-cert and --tls-key")
    for option, file in (("--tls-cert", certificate), ("--tls-key", key)):
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise ReplayerError(f"{option} {file}: cannot be read: {error.strerror}") from error
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        message = f"--tls-cert {certificate}, --tls-key {key}: cannot be used for https: {error}"
        hint = "both must be PEM files; the key must match the certificate and have no password"
        raise ReplayerError(message, hint=hint) from error
