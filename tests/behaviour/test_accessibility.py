"""Every page by the rules of axe: contrast, names, headers, in light and dark, wide and narrow."""

import hashlib
import json
import shutil
import subprocess
import tarfile

import pytest

from tests.behaviour.browser import Page, find_chromium
from tests.behaviour.page import Server

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium here"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm to bring axe"),
]

AXE = "axe-core@4.14.1"
DIGEST = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
RUN = """axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(
  found.violations.map(each => [each.id, each.help, each.nodes[0].html])))"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rules, as their package has them."""
    home = tmp_path_factory.mktemp("axe")
    command = ["npm", "pack", "--silent", AXE]
    done = subprocess.run(command, cwd=home, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm cannot bring axe: {done.stderr.strip()}")
    package = home / done.stdout.strip()
    assert hashlib.sha256(package.read_bytes()).hexdigest() == DIGEST
    with tarfile.open(package) as found:
        script = found.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.fixture(scope="module")
def places(server: Server) -> dict[str, str]:
    """Each page of ours, with runs on it."""
    runs = []
    for _ in range(2):
        server.start(targets="near")
        runs.append(server.until("stopped")["id"])
    return {
        "start": "",
        "live": "replayer/live",
        "runs": "replayer/runs",
        "run": f"replayer/runs/{runs[0]}",
        "comparison": f"replayer/compare?run={runs[0]}&run={runs[1]}",
        "capacity": "replayer/capacities",
        "traces": "replayer/traces",
        "timeline": "replayer/timeline?trace=wordpress/front-warm",
    }


@pytest.mark.parametrize(
    "look", [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")], ids=str
)
def test_no_page_breaks_a_rule(
    server: Server, page: Page, places: dict[str, str], axe: str, look: tuple[int, str]
) -> None:
    page.look(*look)
    for name, place in places.items():
        page.open(server.url + place)
        page.until("!!document.querySelector('#rp-bar nav a[aria-current]')")
        page.run(f"{axe};0")
        assert json.loads(page.run(RUN)) == [], name


def test_a_rule_that_is_broken_is_told(server: Server, page: Page, axe: str) -> None:
    page.open(server.url)
    page.run("document.querySelector('main').append(document.createElement('button'))")
    page.run(f"{axe};0")
    assert [rule for rule, _, _ in json.loads(page.run(RUN))] == ["button-name"]
