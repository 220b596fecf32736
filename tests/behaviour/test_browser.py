"""The page in a real browser: form, start, live figures, stop, report; another page's attack."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.behaviour.browser import Page, find_chromium
from tests.behaviour.page import Server, serve
from tests.behaviour.shell import make_shell

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium here"),
]

ATTACK = """\
<!doctype html><title>waiting</title>
<form method="post" action="{url}swarm" target="answer"><input name="user_count" value="2">
<input name="spawn_rate" value="2"><input name="scenario" value="tiny"></form>
<iframe name="answer"></iframe>
<script>
(async () => {{
  const order = {{ user_count: "2", spawn_rate: "2", scenario: "tiny", targets: "near" }};
  const body = new URLSearchParams(order);
  const outcomes = [];
  for (const mode of ["cors", "no-cors"])
    try {{
      const answer = await fetch("{url}swarm", {{ method: "POST", body, mode }});
      outcomes.push(answer.type === "opaque" ? "unseen" : String(answer.status));
    }} catch {{ outcomes.push("kept out"); }}
  try {{ outcomes.push(await (await fetch("{url}")).text()); }}
  catch {{ outcomes.push("kept out"); }}
  document.forms[0].submit();
  setTimeout(() => (document.title = outcomes.join(", ")), 1000);
}})();
</script>
"""

CELLS = """[...document.querySelectorAll('main tbody tr')]
  .map(row => [...row.cells].map(cell => cell.innerText))"""
DRAWN = """[...document.querySelectorAll('#charts canvas')].filter(canvas => {
  const { width, height } = canvas;
  const pen = canvas.getContext('2d');
  return width > 0 && new Set(pen.getImageData(0, 0, width, height).data).size > 8;
}).length"""
NEWEST = "fetch('/replayer/now').then(answer => answer.json()).then(now => now.run.id)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    shell = make_shell(tmp_path_factory.mktemp("browser"))
    for name in ("near", "far"):
        shell.target(name)
    targets = ("--target", "near=near", "--target", "far=far")
    with serve(shell, "tiny.yaml", *targets, "--rounds", "1") as found:
        yield found


def fits(page: Page, width: int) -> bool:
    """Whether nothing stands out to the right: what is wide scrolls by itself."""
    return bool(page.run(f"document.documentElement.scrollWidth <= {width}"))


def a_past_run(server: Server) -> str:
    """Return the id of the last run, after having one if there is none."""
    if server.now()["run"] is None:
        server.start(targets="near")
    return str(server.until("stopped")["id"])


def test_a_person_starts_watches_stops_and_reads(server: Server, page: Page) -> None:
    page.look(1280, "light")
    page.open(server.url)
    page.until("document.querySelector('#about').textContent.includes('files')")
    users = "document.querySelector('input[name=user_count]').value"
    for scenario, count in (("kernel-untar", "1"), ("tiny", "2")):
        page.write("scenario", scenario)
        page.until(f"{users} == '{count}'")
    page.write("run_time", "10m")
    page.until("/10 min measured/.test(document.querySelector('#lines').innerText)")
    command = page.run("document.querySelector('#command').innerText")
    assert command.startswith("replayer run tiny.yaml --target=near=near --target=far=far -u 2 ")
    assert "-t 600s --rounds 1" in command
    page.press("Start")
    page.until("document.querySelector('#rp-now')?.innerText.includes('RUNNING')")
    page.until("location.pathname.endsWith('/live')")
    page.until("document.querySelectorAll('#lanes article').length == 2")
    page.until(f"{DRAWN.replace('#charts', '#lanes')} > 0")
    page.until(f"{DRAWN} == 6")
    page.until("document.querySelectorAll('#charts .keys button').length >= 8")

    page.run("document.querySelector('#charts .u-over').click()")
    page.until("/of the time in calls/.test(document.querySelector('#moment').innerText)")

    page.open(f"{server.url}locust?tab=operations")
    page.until("/whole transaction/.test(document.body.innerText)")
    cells = page.run(CELLS)
    assert {row[2] for row in cells} >= {"open", "close", "read", "whole transaction"}
    assert all(float(row[7]) > 0 for row in cells if int(row[3]) > 0)

    page.open(f"{server.url}replayer/live")
    page.press("Stop")
    page.until("/INCONCLUSIVE|PASS/.test(document.querySelector('#rp-now').innerText)")
    page.press("Report")
    page.until("/Conditions/.test(document.body.innerText)")
    click = "new Event('click', {bubbles: true})"
    page.run(f"document.querySelector('[data-explains]').dispatchEvent({click})")
    page.until("document.querySelector('dt.chosen')?.closest('details').open")
    assert "the run was interrupted" in page.text()
    assert page.complaints == []
    assert {url for url in page.asked if not url.startswith((server.url, "data:"))} <= {
        "about:blank"
    }


def test_a_second_start_from_the_page_is_a_new_run(server: Server, page: Page) -> None:
    page.look(1280, "dark")
    before = a_past_run(server)
    page.open(f"{server.url}locust")
    page.press("New")
    page.until("""!!document.querySelector('form select[name="scenario"]')""")
    for name in ("host", "profile"):
        assert not page.run(f"""document.querySelector('[name="{name}"]').offsetParent""")
    page.write("runTime", "1s")
    page.press("Start")
    page.until(f"({NEWEST}).then(id => id && id != '{before}')")
    run = server.until("stopped")
    assert run["failure"] is None
    page.open(f"{server.url}replayer/runs")
    page.run(
        "[...document.querySelectorAll('input[name=run]')].slice(0, 2).forEach(box => box.click())"
    )
    assert page.run("document.querySelector('#remove').textContent") == "Delete 2 runs"
    page.press("Compare 2 runs")
    page.until("/Ranking/.test(document.body.innerText)")
    assert page.complaints == []


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("user_count", "-3", "users must be from 1 to 1,000,000, got -3"),
        ("spawn_rate", "0", "ramp-up must be more than 0 users a second, got '0'"),
        ("run_time", "soon", "run time must be"),
        ("think", "2 days", "think time: '2 days' has the unknown unit"),
        ("rate", "-1", "arrivals must be more than 0 a second, got '-1'"),
        ("limits", "nothing.p95 < 1ms", "nothing"),
        ("mix.look", "/etc", "mix.look must be a whole number, got '/etc'"),
    ],
)
def test_what_cannot_be_started_is_told_while_it_is_written(
    server: Server, page: Page, name: str, text: str, says: str
) -> None:
    page.look(1280, "light")
    page.open(server.url)
    page.until("document.querySelector('#about').textContent.includes('files')")
    page.press("Forget these settings")
    page.until("document.querySelector('#command').innerText.length > 9")
    page.write(name, text)
    page.until(f"document.querySelector('#refused').innerText.includes({says!r})")
    page.open(server.url)
    assert page.until(f"""document.querySelector('[name="{name}"]')?.value""") == text
    page.press("Forget these settings")
    page.until("document.querySelector('#refused').hidden")


def type_into(page: Page, name: str, text: str) -> None:
    """Type into a field of the form in place of what it holds, key by key."""
    page.until(f"""!!document.querySelector('[name="{name}"]')""")
    page.run(f"""document.querySelector('[name="{name}"]').select()""")
    for key in text:
        page.call("Input.dispatchKeyEvent", type="keyDown", text=key)
        page.call("Input.dispatchKeyEvent", type="keyUp")


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("userCount", "-3", "users must be from 1 to 1,000,000, got -3"),
        ("userCount", "1e1", "users must be a whole number, got '1e1'"),
        ("spawnRate", "-2", "ramp-up must be more than 0 users a second, got '-2'"),
    ],
)
def test_a_number_that_cannot_be_is_refused_as_it_was_typed(
    server: Server, page: Page, name: str, typed: str, says: str
) -> None:
    page.look(1280, "light")
    before = a_past_run(server)
    page.open(f"{server.url}locust")
    page.press("New")
    type_into(page, name, typed)
    time.sleep(2.5)  # Locust's page draws itself anew meanwhile
    for _ in range(2):
        page.press("Start")
        page.until(f"document.body.innerText.includes({says!r})")
    assert page.run(f"""document.querySelector('[name="{name}"]').value""") == typed
    type_into(page, name, "2")
    page.write("runTime", "1s")
    page.press("Start")
    page.until(f"({NEWEST}).then(id => id && id != '{before}')")
    assert server.until("stopped")["failure"] is None


def test_above_a_past_run_stands_no_verdict_of_another_one(server: Server, page: Page) -> None:
    page.look(1280, "light")
    past = a_past_run(server)
    server.start(targets="near", run_time="10m")
    server.until("running")
    assert server.post("stop", {})[0] == 200
    last = server.until("stopped")["id"]
    bar = "['now', 'alerts'].map(part => document.querySelector(`#rp-${part}`).innerText).join('')"
    for run, stands in ((last, True), (past, False)):
        page.open(f"{server.url}replayer/runs/{run}")
        seen = "performance.getEntriesByType('resource').filter(({name}) => /now$/.test(name))"
        page.until(f"{seen}.length > 1")
        assert ("INCONCLUSIVE" in page.run(bar)) is stands
        assert ("the run was interrupted" in page.text()) is stands
    page.open(f"{server.url}replayer/compare?run={past}&run={last}")
    page.until(f"{seen}.length > 1")
    assert page.run(bar) == ""


SELDOM = """\
name: seldom
about: A few files, each looked at now and then.
users: {count: 2, think_time: 200ms}
duration: 10m
datasets:
  files: {files: 20, sizes: 1KiB}
