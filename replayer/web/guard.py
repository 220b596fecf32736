"""Which requests are served at all: the page may put load on mounts, so strangers may not use it.

A browser sends requests for any page that is open in it. Four things keep such requests out, each
by itself: a token in a header of every POST, which only our own page can read; the Origin, which
must be our own; the Host, which must be a name of this machine (against names made to point here);
and no header of ours allows another origin to read anything. What is not listed is refused.

Pure but for ``install``, which ties it to the Flask application.
"""

import hmac
import ipaddress
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, g, jsonify, request

TOKEN_HEADER = "X-Replayer-Token"  # noqa: S105 - the name of a header
TOKEN = "replayer.token"  # noqa: S105 - where the application keeps it
READING = frozenset({"GET", "HEAD"})
WRITING = frozenset(
    {
        *("locust.swarm", "locust.stop", "locust.reset_stats"),
        *("replayer.login", "replayer.logout", "replayer.replay"),
        *("replayer.search", "replayer.end_search", "replayer.check", "replayer.measure_baseline"),
        *("replayer.remove_runs", "replayer.keep_run", "replayer.forget_run"),
    }
)
"""The endpoints that take a POST; every other POST is refused, also one that a locustfile adds."""
TOKENLESS = frozenset({"replayer.login"})
"""Its page shows nothing before the secret is right; the Origin counts there as everywhere."""
INLINE_SCRIPTS = "inline_scripts"
"""Where a view leaves the digests of scripts that stand in its page itself."""
INLINE = frozenset({"locust.stats_report"})
"""Locust's report to download is one file, with its script inside."""
REPORTS = frozenset({"replayer.page", "replayer.comparison_page", "replayer.capacity_page"})
"""So are ours. They are shown as if they came from nowhere: their script can ask us for nothing."""
SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Asked:
    """What of a request decides."""

    method: str
    endpoint: str | None
    """Flask's name of the view; None when there is none."""
    scheme: str
    headers: Mapping[str, str]
    """By name, without regard to case."""


@dataclass(frozen=True)
class Guard:
    """The rules of one process."""

    hosts: frozenset[str]
    """Names under which the page may be reached; empty: any, as a login protects it."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def refusal(self, asked: Asked) -> str | None:
        """Return why a request is refused; None when it is served."""
        host = asked.headers.get("Host", "")
        if self.hosts and _name_of(host) not in self.hosts:
            return f"this page is not served at {_name_of(host)!r}"
        site, mode = (asked.headers.get(f"Sec-Fetch-{name}") for name in ("Site", "Mode"))
        if asked.method in READING:
            # A link may lead here; what another page loads by itself costs time and says nothing.
            is_foreign = site == "cross-site" and mode != "navigate"
            return "the request comes from another site" if is_foreign else None
        if asked.method != "POST" or asked.endpoint not in WRITING:
            return "this cannot be set from the page"
        return self._stranger(asked, host)

    def _stranger(self, asked: Asked, host: str) -> str | None:
        """Return why a POST does not come from our own page; https in front of us is our own."""
        site = asked.headers.get("Sec-Fetch-Site", "same-origin")
        origin = asked.headers.get("Origin")
        if site != "same-origin" or origin not in {
            None,
            f"{asked.scheme}://{host}",
            f"https://{host}",
        }:
            return "the request comes from another site"
        sent = asked.headers.get(TOKEN_HEADER, "").encode()
        if asked.endpoint not in TOKENLESS and not hmac.compare_digest(sent, self.token.encode()):
            return f"the page is older than this program ({TOKEN_HEADER}); reload it"
        if asked.endpoint in TOKENLESS and origin is None:
            return "the request does not name its origin, as a browser would"
        return None


def own_names(web_host: str) -> frozenset[str]:
    """Return the names of a page that listens on the loopback alone."""
    return frozenset({"localhost", "127.0.0.1", "::1", web_host.strip("[]").lower()})


def install(app: Flask, guard: Guard) -> None:
    """Have every request judged first, and every answer sent with headers that keep others out."""
    app.extensions[TOKEN] = guard.token
    app.before_request(lambda: _judge(guard))
    app.after_request(_protect)
    app.wsgi_app = _Closed(app.wsgi_app)  # type: ignore[method-assign] # as Flask's manual says


def _judge(guard: Guard) -> tuple[Response, int] | None:
    asked = Asked(request.method, request.endpoint, request.scheme, dict(request.headers))
    reason = guard.refusal(asked)
    if reason is None:
        return None
    return jsonify({"success": False, "message": f"refused: {reason}"}), 403


def _protect(response: Response) -> Response:
    # Of a page that it has, a browser takes the headers anew.
    is_there = response.status_code in {HTTPStatus.OK, HTTPStatus.NOT_MODIFIED}
    shown = request.endpoint in REPORTS and is_there
    response.headers["Content-Security-Policy"] = SANDBOX if shown else _policy()
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["X-Frame-Options"] = "DENY"
    return response


def _policy() -> str:
    scripts = "'self' 'unsafe-inline'" if request.endpoint in INLINE else "'self'"
    for known in g.get(INLINE_SCRIPTS, ()):
        scripts += f" 'sha256-{known}'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


class _Closed:
    """Takes away what lets other origins read answers; Locust adds it to everything, last."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:  # noqa: ANN401 - PEP 3333
            kept = [pair for pair in headers if not pair[0].lower().startswith("access-control-")]
            return start_response(status, kept, *rest)

        return self._application(environ, start)


def _name_of(host: str) -> str:
    """Return the name in a Host header, without its port."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return str(ipaddress.ip_address(name)) if ":" in name else name
    except ValueError:
        return ""
