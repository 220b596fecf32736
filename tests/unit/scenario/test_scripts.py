"""Scripts are tables of sequences and paths; their mistakes name their own lines."""

from pathlib import Path

import pytest

from replayer.plan.compile import compile_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import parse_scenario
from tests.unit.scenario.texts import changed

TEXT = changed(
    "    - close\n  make", "    - close\n    - script: {in: files, file: page.tsv}\n  make"
).replace("mix:", "sequences: {probe: [{lstat: {expect: layout}}]}\nmix:")


def load(folder: Path, table: str, text: str = TEXT) -> list[list[str]]:
    """Return what the calls of the script expect."""
    (folder / "page.tsv").write_text(table)
    body = compile_plan(parse_scenario(text, str(folder / "s.yaml"))).body
    steps = body["transactions"][0]["steps"]
    return [step["expect"] for step in steps if step.get("op") == "lstat"]


def test_lines_run_in_order_on_their_paths(tmp_path: Path) -> None:
    table = "use\tname\nprobe\td0/f1\nprobe\td0/none\nprobe\t.\n"
    assert load(tmp_path, table) == [["ok"], ["ENOENT"], ["ok"]]


def test_a_script_may_be_about_a_tree_below_a_link(tmp_path: Path) -> None:
    text = TEXT.replace("file: page.tsv", "file: page.tsv, below: now").replace(
        "per_directory: 5}", "per_directory: 5, under: r/0, links: {now: r/0}}"
    )
    table = "use\tname\nprobe\td0/f1\nprobe\td0/none\nprobe\t.\n"
    assert load(tmp_path, table, text) == [["ok"], ["ENOENT"], ["ok"]]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "page.tsv:1: is not a script"),
        ("use\tname\n", "page.tsv:1: is not a script"),
        ("use\tname\nprobe\n", "page.tsv:2: must be a sequence, a tab and a path"),
        ("use\tname\nprob\ta\n", "page.tsv:2: names the sequence prob, which does not exist"),
        ("use\tname\nprobe\ta\nprobe\t../a\n", "page.tsv:3: the path '../a' leads out"),
    ],
)
def test_a_foul_table_is_refused_with_its_line(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load(tmp_path, table)
    assert message in str(refused.value)


def test_more_paths_than_a_plan_can_hold_are_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replayer.plan.bindings.MAX_PICKERS", 3)
    table = "use\tname\n" + "".join(f"probe\td0/f{n}\n" for n in range(4))
    with pytest.raises(ScenarioError, match="in at most 3 different ways"):
        load(tmp_path, table)


def test_a_missing_script_is_refused_where_it_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"^none/s\.yaml:14: the script none/page\.tsv cannot"):
        parse_scenario(TEXT, "none/s.yaml")


def test_a_script_stands_in_no_sequence() -> None:
    text = TEXT.replace("{probe: [", "{again: [{script: {in: files, file: x}}], probe: [")
    with pytest.raises(ScenarioError, match="must be in transactions, not in sequences"):
        parse_scenario(text, "s.yaml")


def test_words_of_a_script_can_stand_for_other_sequences_or_none(tmp_path: Path) -> None:
    table = "use\tname\nphp\td0/f1\nprobe\td0/none\nphp\td0/f2\n"
    for words, expected in (
        ("php: probe", [["ok"], ["ENOENT"], ["ok"]]),
        ("php: null", [["ENOENT"]]),
        ("php: null, probe: null", []),
    ):
        text = TEXT.replace("file: page.tsv", f"file: page.tsv, with: {{{words}}}")
        assert load(tmp_path, table, text) == expected


def test_a_sequence_that_stands_for_a_word_must_exist(tmp_path: Path) -> None:
    text = TEXT.replace("file: page.tsv", "file: page.tsv, with: {php: prob}")
    with pytest.raises(ScenarioError, match=r"page\.tsv:2: names the sequence prob, which"):
        load(tmp_path, "use\tname\nphp\td0/f1\n", text)
