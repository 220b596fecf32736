"""Locust's application with our page on it: what it shows, and what it refuses."""

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import gevent
import pytest
from werkzeug.http import parse_options_header

from replayer.errors import ReplayerError
from replayer.measure.history import forget_name, keep_run, kept_runs
from replayer.run.options import Settings
from replayer.run.targets import parse_targets
from replayer.web.guard import TOKEN_HEADER
from replayer.web.start import TargetCards
from tests.unit.runs import RunWriter, make_run
from tests.unit.web.conftest import ORDER, TINY, Served

INDEX_ARGUMENTS = re.compile(r"window\.templateArgs = (.*)")


def test_the_form_offers_scenarios_targets_caches_and_pace(served: Served) -> None:
    page = served.ask("/locust").get_data(as_text=True)
    found = INDEX_ARGUMENTS.search(page)
    assert found is not None
    shown = found[1]
    fields = shown[shown.index('"extra_options"') :]
    order = [fields.index(f'"{name}": {{') for name in ("scenario", "targets", "cache", "pace")]
    assert order == sorted(order)
    assert '"tiny"' in fields
    assert '"wordpress-pages"' in fields
    assert "html_file" not in fields
    assert "remount_command" not in fields


def test_the_first_page_offers_scenarios_and_targets_and_no_path(served: Served) -> None:
    page = served.ask("/").get_data(as_text=True)
    assert "<option>tiny</option>" in page
    assert 'name="targets" value="near" checked' in page
    assert 'value="/' not in page


@pytest.mark.parametrize("name", ["palette.css", "report.css", "report.js", "bar.css", "start.js"])
def test_every_page_has_its_look(served: Served, name: str) -> None:
    answer = served.ask(f"/replayer/assets/{name}")
    assert answer.status_code == 200
    answer.close()


def test_an_order_says_what_it_would_do_and_the_command_that_does_it(served: Served) -> None:
    order = {**ORDER, "think": "5ms", "limits": "look.p95 < 200ms\nerrors == 0"}
    found = served.send("/replayer/check", order).get_json()
    assert found["command"] == (
        "replayer run tiny.yaml --target=near=near --target=far=far -u 2 -r 2 -t 5s --rounds 3 "
        "--cache as-is "
        "--set=arrivals=null --set=users.every=null --set=users.think_time=5000000ns "
        "'--threshold=look.p95 < 200ms' '--threshold=errors == 0'"
    )
    told = dict(found["lines"])
    assert told["look"].startswith("100% · 3 calls (")
    assert told["takes"].startswith("5.00 s measured on each target, about 10 s in all")


def test_an_order_of_arrivals_has_no_think_time(served: Served) -> None:
    found = served.send("/replayer/check", {**ORDER, "rate": "50"}).get_json()
    assert "--set=users.think_time=null" in found["command"]
    assert "arrivals={rate: 50/s, process: poisson}" in found["command"]
    found = served.send("/replayer/check", {**ORDER, "rate": "50", "think": "1s"}).get_json()
    assert (found["success"], "exclude each other" in found["message"]) == (False, True)


def test_before_a_run_there_is_no_race_and_nothing_to_explain(served: Served) -> None:
    assert served.ask("/replayer/race").get_json() == {"run": None}
    found = served.ask("/replayer/explain?target=0&begin=nan&end=1").get_json()
    assert found == {"title": "", "lines": []}


def test_another_site_may_lead_here_and_load_nothing(served: Served) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert (
        served.ask("/replayer/targets", **foreign, **{"Sec-Fetch-Mode": "no-cors"}).status_code
        == 403
    )
    assert served.ask("/", **foreign, **{"Sec-Fetch-Mode": "navigate"}).status_code == 200


@pytest.fixture
def ordering(served: Served) -> Iterator[Served]:
    """The page that all tests share; what is ordered leaves nothing on it."""
    yield served
    served.control.active = served.control.refused = None


def large_order(served: Served, folder: Path) -> Settings:
    """Return an order whose plan takes a second or more to compile."""
    large = folder / "large.yaml"
    large.write_text(TINY.replace("files: 20", "files: 100000"))
    sent = {name: [each] if isinstance(each, str) else each for name, each in ORDER.items()}
    return replace(served.control.form.read(sent), scenario=str(large))


def wait_until_compiled(served: Served) -> None:
    with gevent.Timeout(60):
        while served.control.order is not None:
            gevent.sleep(0.02)


