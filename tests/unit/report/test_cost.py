"""Costs from made-up prices, worked out by hand beside."""

import json
import re
from pathlib import Path

import pytest

from replayer.cli import main
from replayer.errors import ReplayerError
from replayer.measure.record import load_run
from replayer.measure.replay import ReplayFacts
from replayer.measure.summarise import summarise
from replayer.report.cost import Costs, load_prices, render_costs, work_out
from tests.unit.runs import RunWriter, make_run, make_target

PRICES = """\
currency: EUR
stored_gb: 100
targets:
  local:
    per_month: 10
    per_gb_month: 0.5
    per_gb_read: 2
    per_gb_written: 4
    per_million_ops: {open: 3, all: 1}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten seconds of 20 page views a second, each with an open, 1 MB read and 0.5 MB written.

    Beside each two of them a static file, of which 0.5 MB are read.
    """
    writer = RunWriter(tmp_path / "run")
    span = (0, 10)
    writer.transaction("page", [10**6] * 200, "0/0", span)
    tag = "0/0/measured/page"
    writer.record(f"{tag}/open/ok/expected", [1000] * 200, span)
    writer.record(f"{tag}/read/ok/expected", [1000] * 200, span, 200 * 10**6)
    writer.record(f"{tag}/write/ok/expected", [1000] * 200, span, 100 * 10**6)
    writer.transaction("static", [10**6] * 100, "0/0", span)
    writer.record("0/0/measured/static/read/ok/expected", [1000] * 100, span, 50 * 10**6)
    writer.record("0/0/measured/static/until/ok/expected", [1000] * 100, span)
    targets = (make_target(), make_target(1, "free"))
    return writer.write(make_run(targets=targets))


def costs_of(folder: Path, text: str) -> Costs:
    file = folder / "prices.yaml"
    file.write_text(text)
    record = load_run(folder)
    return work_out(record, summarise(record), load_prices(file))


def test_a_month_and_a_million_views_are_worked_out(folder: Path) -> None:
    (cost,) = costs_of(folder, PRICES + "views: [page]\nviews_per_month: 4000000\n").costs
    assert cost.views_per_s == 20
    assert cost.fixed_per_month == 10 + 100 * 0.5
    each = 2 * 1e-3 + 4 * 0.5e-3 + (3 + 1 + 1) / 1e6  # read, written, and three ops
    each += (2 * 0.5e-3 + 1 / 1e6) / 2  # half a static file: read, and one op
    assert cost.use_per_month == pytest.approx(each * 4e6)
    assert cost.per_month == pytest.approx(60 + each * 4e6)
    assert cost.per_million_views == pytest.approx((60 + each * 4e6) / 4)
    assert cost.sufficient


def test_provisioned_throughput_is_billed_by_what_is_moved_in_a_second(folder: Path) -> None:
    prices = "stored_gb: 0\ntargets: {local: {per_mb_s_month: 6, per_iops_month: 0.1}}\n"
    (cost,) = costs_of(folder, prices).costs
    assert cost.per_month == pytest.approx(6 * 35 + 0.1 * 50)  # 350 MB and 500 calls in 10 s


def test_large_amounts_and_long_names_keep_their_columns_apart(folder: Path) -> None:
    """Of one target that is dear, and of one with a name wider than any title."""
    record = load_run(folder)
    summary = summarise(record)
    far = summary.targets[0].model_copy(update={"name": "a-file-server-in-another-region"})
    both = summary.model_copy(update={"targets": (summary.targets[0], far)})
    file = folder / "prices.yaml"
    dear = "{per_month: 1000000000, per_gb_read: 4947825.99}"
    file.write_text(f"stored_gb: 1\ntargets: {{local: {dear}, {far.name}: {dear}}}\n")
    text = render_costs(work_out(record, both, load_prices(file)))
    titles, *lines = text.splitlines()[:3]
    columns = re.split(" {2,}", titles)
    assert columns == ["target", "views", "fixed", "use", "a month", "a million"]
    for line in lines:
        cells = re.split(" {2,}", line)
        assert len(cells) == len(columns)
        assert float(cells[2].replace(",", "")) == 1e9
        assert len(line) == len(titles)


def test_without_a_number_of_views_the_measured_rate_goes_on_all_month(folder: Path) -> None:
    (cost,) = costs_of(folder, PRICES + "views: [page]\n").costs
    assert cost.views_per_month == pytest.approx(20 * 730 * 3600)


def test_all_transactions_are_views_unless_some_are_named(folder: Path) -> None:
    costs = costs_of(folder, PRICES)
    assert costs.costs[0].views_per_s == 30
    assert any("every transaction counts as a page view" in note for note in costs.notes)
    named = costs_of(folder, PRICES + "views: [page]\n")
    assert not any("every transaction" in note for note in named.notes)


