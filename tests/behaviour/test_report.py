"""What is made of a real run afterwards: comparison, page, costs."""

import json
from pathlib import Path

import jsonschema
import pytest

from replayer.report.json_form import comparison_schema, run_schema
from tests.behaviour.shell import Shell, make_shell

PRICES = "stored_gb: 1\ntargets: {left: {per_gb_month: 1}, right: {per_month: 2}}\n"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A home with one real run on two targets in three rounds."""
    shell = make_shell(tmp_path_factory.mktemp("home"))
    targets = (f"{name}={shell.target(name)}" for name in ("left", "right"))
    words = [word for target in targets for word in ("--target", target)]
    done = shell.run("run", "tiny.yaml", *words, "-t", "2s", "-o", "out", "--json")
    assert done.went_well, done.err
    analysis = done.document()["analysis"]
    assert {found["transaction"] for found in analysis["acknowledged"]} == {"save"}
    return shell


def test_the_targets_of_a_run_are_compared(shell: Shell) -> None:
    done = shell.run("compare", "out", "--json")
    assert done.code == 0, done.err
    found = done.document()
    jsonschema.validate(found, comparison_schema())
    ranked = {(item["subject"], item["figure"]) for item in found["compared"]}
    assert ranked >= {("all transactions", "p50"), ("look", "p50"), ("save", "p50")}
    assert not any(figure == "throughput" for _, figure in ranked), "its users think"
    assert ("open", "p50") in ranked
    assert all(item["standings"][0]["claim"] == "best" for item in found["compared"])


def test_json_is_asked_for_as_of_every_other_command(shell: Shell) -> None:
    short, long = (
        shell.run("report", "out", *words) for words in (["--json"], ["--format", "json"])
    )
    assert (short.code, short.err) == (0, "")
    assert short.out == long.out
    jsonschema.validate(short.document(), run_schema())
    for word in ("--format=csv", "--html=other.html"):
        refused = shell.run("report", "out", word, "--json")
        assert (refused.code, refused.out) == (2, "")
        assert "not allowed with argument" in refused.err


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("named.json", "{"),
        ("named.MD", "#"),
        ("named.csv", "run,"),
        ("named.xml", "<?xml"),
        ("named.html", "<!doctype html>"),
    ],
)
def test_the_name_of_a_file_says_which_report_it_holds(shell: Shell, name: str, begin: str) -> None:
    done = shell.run("report", "out", "-o", name)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (shell.home / name).read_text().startswith(begin)


def test_a_report_in_a_text_file_begins_with_the_verdict(shell: Shell) -> None:
    done = shell.run("report", "out", "-o", "named.txt")
    assert (done.code, done.out, done.err) == (0, "", "")
    outcome = shell.run("report", "out", "--json").document()["verdict"]["outcome"]
    assert outcome in {"pass", "inconclusive"}  # the second on a busy machine
    assert (shell.home / "named.txt").read_text().startswith(outcome.upper())


@pytest.mark.parametrize(
    ("name", "begin"), [("two.json", "{"), ("two.md", "#"), ("two.html", "<!doctype html>")]
)
def test_the_name_of_a_file_says_which_comparison_it_holds(
    shell: Shell, name: str, begin: str
) -> None:
    done = shell.run("compare", "out", "-o", name)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (shell.home / name).read_text().startswith(begin)
    table = shell.run("compare", "out", "-o", f"table-{name}", "--format", "table")
    assert table.code == 0
    assert not (shell.home / f"table-{name}").read_text().startswith(begin)


def test_the_page_holds_both_targets(shell: Shell) -> None:
    done = shell.run("report", "out", "--html", "page.html")
    assert done.code == 0, done.err
    page = (shell.home / "page.html").read_text()
    assert page.count("<figure>") == 2 + 2 * 2
    assert "left" in page
    assert "right" in page
    assert "Where written data is" in page


def test_costs_come_from_the_prices_that_are_given(shell: Shell) -> None:
    (shell.home / "prices.yaml").write_text(PRICES)
    done = shell.run("cost", "out", "--prices", "prices.yaml", "--json")
    assert done.code == 0, done.err
    costs = json.loads(done.out)["costs"]
    assert {cost["target"]: cost["fixed_per_month"] for cost in costs} == {"left": 1, "right": 2}


def test_a_folder_is_looked_over_and_left_as_it_was(shell: Shell, tmp_path: Path) -> None:
    done = shell.run("doctor", "--no-probe", tmp_path)
    assert done.code == 0, done.err
    assert str(tmp_path) in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_a_part_of_a_tree_says_so_at_its_begin_and_in_its_report(shell: Shell) -> None:
    target, part = shell.target("part"), ("--set", "linux.part=1%")
    words = ("run", "kernel-untar", "--target", f"part={target}", *part, "-t", "1s", "-o", "untar")
    done = shell.run(*words)
    says = "linux: 1 % of the directories of the whole"
    assert done.code in {0, 4}, done.err
    assert f"a part only: {says}" in done.err
    assert says in done.out
    assert json.loads((shell.home / "untar/run.json").read_text())["plan"]["parts"] == [
        {"dataset": "linux", "percent": 1}
    ]