def test_a_large_order_is_answered_at_once_and_refused_later(
    ordering: Served, tmp_path: Path
) -> None:
    order = replace(large_order(ordering, tmp_path), thresholds=("nothing.p95 < 1ms",))
    ordering.control.start(order)
    meanwhile = ordering.ask("/replayer/now").get_json()
    assert meanwhile["state"] == "spawning"
    assert meanwhile["ordered"].endswith("large.yaml")
    with pytest.raises(ReplayerError, match="only one run"):
        ordering.control.start(order)
    wait_until_compiled(ordering)
    afterwards = ordering.ask("/replayer/now").get_json()
    assert afterwards["state"] == "ready"
    assert "nothing" in afterwards["refused"]["message"]


def test_an_order_that_is_stopped_while_it_is_compiled_does_not_start(
    ordering: Served, tmp_path: Path
) -> None:
    ordering.control.start(large_order(ordering, tmp_path))
    ordering.control.stop()
    wait_until_compiled(ordering)
    active = ordering.control.active
    assert active is not None
    with gevent.Timeout(60):
        while active.outcome is None:
            gevent.sleep(0.02)
    assert active.outcome == "stopped before it started"
    assert not list(Path("near").iterdir())


def test_a_target_that_does_not_answer_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Path] = []

    def hang(path: Path) -> None:
        asked.append(path)
        time.sleep(0.5)

    monkeypatch.setattr("replayer.web.start.FACTS_S", 0.1)
    monkeypatch.setattr("replayer.web.start.collect_facts", hang)
    cards = TargetCards(is_default=False)
    (target,) = parse_targets(["near=near"])
    for _ in range(3):
        assert "did not answer" in cards.of(target)["wrong"]
    assert len(asked) == 1


def test_targets_are_told_with_their_file_system(served: Served) -> None:
    near, far = served.ask("/replayer/targets").get_json()
    assert (near["name"], far["name"]) == ("near", "far")
    assert near["mount"]
    assert near["free"].endswith(" free")
    assert re.fullmatch("data after write: [a-z ]+, close: [a-z ]+, fsync: [a-z ]+", near["data"])


def test_locusts_page_carries_our_script_and_token(served: Served) -> None:
    answer = served.ask("/locust")
    page = answer.get_data(as_text=True)
    assert f'content="{served.token}"' in page
    assert '<script src="/replayer/assets/bar.js">' in page
    assert "'sha256-" in answer.headers["Content-Security-Policy"]
    assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"].split("style-src")[0]


@pytest.mark.parametrize("path", ["/", "/stats/requests", "/replayer/now", "/replayer/runs", "/no"])
def test_no_other_origin_may_read_an_answer(served: Served, path: str) -> None:
    answer = served.ask(path, Origin="http://evil.example")
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


def test_another_page_cannot_start_a_run(served: Served) -> None:
    answer = served.send("/swarm", ORDER, Origin="http://evil.example")
    assert (answer.status_code, served.control.state) == (403, "ready")


def test_a_form_without_our_token_cannot_start_a_run(served: Served) -> None:
    answer = served.send("/swarm", ORDER, **{TOKEN_HEADER: "guess"})
    assert (answer.status_code, served.control.state) == (403, "ready")


@pytest.mark.parametrize(
    "name",
    ["html_file", "csv_prefix", "json_file", "logfile", "output", "remount_command", "changes"],
)
def test_an_option_that_the_form_does_not_show_is_refused(served: Served, name: str) -> None:
    before = vars(served.options).copy()
    answer = served.send("/swarm", {**ORDER, name: "written-by-a-stranger"})
    assert answer.status_code == 403
    assert name in answer.get_json()["message"]
    assert vars(served.options) == before
    assert served.control.state == "ready"


def test_attributes_of_users_cannot_be_set(served: Served) -> None:
    answer = served.client.post(
        "/user",
        json={"user_class_name": "ScenarioUser", "host": "elsewhere"},
        headers={"Host": "127.0.0.1:8089", "X-Replayer-Token": served.token},
    )
    assert answer.status_code == 403