def test_the_bill_of_a_run_is_the_same_whatever_counts_as_a_view(folder: Path) -> None:
    bills = [
        costs_of(folder, f"{PRICES}{views}").costs[0].use_per_month
        for views in ("", "views: [page]\n", "views: [static]\n")
    ]
    assert bills == pytest.approx([bills[0]] * 3)


@pytest.mark.parametrize(
    ("replay", "per_gb"), [(None, 2), (ReplayFacts(traces=(), transactions=()), 2 + 4)]
)
def test_what_a_replay_sends_may_be_written_as_well(
    tmp_path: Path, replay: ReplayFacts | None, per_gb: float
) -> None:
    """A scenario sends files to a socket; a trace may send them into a file."""
    writer = RunWriter(tmp_path / "run")
    writer.transaction("page", [10**6] * 100, "0/0", (0, 10))
    writer.record("0/0/measured/page/sendfile/ok/expected", [1000] * 100, (0, 10), 10**9)
    folder = writer.write(make_run(targets=(make_target(),), replay=replay))
    (cost,) = costs_of(folder, PRICES + "views_per_month: 100\n").costs
    assert cost.use_per_month == pytest.approx(per_gb + 100 * 1e-6)


def test_a_rate_that_does_not_serve_the_views_is_said_so(folder: Path) -> None:
    costs = costs_of(folder, PRICES + "views_per_month: 1000000000\n")
    assert not costs.costs[0].sufficient
    assert "too slow for that many views" in render_costs(costs)


def test_targets_without_prices_are_named(folder: Path) -> None:
    assert "no prices are given for free" in costs_of(folder, PRICES).notes


def test_what_a_run_is_worth_is_said_of_its_costs(tmp_path: Path, folder: Path) -> None:
    assert not any("run is inconclusive" in note for note in costs_of(folder, PRICES).notes)
    writer = RunWriter(tmp_path / "short")
    writer.transaction("page", [10**5] * 5, "0/0", (0, 0.001))
    short = writer.write(make_run(status="interrupted", targets=(make_target(),)))
    notes = costs_of(short, PRICES + "views: [page]\n").notes
    assert "the run is inconclusive: the run was interrupted" in notes
    assert (
        "5 page views in 1.00 ms on local: too few to go by for a month (measure for longer)"
        in notes
    )


BOTH = PRICES + "  free: {per_month: 1}\n"


def test_a_target_on_which_nothing_was_measured_takes_nothing_from_the_others(
    folder: Path,
) -> None:
    costs = costs_of(folder, BOTH + "views: [page]\n")
    assert [cost.target for cost in costs.costs] == ["local"]
    assert "nothing was measured on free" in costs.notes


def test_page_views_are_looked_up_in_the_plan(folder: Path) -> None:
    (folder / "plan.json").write_text(json.dumps({"transactions": [{"name": "rare"}]}))
    with pytest.raises(ReplayerError, match="no page view succeeded on local, free"):
        costs_of(folder, BOTH + "views: [rare]\n")
    with pytest.raises(ReplayerError, match="'pgae' is no transaction") as refusal:
        costs_of(folder, BOTH + "views: [pgae]\n")
    assert refusal.value.hint == "there are rare, page, static"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PRICES.replace("stored_gb: 100", "stored_gb: -1"), "stored_gb must be at least"),
        (PRICES.replace("per_month", "per_monht", 1), "unknown key per_monht"),
        (PRICES.replace("local:", "elsewhere:"), "no prices for the targets of this run"),
        (PRICES + "views: [pgae]\n", "views: 'pgae' is no transaction"),
        (PRICES.replace("{open", "{opne"), r"prices\.yaml:9: unknown op opne in targets\.local"),
        ("[]", "must be a mapping"),
    ],
)
def test_mistakes_in_prices_are_refused(folder: Path, text: str, says: str) -> None:
    with pytest.raises(ReplayerError, match=says):
        costs_of(folder, text)


def test_the_command_prints_a_table_and_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(PRICES)
    assert main(["cost", str(folder), "--prices", str(file)]) == 0
    assert "in EUR" in capsys.readouterr().out
    assert main(["cost", str(folder), "--prices", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "replayer-cost-1"


def test_the_hint_names_the_nearest_op(folder: Path) -> None:
    with pytest.raises(ReplayerError) as refusal:
        costs_of(folder, PRICES.replace("{open", "{opne"))
    assert refusal.value.hint == "did you mean open?"
