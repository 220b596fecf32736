"""Which requests are served: the rules by themselves."""

import pytest

from replayer.run.web_options import is_loopback
from replayer.web.guard import TOKEN_HEADER, WRITING, Asked, Guard, own_names

RULES = Guard(own_names("127.0.0.1"), token="t" * 43)
OWN = {
    "Host": "127.0.0.1:8089",
    "Origin": "http://127.0.0.1:8089",
    "Sec-Fetch-Site": "same-origin",
    TOKEN_HEADER: RULES.token,
}


def post(endpoint: str | None = "locust.swarm", **changes: str | None) -> Asked:
    headers = {name.replace("_", "-"): value for name, value in changes.items()}
    merged = {name: value for name, value in {**OWN, **headers}.items() if value is not None}
    return Asked("POST", endpoint, "http", merged)


@pytest.mark.parametrize("endpoint", sorted(WRITING))
def test_our_own_page_is_served(endpoint: str) -> None:
    assert RULES.refusal(post(endpoint)) is None


@pytest.mark.parametrize(
    "asked",
    [
        post(Origin="http://evil.example"),
        post(Origin="null"),
        post(Origin="http://127.0.0.1:9000"),
        post(Origin="http://localhost:8089"),
        post(Sec_Fetch_Site="cross-site"),
        post(Sec_Fetch_Site="same-site"),
        post(Sec_Fetch_Site="none"),
        post(**{TOKEN_HEADER: None}),
        post(**{TOKEN_HEADER: "the token of another"}),
        post(**{TOKEN_HEADER: "\N{SNOWMAN}"}),
        post(Host="evil.example"),
        post(Host="127.0.0.1.evil.example:8089", Origin="http://127.0.0.1.evil.example:8089"),
        post(Host=None),
        post("locust.update_user"),
        post("somebody.elses"),
        post(None),
        post("replayer.login", Origin=None),
    ],
)
def test_a_stranger_is_not(asked: Asked) -> None:
    assert RULES.refusal(asked) is not None


def test_https_may_be_put_in_front_but_not_taken_away() -> None:
    secure = f"https://{OWN['Host']}"
    assert RULES.refusal(post(Origin=secure)) is None
    taken = Asked("POST", "locust.swarm", "https", OWN)
    assert RULES.refusal(taken) is not None


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_no_other_method_is(method: str) -> None:
    assert RULES.refusal(Asked(method, "locust.swarm", "http", OWN)) is not None


@pytest.mark.parametrize("host", ["localhost:8089", "127.0.0.1", "[::1]:8089", "LOCALHOST"])
def test_every_name_of_this_machine_reads(host: str) -> None:
    assert RULES.refusal(Asked("GET", "locust.index", "http", {"Host": host})) is None


@pytest.mark.parametrize("host", ["evil.example", "[::2]:8089", "", "[", "10.0.0.1"])
def test_a_name_that_was_made_to_point_here_reads_nothing(host: str) -> None:
    assert RULES.refusal(Asked("GET", "locust.index", "http", {"Host": host})) is not None


def test_with_a_login_any_name_may_be_used() -> None:
    rules = Guard(frozenset(), token=RULES.token)
    own = {**OWN, "Host": "bench.example:8089", "Origin": "http://bench.example:8089"}
    assert rules.refusal(Asked("POST", "locust.stop", "http", own)) is None


def test_each_process_has_a_token_of_its_own() -> None:
    assert Guard(frozenset()).token != Guard(frozenset()).token


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9"])
def test_the_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "*", "0.0.0.0", "::", "10.1.2.3", "localhost.example"])
def test_what_others_reach_is_no_loopback(host: str) -> None:
    assert not is_loopback(host)