@pytest.mark.parametrize("target", ["/etc", "near=/etc", "elsewhere", "../near", ""])
def test_a_target_that_was_not_named_at_the_start_is_refused(served: Served, target: str) -> None:
    answer = served.send("/swarm", {**ORDER, "targets": ["near", target]})
    assert (answer.status_code, served.control.state) == (403, "ready")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scenario", "/etc/passwd"),
        ("scenario", "tiny.yaml"),
        ("cache", "dropped"),
        ("pace", "users.count=1000000"),
        ("host", "http://elsewhere"),
        ("profile", "other"),
        ("user_classes", "ScenarioUser"),
        ("spawn_rate", ["1", "2"]),
    ],
)
def test_a_value_that_the_form_does_not_offer_is_refused(
    served: Served, name: str, value: str
) -> None:
    answer = served.send("/swarm", {**ORDER, name: value})
    assert (answer.status_code, served.control.state) == (403, "ready")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("user_count", "0", "users"),
        ("user_count", "2.5", "users"),
        ("user_count", "1000001", "from 1 to 1,000,000"),
        ("spawn_rate", "nan", "ramp-up"),
        ("spawn_rate", "inf", "ramp-up"),
        ("run_time", "soon", "run time"),
        ("run_time", "0", "run time"),
        ("run_time", "99999999h", "must be at most a year (8760h), got '99999999h'"),
        ("targets", [], "must name at least one"),
    ],
)
def test_a_mistake_is_explained_in_the_form(
    served: Served, name: str, value: object, says: str
) -> None:
    answer = served.send("/swarm", {**ORDER, name: value})
    assert answer.status_code == 200
    assert answer.get_json()["success"] is False
    assert says in answer.get_json()["message"]
    assert served.control.state == "ready"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trace", "/etc"),
        ("trace", "../traces/wordpress/front-warm"),
        ("pace", "open"),
        ("cache", "as the scenario says"),
        ("targets", "/etc"),
        ("scenario", "tiny"),
        ("event_log", "written-by-a-stranger"),
        ("order", "written-by-a-stranger"),
    ],
)
def test_a_replay_of_anything_else_is_refused(served: Served, name: str, value: str) -> None:
    order = {"trace": "wordpress/front-warm", "user_count": "1", "targets": "near"}
    answer = served.send("/replayer/replay", {**order, name: value})
    assert (answer.status_code, served.control.state) == (403, "ready")


def test_locusts_reset_works_from_our_page(served: Served) -> None:
    assert served.send("/stats/reset").status_code == 200


def test_past_runs_are_found_by_listing_alone(served: Served) -> None:
    Path("run.json").write_text("{}")
    for name in ("..", "%2e%2e", "..%2f..", ".", "none"):
        answer = served.ask(f"/replayer/runs/{name}", Accept="text/html")
        assert answer.status_code in {308, 400, 404}, name


def test_runs_are_removed_if_all_of_them_can_be(served: Served, tmp_path: Path) -> None:
    runs = served.control.form.runs
    for name in ("one", "two", "kept"):
        writer = RunWriter(runs / name)
        writer.transaction("page", [1000] * 20)
        writer.write(make_run(id=name))
    keep_run("release", runs / "kept", runs)
    (tmp_path / "run.json").write_text("{}")
    (runs / "link").symlink_to(tmp_path)
    for names, says in (
        (["one", "elsewhere"], "no such run"),
        (["one", "../two"], "no such run"),
        (["one", "kept"], "kept as release"),
        (["one", "link"], "no such run"),
    ):
        answer = served.send("/replayer/remove", {"run": names}).get_json()
        assert (answer["success"], says in answer["message"]) == (False, True), answer
    assert (runs / "one").is_dir()
    assert served.send("/replayer/remove", {"run": ["one", "two"]}).get_json()["success"]
    left = {path.name for path in runs.iterdir()}
    assert left >= {"kept", "link"}
    assert not left & {"one", "two"}
    assert (tmp_path / "run.json").exists()


@pytest.fixture
def kept(served: Served) -> Iterator[str]:
    """The name of a run that has ended; it is kept under none."""
    writer = RunWriter(served.control.form.runs / "ended")
    writer.transaction("page", [1000] * 20)
    writer.write(make_run(id="ended"))
    yield "ended"
    for name in list(kept_runs(served.control.form.runs)):
        forget_name(name, served.control.form.runs)
    shutil.rmtree(writer.path)


def test_a_run_is_kept_under_a_name_that_others_are_held_against(served: Served, kept: str) -> None:
    assert served.send("/replayer/keep", {"name": "before", "run": kept}).get_json()["success"]
    assert "forget the name before" in served.ask("/replayer/runs").get_data(as_text=True)
    assert "<option>before</option>" in served.ask("/").get_data(as_text=True)
    found = served.send("/replayer/check", {**ORDER, "baseline": "before"}).get_json()
    folder = (served.control.form.runs / kept).absolute()
    assert f"--baseline {folder} --tolerance 10%" in found["command"]
    refused = served.send("/swarm", {**ORDER, "baseline": "before"}).get_json()
    assert (refused["success"], "ended" in refused["message"]) == (False, True)  # other work
    assert served.send("/replayer/forget", {"name": "before"}).get_json()["success"]
    assert "forget the name before" not in served.ask("/replayer/runs").get_data(as_text=True)
    assert (folder / "run.json").exists()


