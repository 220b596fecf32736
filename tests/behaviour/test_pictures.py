"""Pictures of the pages, held against those of before: wide and narrow, light and dark.

A point of a picture is the mean of 8 by 8 points of the screen, which a font of another version
hardly changes, and a thing that moves or is missing does. ``just bless tests/behaviour/
test_pictures.py -m nightly -n0`` writes them anew: look at them before you commit them.
"""

import base64
import json
import os
from itertools import product
from pathlib import Path

import pytest

from tests.behaviour.browser import Page, find_chromium
from tests.behaviour.page import Server

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_chromium() is None, reason="needs Chromium"),
]

GOLDEN = Path(__file__).parents[1] / "golden" / "pages"
HEIGHT, SCALE = 900, 1 / 8
FILLED = """['#command', '#about', '[data-target]'].every(each =>
  [...document.querySelectorAll(each)].every(({ textContent }) => textContent))"""
PLACES = {
    "start": ("", FILLED),
    "live": ("replayer/live", "!document.querySelector('#empty').hidden"),
    "runs": ("replayer/runs", "!!document.querySelector('.empty')"),
    "capacity": (
        "replayer/capacities",
        "document.querySelector('#transactions').textContent.includes('look')",
    ),
    "traces": ("replayer/traces", "document.querySelectorAll('article').length > 3"),
    "timeline": (
        "replayer/timeline?trace=wordpress/front-warm",
        "document.querySelector('#window').innerText.startsWith('0.0')",
    ),
}
"""Where each page is, and when it is complete."""
OF_MACHINE = "[data-target], p code"
"""What tells of folders and disks."""
MOST_CHANGED = 0.02
"""Chosen: two takes differ in up to 0.2 % of the points. The part of the start page that says what
a run would do is 5.4 % of them."""
VISIBLE = 0.03
"""Of the whole range from black to white: chosen, so that letters, which are 8 by 8 points of the
screen here, are seen."""
DIFFERENCE = """(async (sources, visible) => {
  const points = async (source) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const pen = canvas.getContext('2d');
    pen.drawImage(image, 0, 0);
    const { data } = pen.getImageData(0, 0, image.width, image.height);
    const light = (at) => (0.2126 * data[at] + 0.7152 * data[at + 1] + 0.0722 * data[at + 2]) / 255;
    return Array.from({ length: image.width * image.height }, (_, point) => light(4 * point));
  };
  const [one, other] = await Promise.all(sources.map(points));
  if (one.length !== other.length) return 1;
  return one.filter((value, at) => Math.abs(value - other[at]) > visible).length / one.length;
})"""


def take(page: Page, width: int) -> bytes:
    """Return a small picture of what is seen first."""
    clip = {"x": 0, "y": 0, "width": width, "height": HEIGHT, "scale": SCALE}
    return base64.b64decode(page.call("Page.captureScreenshot", clip=clip)["data"])


def difference(page: Page, *pictures: bytes) -> float:
    """Return which part of the points of two pictures are visibly different."""
    sources = [f"data:image/png;base64,{base64.b64encode(each).decode()}" for each in pictures]
    page.open("about:blank?")  # our own pages let no script load such a picture
    return float(page.run(f"{DIFFERENCE}({json.dumps(sources)}, {VISIBLE})"))


def visit(page: Page, server: Server, name: str) -> None:
    """Go to a page, and have it say nothing of this machine's folders and disks."""
    place, is_complete = PLACES[name]
    page.open(server.url + place)
    page.until("!!document.querySelector('#rp-bar nav a[aria-current]')")
    page.until(is_complete)
    page.run(f"document.querySelectorAll('{OF_MACHINE}').forEach(each => each.replaceChildren())")


@pytest.mark.parametrize(
    "look",
    [*product([390, 1440, 2560], ["light", "dark"])],
    ids=lambda look: "-".join(map(str, look)),
)
@pytest.mark.parametrize("name", PLACES)
def test_a_page_looks_as_before(
    server: Server, page: Page, tmp_path: Path, name: str, look: tuple[int, str]
) -> None:
    width, scheme = look
    page.look(width, scheme)
    visit(page, server, name)
    taken, golden = take(page, width), GOLDEN / f"{name}-{width}-{scheme}.png"
    (tmp_path / golden.name).write_bytes(taken)
    if os.environ.get("REPLAYER_BLESS") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_bytes(taken)
    changed = difference(page, taken, golden.read_bytes())
    assert changed <= MOST_CHANGED, f"{changed:.1%} of the points, see {tmp_path / golden.name}"


@pytest.mark.parametrize(
    "change",
    [
        "document.querySelector('.outlook').remove()",
        "document.querySelector('#rp-bar').style.height = '110px'",
        "document.documentElement.style.filter = 'invert(1)'",
    ],
)
def test_what_is_missing_has_moved_or_has_another_colour_is_told(
    server: Server, page: Page, change: str
) -> None:
    page.look(1440, "light")
    visit(page, server, "start")
    before = take(page, 1440)
    page.run(f"{change};0")
    assert difference(page, take(page, 1440), before) > MOST_CHANGED