mix: {look: 9, rare: 1}
transactions:
  look:
    - stat: {from: files, pick: uniform}
  rare:
    - stat: {from: files, pick: uniform}
"""
BLUE = """(() => {
  const canvas = document.querySelector('#charts canvas');
  const { width, height } = canvas;
  const found = canvas.getContext('2d').getImageData(0, 0, width, height).data;
  const columns = new Set();
  for (let at = 0; at < found.length; at += 4)
    if (found[at] < 20 && Math.abs(found[at + 1] - 98) < 20 && Math.abs(found[at + 2] - 163) < 20)
      columns.add((at / 4) % width);
  return columns.size;
})()"""
"""How many columns of points the line of the whole transaction passes in the first chart."""


def test_the_latency_chart_has_a_line_where_few_calls_end_in_a_second(
    tmp_path: Path, page: Page
) -> None:
    shell = make_shell(tmp_path)
    (tmp_path / "seldom.yaml").write_text(SELDOM)
    page.look(1280, "light")
    with serve(shell, "seldom.yaml", "--target", f"mount={shell.target()}") as server:
        server.start(scenario="seldom", run_time="10m")
        server.until("running")
        page.open(f"{server.url}replayer/live")
        page.until("document.querySelector('#figure').value == 'p95_ns'")
        page.until("document.querySelector('#transaction').value == 'look'")
        page.until(f"{BLUE} > 50", 60)
        page.run("document.querySelector('#figure').value = 'p99_9_ns'")
        page.run("document.querySelector('#figure').onchange()")
        page.until(f"{BLUE} == 0")
        page.leave()


def test_a_page_of_a_program_that_was_started_again_starts_runs_all_the_same(
    tmp_path: Path, page: Page
) -> None:
    shell = make_shell(tmp_path)
    mount = f"mount={shell.target()}"
    page.look(1280, "light")
    with serve(shell, "tiny.yaml", "--target", mount) as server:
        page.open(server.url)
        page.until("document.querySelector('#about').textContent.includes('files')")
        server.process.send_signal(signal.SIGINT)
        server.process.wait(30)
    page.until("/NO ANSWER/.test(document.querySelector('#rp-now').innerText)")
    page.press("Start")
    page.until("/ended or cannot be reached/.test(document.querySelector('#refused').innerText)")
    with serve(shell, "tiny.yaml", "--target", mount, port=server.port) as again:
        page.until("!/NO ANSWER/.test(document.querySelector('#rp-now').innerText)")
        page.until("document.querySelector('#about').textContent.includes('files')")
        page.write("run_time", "1s")
        page.press("Start")
        page.until("/RUNNING|PASS|INCONCLUSIVE/.test(document.querySelector('#rp-now').innerText)")
        assert again.until("stopped")["failure"] is None
        page.leave()


AGED = """\
new MutationObserver((_, observer) => {
  const found = document.querySelector("meta[name=replayer-token]");
  if (!found) return;
  found.content = "old";
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""


def test_a_start_with_an_old_token_says_that_the_page_must_be_loaded_again(
    server: Server, page: Page
) -> None:
    page.look(1280, "light")
    before = a_past_run(server)
    page.open(f"{server.url}locust")
    added = page.call("Page.addScriptToEvaluateOnNewDocument", source=AGED)
    page.open(f"{server.url}locust")
    page.press("New")
    page.press("Start")
    page.until("/reload it/.test(document.body.innerText)")
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])
    page.leave()
    assert server.now()["run"]["id"] == before