@pytest.mark.parametrize(
    ("place", "sent", "told"),
    [
        ("keep", {"name": "../x", "run": "ended"}, "cannot name a run"),
        ("keep", {"name": "x", "run": "../ended"}, "no such run"),
        ("keep", {"name": "x"}, "no such run"),
        ("forget", {"name": "none"}, "no run is kept under that name"),
        ("forget", {}, "no run is kept under that name"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_a_name_that_cannot_be_is_refused(
    served: Served, place: str, sent: dict[str, str], told: str
) -> None:
    answer = served.send(f"/replayer/{place}", sent).get_json()
    assert (answer["success"], told in answer["message"]) == (False, True), answer
    assert kept_runs(served.control.form.runs) == {}


def test_every_trace_is_shown_with_its_blind_spots(served: Served) -> None:
    page = served.ask("/replayer/traces").get_data(as_text=True)
    assert "wordpress/front-warm" in page
    assert page.count("<dt>blind spots</dt>") == page.count("<article") > 10


def test_what_is_no_page_is_not_served(served: Served) -> None:
    assert served.ask("/replayer/assets/../pages.py").status_code == 404
    assert served.ask("/replayer/series?target=x&after=-5&op=%00").get_json() == {"run": None}


@pytest.mark.parametrize("name", ["target", "after"])
def test_a_number_of_thousands_of_digits_is_as_if_not_sent(served: Served, name: str) -> None:
    answer = served.ask(f"/replayer/series?{name}={'9' * 5000}")
    assert (answer.status_code, answer.get_json()) == (200, {"run": None})


@pytest.mark.parametrize(
    ("name", "value"),
    [("user_count", "9" * 5000), ("run_time", "9" * 5000), ("run_time", "9" * 18 + "h")],
)
def test_an_order_of_numbers_that_nobody_can_mean_is_answered(
    served: Served, name: str, value: str
) -> None:
    answer = served.send("/swarm", {**ORDER, name: value})
    assert (answer.status_code, answer.get_json()["success"]) == (200, False)
    assert served.control.state == "ready"


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("日本 #1?", "filename*=UTF-8''replayer-%E6%97%A5%E6%9C%AC%20#1%3F.csv"),
        ("two\nlines", "filename=replayer-two_lines.csv"),
        ('a"b', 'filename="replayer-a\\"b.csv"'),
        ("plain", "filename=replayer-plain.csv"),
    ],
)
def test_reports_of_runs_with_any_name_can_be_saved(served: Served, name: str, saved: str) -> None:
    writer = RunWriter(served.control.form.runs / name)
    writer.transaction("page", [1000] * 20)
    writer.write(make_run())
    answer = served.ask(f"/replayer/runs/{quote(name)}/report.csv")
    assert answer.status_code == 200
    assert saved in answer.headers["Content-Disposition"]
    assert answer.content_type == "text/csv; charset=utf-8"
    assert "page" in answer.get_data(as_text=True)


@pytest.mark.parametrize("host", ["日本", "near, far", "a;b"])
@pytest.mark.parametrize("path", ["stats/requests/csv", "stats/report?download=1"])
def test_locusts_downloads_can_be_saved_whatever_targets_are_called(
    served: Served, monkeypatch: pytest.MonkeyPatch, host: str, path: str
) -> None:
    environment = served.environment
    monkeypatch.setattr(environment, "host", host)
    answer = served.ask(f"/{path}")
    assert answer.status_code == 200
    header = answer.headers["Content-Disposition"]
    assert header.isascii(), "or no server sends it"
    _, options = parse_options_header(header)
    assert host in options["filename"]


def test_why_a_figure_has_no_ratio_to_the_best_is_on_the_page(served: Served) -> None:
    for name, waited_ns in (("quick", 0), ("slow", 27 * 10**9)):
        writer = RunWriter(served.control.form.runs / name)
        writer.transaction("look", [10**6 + waited_ns] * 40)
        writer.record("0/0/measured/look/until/ok/expected", [waited_ns] * 40)
        writer.write(make_run(id=name))
    page = served.ask("/replayer/compare?run=quick&run=slow").get_data(as_text=True)
    assert "no ratio to 0" in page
