"""The page in two browsers at once: both see the same run, and what one does, the other shows."""

import time
from collections.abc import Iterator

import pytest

from tests.behaviour.browser import Driven, Page, find_chromium, open_page
from tests.behaviour.firefox import find_firefox, open_firefox
from tests.behaviour.page import Server

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium here"),
]

STATE = "document.querySelector('#rp-now')?.innerText"
LANES = "document.querySelector('#lanes')"
LEFT = "NetworkError when attempting to fetch"
"""What Firefox says of a request that was under way when its page was left."""
SOON = 20
WITHOUT_FIREFOX = pytest.mark.skipif(find_firefox() is None, reason="there is no Firefox here")


@pytest.fixture(params=["chromium", pytest.param("firefox", marks=WITHOUT_FIREFOX)])
def other(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Driven]:
    """A second browser."""
    home = tmp_path_factory.mktemp("other")
    with open_firefox(home) if request.param == "firefox" else open_page(home) as page:
        yield page


def test_both_see_the_same_run_and_what_the_other_does(
    server: Server, page: Page, other: Driven
) -> None:
    for each in (page, other):
        each.look(1280, "light")
        each.open(server.url)
        each.until("document.querySelector('#command').innerText.startsWith('replayer run')")
    page.write("run_time", "10m")
    page.press("Start")
    page.until("location.pathname.endsWith('/live')")
    other.press("Start")
    other.until("document.querySelector('#refused').innerText.includes('run')")
    other.open(f"{server.url}replayer/live")
    for each in (page, other):
        each.until(f"/RUNNING/.test({STATE})")
        each.until("document.querySelectorAll('#lanes canvas').length == 2")
    other.press("Stop")
    for each in (page, other):
        each.until(f"/INCONCLUSIVE|PASS/.test({STATE})")
    for _ in range(SOON):  # each asks anew once a second
        first, second = (each.run(f"{LANES}.innerText") for each in (page, other))
        if first == second:
            break
        time.sleep(0.5)
    assert first == second
    (run,) = {server.until("stopped")["id"]}
    for each in (page, other):
        each.open(f"{server.url}replayer/runs")
        each.until(f"document.body.innerText.includes({run!r})")


@WITHOUT_FIREFOX
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_works_in_firefox(
    server: Server, tmp_path_factory: pytest.TempPathFactory, width: int
) -> None:
    with open_firefox(tmp_path_factory.mktemp("firefox")) as firefox:
        firefox.look(width, "light")
        for place in (
            *("", "replayer/live", "locust", "locust?tab=operations", "replayer/runs"),
            *("replayer/traces", "replayer/timeline?trace=wordpress/front-warm"),
            "replayer/capacities",
        ):
            firefox.open(server.url + place)
            firefox.until("!!document.querySelector('#rp-bar nav a[aria-current]')")
            wide = "document.documentElement.scrollWidth <= window.innerWidth"
            assert firefox.run(wide), place
        assert [each for each in firefox.complaints if LEFT not in each] == []
        assert {url for url in firefox.asked if not url.startswith((server.url, "data:"))} <= {
            "about:blank"
        }