WRITTEN = """\
const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
const written = (window.written = new Map());
CanvasRenderingContext2D.prototype.clearRect = function (...all) {
  written.set(this.canvas, []);
  return clearRect.apply(this, all);
};
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
  if (this.textAlign === "center") written.get(this.canvas).push(text);
  return fillText.call(this, text, ...place);
};
"""


def test_the_seconds_of_a_short_run_are_told_apart(server: Server, page: Page) -> None:
    page.look(1280, "light")
    a_past_run(server)
    server.start(targets="near", run_time="2s")
    server.until("stopped")
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=WRITTEN)
    page.open(f"{server.url}replayer/live")
    page.until(f"{DRAWN} == 6")
    inside = "filter(([canvas]) => canvas.closest('#charts')).map(([, texts]) => texts)"
    charts = page.run(f"[...written].{inside}")
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])
    assert len(charts) == 6
    for labels in charts:
        assert len(labels) > 1
        assert len({*labels}) == len(labels), labels
        assert all(label.endswith(" s") for label in labels)


LAST_SECOND = """(() => {
  const over = document.querySelector('#charts .u-over');
  const { right, top, height } = over.getBoundingClientRect();
  const place = { clientX: right - 2, clientY: top + height / 2, bubbles: true };
  over.dispatchEvent(new MouseEvent('click', place));
})()"""
"""A click at the right end of the first chart."""
MOMENT = "document.querySelector('#moment dt')?.innerText"


