"""From how many clients each figure came, in every form of the report."""

import json
from pathlib import Path

import pytest

from replayer.measure.clients import Client, ClientLoss, ClientShare
from replayer.measure.record import RunRecord, load_run
from replayer.report.composition import compose
from replayer.report.html import render_html
from replayer.report.json_form import render_json
from replayer.report.markdown import render_markdown
from replayer.report.table import render_table
from tests.unit.runs import RunWriter, make_health, make_machine, make_run

LOSS = ClientLoss(at_s=4.0, why="sent nothing for 10 s", back_s=None)


def client(number: int, shares: dict[str, int], *losses: ClientLoss) -> Client:
    return Client(
        number=number,
        machine=make_machine(),
        pid=100 + number,
        users=2,
        paths=(("/srv/data",),),
        status="lost" if losses and losses[-1].back_s is None else "finished",
        losses=losses,
        clock_within_ns=1000,
        shares=tuple(
            ClientShare(target=0, transaction=name, count=count) for name, count in shares.items()
        ),
        health=make_health(),
        folder=f"parts/{number}",
    )


def moved(found: Client, **machine: object) -> Client:
    """The same on another machine, or on other CPUs."""
    return found.model_copy(update={"machine": found.machine.model_copy(update=machine)})


def recorded(folder: Path, *clients: Client) -> RunRecord:
    writer = RunWriter(folder / "run")
    for name in ("look", "save"):
        writer.transaction(name, [1_000_000 + 1000 * step for step in range(100)])
    return load_run(writer.write(make_run(clients=clients)))


def test_a_name_with_a_bar_is_one_cell_of_the_titles(tmp_path: Path) -> None:
    shares = {"GET a|b": 50}
    writer = RunWriter(tmp_path / "run")
    writer.transaction("GET a|b", [1_000_000] * 100)
    run = make_run(clients=(client(0, shares), client(1, shares)))
    text = render_markdown(compose(load_run(writer.write(run))))
    assert "| client | machine | users | GET a\\|b | to the end |" in text


@pytest.fixture
def whole(tmp_path: Path) -> RunRecord:
    both = {"look": 50, "save": 50}
    return recorded(tmp_path, client(0, both), client(1, both))


@pytest.fixture
def torn(tmp_path: Path) -> RunRecord:
    back = LOSS.model_copy(update={"back_s": 6.0})
    return recorded(
        tmp_path, client(0, {"look": 60, "save": 100}), client(1, {"look": 40}, back, LOSS)
    )


def forms(record: RunRecord) -> dict[str, str]:
    document = compose(record)
    return {
        "table": " ".join(render_table(document).split()),
        "markdown": render_markdown(document).replace("\\", ""),
        "html": render_html([record]),
    }


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_form_says_that_all_figures_come_from_all_clients(
    whole: RunRecord, form: str
) -> None:
    assert "every figure comes from 2 of 2 clients" in forms(whole)[form]


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_the_cpus_of_all_clients_are_told_and_where_each_has_others(
    tmp_path: Path, form: str
) -> None:
    both = {"look": 50, "save": 50}
    one = moved(client(0, both), cpus=1, cpu_list="0")
    other = moved(client(1, both), cpus=1, cpu_list="1")
    text = forms(recorded(tmp_path, one, other))[form]
    assert "Linux 6.18.0 x86_64, 2 CPUs, 24.0 GB memory, replayer" in text
    assert "process 100, 1 CPU (0), 2 users on /srv/data" in text
    assert "process 101, 1 CPU (1), 2 users on /srv/data" in text


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_clients_on_several_machines_are_told_as_several(tmp_path: Path, form: str) -> None:
    both = {"look": 50, "save": 50}
    alike = [moved(client(number, both), host=f"{number:012}") for number in range(2)]
    third = moved(client(2, both), host="2" * 12, cpus=16, cpu_list="0-15", memory_bytes=64 * 10**9)
    text = forms(recorded(tmp_path, *alike, third))[form]
    assert "3 machines: Linux 6.18.0 x86_64, 20 CPUs in all, 24.0 GB or 64.0 GB memory each" in text
    assert "16 CPUs (0-15), 2 users" in text


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_clients_that_are_alike_are_not_told_apart_by_their_cpus(
    whole: RunRecord, form: str
) -> None:
    assert "CPUs (0-1)" not in forms(whole)[form]


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_form_says_which_figure_comes_from_fewer(torn: RunRecord, form: str) -> None:
    text = forms(torn)[form]
    assert "of 2 clients the figures come from: look from 2; save from 1" in text
    assert "worker 1 was lost at 4.0 s (sent nothing for 10 s)" in text
    assert "back at 6.0 s" in text


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
@pytest.mark.parametrize("back_s", [None, 6.0])
def test_no_form_says_every_figure_where_a_client_was_not_there_all_the_time(
    tmp_path: Path, form: str, back_s: float | None
) -> None:
    both = {"look": 50, "save": 50}
    loss = LOSS.model_copy(update={"back_s": back_s})
    text = forms(recorded(tmp_path, client(0, both), client(1, both, loss)))[form]
    assert "every figure" not in text
    assert "figures come from 2 of 2 clients, not from all of them all the time" in text


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
@pytest.mark.parametrize(
    ("back_s", "said"),
    [
        (None, "10 s): its last figures may be missing"),
        (6.0, "back at 6.0 s: nothing was measured meanwhile"),
    ],
)
def test_no_figure_comes_from_fewer_after_the_last_was_measured(
    tmp_path: Path, form: str, back_s: float | None, said: str
) -> None:
    late = LOSS.model_copy(update={"measuring": False, "back_s": back_s})
    both = {"look": 50, "save": 50}
    text = forms(recorded(tmp_path, client(0, both), client(1, both, late)))[form]
    assert said in text
    assert "or fewer" not in text


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_form_says_how_many_began_where_no_end_was_written(tmp_path: Path, form: str) -> None:
    working = [client(number, {}).model_copy(update={"status": "working"}) for number in range(3)]
    text = forms(recorded(tmp_path, *working))[form]
    assert "3 clients began; how much came from each is written at the end" in text


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_a_run_of_one_process_says_nothing_of_clients(tmp_path: Path, form: str) -> None:
    assert "clients" not in forms(recorded(tmp_path))[form]


def test_the_pages_table_has_the_share_of_each_client(torn: RunRecord) -> None:
    page = render_html([torn])
    assert "Share of each client" in page
    row = page[page.index('<th scope="row">worker 1</th>') :]
    cells = [cell.split("<")[0] for cell in row.split("<td>")[1:6]]
    assert cells[1:4] == ["2", "40", "0"]


def test_shares_in_json_add_up_to_the_figures(torn: RunRecord) -> None:
    document = json.loads(render_json(compose(torn)))
    (target,) = document["summary"]["targets"]
    counts = {each["name"]: each["count"] for each in target["overall"]["transactions"]}
    sums = dict.fromkeys(counts, 0)
    for each in document["clients"]:
        for share in each["shares"]:
            sums[share["transaction"]] += share["count"]
    assert sums == counts
