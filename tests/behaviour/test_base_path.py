"""The page below a prefix, as a proxy serves it: every link leads on, and a run is started."""

from collections.abc import Iterator

import pytest

from tests.behaviour.browser import Page, find_chromium
from tests.behaviour.page import Server, serve
from tests.behaviour.shell import make_shell

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium here"),
]

LINKS = "[...document.querySelectorAll('#rp-bar nav a')].map(({ href }) => href)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    shell = make_shell(tmp_path_factory.mktemp("below"))
    with serve(shell, "tiny.yaml", f"--target=near={shell.target()}", prefix="/load") as found:
        yield found


def test_every_link_of_the_bar_leads_to_its_page(server: Server, page: Page) -> None:
    page.look(1280, "light")
    page.open(server.url)
    links = page.until(f"({LINKS}).length >= 6 && {LINKS}")
    assert all(each.startswith(server.url.rstrip("/")) for each in links)
    for place in links:
        page.open(place)
        here = page.until("document.querySelector('#rp-bar nav a[aria-current]')?.href")
        assert here == place
    assert page.complaints == []


def test_a_run_is_started_and_its_report_is_read(server: Server, page: Page) -> None:
    page.look(1280, "light")
    page.open(server.url)
    page.until("document.querySelector('#command').innerText.startsWith('replayer run')")
    page.write("run_time", "1s")
    page.press("Start")
    page.until("location.pathname == '/load/replayer/live'")
    page.until("/INCONCLUSIVE|PASS/.test(document.querySelector('#rp-now')?.innerText)")
    page.press("Report")
    page.until("/Conditions/.test(document.body.innerText)")
    assert page.complaints == []