def test_a_chart_is_read_and_zoomed_with_keys(server: Server, page: Page) -> None:
    page.look(1280, "light")
    a_past_run(server)
    server.start(targets="near", run_time="6s")
    server.until("stopped")
    page.open(f"{server.url}replayer/live")
    page.until(f"{DRAWN} == 6")
    page.run("document.querySelector('#charts .plot').focus()")

    def press(key: str) -> None:
        page.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        page.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    told = "document.querySelector('.tip:not([hidden])')?.innerText"
    press("Home")
    first = page.until(told)
    press("ArrowRight")
    page.until(f"{told} != {json.dumps(first)}")
    page.run(LAST_SECOND)
    last = page.until(MOMENT)
    for _ in range(3):
        press("+")
    page.run(LAST_SECOND)
    page.until(f"{MOMENT} != {json.dumps(last)}")
    press("Escape")
    page.run(LAST_SECOND)
    page.until(f"{MOMENT} == {json.dumps(last)}")
    press("Home")
    press("Enter")
    page.until(f"{MOMENT} != {json.dumps(last)}")
    assert page.complaints == []


def test_a_trace_is_replayed_by_a_press_of_its_button(server: Server, page: Page) -> None:
    page.look(1280, "light")
    page.open(f"{server.url}replayer/traces")
    before = a_past_run(server)
    page.until("document.readyState == 'complete' && !!document.querySelector('#rp-bar')")
    page.write("user_count", "none")
    press = """document.querySelector('button[value="wordpress/login"]').click()"""
    page.run(press)
    page.until("document.querySelector('#refused').innerText.includes('users must be')")
    page.write("user_count", "2")
    page.run(press)
    page.until("location.pathname.endsWith('/live')")
    page.until(f"({NEWEST}).then(id => id && id != '{before}')")
    run = server.until("stopped")
    assert run["failure"] is None
    assert page.complaints == []


def test_a_run_is_kept_under_a_name_until_that_is_forgotten(server: Server, page: Page) -> None:
    page.look(1280, "light")
    run = a_past_run(server)
    page.open(f"{server.url}replayer/runs")
    keep = "document.querySelector('#keep')"
    page.until(f"!!{keep}?.onclick")
    page.run("document.querySelector('#name').value = 'before'")
    assert page.run(f"{keep}.disabled")
    page.run(f"document.querySelector('input[value=\"{run}\"]').click()")
    page.press("Keep")
    page.until("!!document.querySelector('.tag')")
    assert (
        page.run("document.querySelector('.tag').closest('tr').querySelector('input').value") == run
    )
    page.open(server.url)
    page.until("document.querySelector('#command').innerText.length > 9")
    page.write("baseline", "before")
    page.until("document.querySelector('#command').innerText.includes('--baseline')")
    page.press("Forget these settings")
    page.open(f"{server.url}replayer/runs")
    page.until(f"!!{keep}?.onclick")
    page.run("document.querySelector('.tag button').click()")
    page.until("!!document.querySelector('#keep')?.onclick && !document.querySelector('.tag')")
    assert page.complaints == []


KEYS = (("+", "+"), ("+", "+"), ("ArrowRight", ""), ("-", "-"), ("0", "0"))
"""Keys of a timeline, and what they write."""


