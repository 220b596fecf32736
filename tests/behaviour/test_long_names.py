"""Long names of targets on the HTML report, in a real browser."""

from pathlib import Path

import pytest

from replayer.measure.record import load_run
from replayer.report.html import render_html
from tests.behaviour.browser import find_chromium, open_page
from tests.unit.report.contenders import write_run
from tests.unit.runs import make_target

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium here"),
]

LONG = "an-export-of-a-file-server-whose-name-has-no-space-" * 3
OUTSIDE = """[...document.querySelectorAll('body *')]
  .filter(each => !each.closest('.scroll, pre, svg, #tip'))
  .filter(each => each.getBoundingClientRect().right > window.innerWidth + 1)
  .map(each => `${each.tagName}.${each.className}`)"""
CUT = """[...document.querySelectorAll('.row > span, .legend li, dt, dd')]
  .filter(each => each.scrollWidth > each.clientWidth + 1 && each.clientWidth)
  .map(each => `${each.tagName}.${each.className}`)"""


def test_a_long_name_without_spaces_stays_within_the_page(tmp_path: Path) -> None:
    names = ("disk", LONG, "x" * 150)
    targets = tuple(make_target(index, name) for index, name in enumerate(names))
    folder = write_run(tmp_path / "run", [1e6, 3e6, 5e6], targets=targets)
    page = tmp_path / "page.html"
    page.write_text(render_html([load_run(folder)]))
    with open_page(tmp_path) as shown:
        for width in (420, 1280):
            shown.look(width, "light")
            shown.open(page.as_uri())
            shown.picture(tmp_path / f"{width}.png")
            assert shown.run(OUTSIDE) == []
            assert shown.run(CUT) == []
            assert shown.run("document.documentElement.scrollWidth") <= width
