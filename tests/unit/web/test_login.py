"""The login: nothing before the secret, everything after it."""

import pytest

from tests.unit.web.conftest import ORDER, SECRET, Served


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/locust", "/stats/requests", "/logs", "/no"),
        *(f"/replayer/{name}" for name in ("now", "runs", "targets", "race", "explain", "live")),
    ],
)
def test_nothing_is_shown_before_it(locked: Served, path: str) -> None:
    locked.client.delete_cookie("replayer")
    assert locked.ask(path, Accept="application/json").status_code == 401


def test_a_reader_is_led_to_it(locked: Served) -> None:
    locked.client.delete_cookie("replayer")
    asked = locked.ask("/", Accept="text/html")
    assert (asked.status_code, asked.headers["Location"]) == (303, "/replayer/login")
    assert locked.token not in locked.ask("/replayer/login").get_data(as_text=True)


def test_nothing_is_started_before_it(locked: Served) -> None:
    locked.client.delete_cookie("replayer")
    assert (locked.send("/swarm", ORDER).status_code, locked.control.state) == (401, "ready")
    assert locked.send("/replayer/check", ORDER).status_code == 401
    assert locked.send("/replayer/remove", {"run": "latest"}).status_code == 401


def test_the_secret_opens_the_page_until_it_is_left(locked: Served) -> None:
    wrong = locked.send("/replayer/login", {"secret": SECRET[:-1]})
    assert (wrong.status_code, "Wrong secret" in wrong.get_data(as_text=True)) == (403, True)
    right = locked.send("/replayer/login", {"secret": SECRET})
    assert right.status_code == 303
    assert all(word in right.headers["Set-Cookie"] for word in ("HttpOnly", "SameSite=Strict"))
    assert locked.ask("/").status_code == 200
    assert locked.send("/stats/reset").status_code == 200
    assert locked.send("/replayer/logout").status_code == 303
    assert locked.ask("/", Accept="application/json").status_code == 401


def test_another_page_cannot_log_in(locked: Served) -> None:
    locked.client.delete_cookie("replayer")
    form = {"secret": SECRET}
    answer = locked.send("/replayer/login", form, Origin="http://evil.example")
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