def test_a_replay_is_looked_at_from_the_whole_to_one_call(server: Server, page: Page) -> None:
    page.look(1280, "light")
    before = a_past_run(server)
    page.open(f"{server.url}replayer/traces")
    page.until("document.readyState == 'complete' && !!document.querySelector('#rp-bar')")
    page.run("document.querySelector('[name=order]').click()")
    page.run("""document.querySelector('button[value="wordpress/login"]').click()""")
    page.until(f"({NEWEST}).then(id => id && id != '{before}')")
    run = server.until("stopped")
    assert run["failure"] is None
    page.open(f"{server.url}replayer/runs/{run['id']}")
    page.press("Timeline of its calls")
    span = "document.querySelector('#window')?.innerText"
    page.until(f"{span}?.startsWith('0.0 ms to ')")
    whole = page.run(span)
    page.run("document.querySelector('#lanes').focus()")
    for key, text in KEYS:
        seen = page.run(span)
        page.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        page.until(f"{span} != {seen!r}")
    assert page.run(span) == whole

    page.write("words", "wp-config")
    page.press("Search")
    page.until("document.querySelectorAll('#calls tbody tr').length > 1")
    rows = page.run("[...document.querySelectorAll('#calls tbody tr')].map(row => row.innerText)")
    assert all("wp-config" in row for row in rows)
    page.press("Show")
    page.until(f"{span} != {whole!r}")
    time.sleep(0.5)  # what the window looks like from near is asked for
    middle = "(box => [box.x + 64 + (box.width - 64) / 2, box.y + 13])"
    place = page.run(f"{middle}(document.querySelector('#lanes').getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        x, y = place
        page.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, x=x, y=y)
    page.until("document.querySelectorAll('#calls tbody tr').length == 1")
    cells = "[...document.querySelectorAll('#calls tbody td')]"
    _, path, _, _, *times, _ = page.run(f"{cells}.map(cell => cell.innerText)")
    assert "wp-config" in path
    assert len(times) == 4
    assert all(each.endswith("s") for each in times)  # units of time
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_wide_and_narrow_light_and_dark(
    server: Server, page: Page, tmp_path: Path, width: int, scheme: str
) -> None:
    page.look(width, scheme)
    for name, place in {
        "start": "",
        "live": "replayer/live",
        "locust": "locust",
        "operations": "locust?tab=operations",
        "runs": "replayer/runs",
        "traces": "replayer/traces",
        "timeline": "replayer/timeline?trace=wordpress/front-warm",
    }.items():
        page.open(server.url + place)
        page.until("!!document.querySelector('#rp-bar nav a[aria-current]')")
        assert fits(page, width), name
        if name == "start":
            below = "document.querySelector('.outlook').offsetTop > 400"
            assert page.run(below) is (width < 600)
        ground = page.run("getComputedStyle(document.querySelector('#rp-bar')).backgroundColor")
        red = int(ground.split("(")[1].split(",")[0])
        assert (red > 128) is (scheme == "light"), name
        page.picture(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
    assert page.complaints == []


def test_a_page_of_another_origin_starts_and_reads_nothing(
    server: Server, page: Page, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text(ATTACK.format(url=server.url))
    before = server.now()
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        page.open(f"http://localhost:{evil.server_port}/")
        title = page.until("document.title != 'waiting' && document.title")
        evil.shutdown()
    page.leave()
    assert title == "kept out, kept out, kept out"
    assert (server.now()["state"], server.now()["run"]) == (before["state"], before["run"])


def test_a_search_for_capacities_is_watched_while_it_goes_on(server: Server, page: Page) -> None:
    page.look(1280, "light")
    page.open(f"{server.url}replayer/capacities")
    page.until("document.querySelector('#transactions').textContent.includes('look')")
    assert page.run("document.querySelector('textarea').value") == "look.p95 < 200ms"
    page.press("Search")
    page.until("document.querySelectorAll('#found svg').length == 2", 120)
    assert "MEASURING" in page.run("document.querySelector('#rp-now').innerText")
    assert "at least" in page.run("document.querySelector('#found').innerText")
    page.press("Stop")
    page.until("document.querySelector('#title').textContent.endsWith('ended')", 60)
    page.look(390, "dark")
    assert fits(page, 390)
    page.press("Page with the curves")
    page.until("document.querySelectorAll('svg').length >= 2")
    assert page.complaints == []
