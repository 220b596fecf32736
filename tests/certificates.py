"""Certificates for tests of https."""

import subprocess
from pathlib import Path

__all__ = ["make_certificate"]


def make_certificate(folder: Path, name: str = "own") -> tuple[str, str]:
    """Make a certificate of this machine's loopback address and its key; return both files."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out",
         str(certificate)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return str(certificate), str(key)
