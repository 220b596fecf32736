"""The login: one secret, one page, a session that ends with the process.

Locust brings the session and asks for it on its own pages; here every view is asked for it, so that
none is forgotten.
"""

import hmac
import secrets
from hashlib import sha256

import gevent
from flask import Blueprint, Flask, Response, redirect, render_template, request, url_for
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user
from gevent.lock import BoundedSemaphore

WAIT_S = 1.0  # chosen: long for who guesses, short for who slips
OPEN_TO_ALL = frozenset({"replayer.login", "replayer.assets", "static"})
KNOWN = "known"
SECRET = "replayer.secret"  # noqa: S105 - where the application keeps it


class _Known(UserMixin):  # type: ignore[misc] # flask_login is not typed
    """Whoever knows the secret."""

    id = KNOWN


def install(app: Flask, manager: LoginManager, secret: str, *, tls: bool) -> None:
    """Have every view ask for a session, which the secret opens."""
    app.secret_key = secrets.token_bytes(32)
    app.config.update(
        SESSION_COOKIE_NAME="replayer",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        SESSION_COOKIE_SECURE=tls,
    )
    manager.login_view = "replayer.login"
    manager.user_loader(lambda name: _Known() if name == KNOWN else None)
    app.extensions[SECRET] = sha256(secret.encode()).digest()
    app.before_request(_ask)


def is_installed(app: Flask) -> bool:
    """Whether the page asks for a secret."""
    return SECRET in app.extensions


def views(blueprint: Blueprint, app: Flask) -> None:
    """Add the login's own views."""
    one_at_a_time = BoundedSemaphore()

    @blueprint.route("/login", methods=["GET", "POST"])
    def login() -> Response | tuple[str, int] | str:
        if not is_installed(app):
            return _to("locust.index")
        if request.method == "GET":
            return render_template("replayer/login.html", wrong=False)
        with one_at_a_time:  # or a hundred guesses at once would wait no longer than one
            if _is_right(app, request.form.get("secret", "")):
                login_user(_Known())
                return _to("locust.index")
            gevent.sleep(WAIT_S)
        return render_template("replayer/login.html", wrong=True), 403

    @blueprint.route("/logout", methods=["POST"])
    def logout() -> Response:
        logout_user()
        return _to("replayer.login")


def _is_right(app: Flask, sent: str) -> bool:
    known: bytes = app.extensions[SECRET]
    return hmac.compare_digest(sha256(sent.strip().encode()).digest(), known)


def _ask() -> Response | tuple[str, int] | None:
    if request.endpoint in OPEN_TO_ALL or current_user.is_authenticated:
        return None
    if request.method == "GET" and request.endpoint is not None and _wants_a_page():
        return _to("replayer.login")
    return "log in first", 401


def _wants_a_page() -> bool:
    return bool(
        request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"
    )


def _to(endpoint: str) -> Response:
    return Response(status=303, headers={"Location": redirect(url_for(endpoint)).location})
