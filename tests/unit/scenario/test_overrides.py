"""--set changes any value, and its mistakes name the option."""

from pathlib import Path

import pytest

from replayer.errors import in_lines
from replayer.plan.compile import compile_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import load_scenario, parse_scenario
from replayer.scenario.steps import Script
from tests.unit.scenario.texts import SMALL


def test_a_value_is_changed() -> None:
    scenario = parse_scenario(SMALL, "s.yaml", ["users.count=5", "duration=1m"])
    assert scenario.users.count == 5
    assert scenario.duration_ns == 60_000_000_000


def test_the_word_datasets_may_be_left_out() -> None:
    short = parse_scenario(SMALL, "s.yaml", ["files.files=20"])
    long = parse_scenario(SMALL, "s.yaml", ["datasets.files.files=20"])
    assert short.datasets["files"].files == long.datasets["files"].files == 20


def test_a_step_is_reached_by_its_number() -> None:
    scenario = parse_scenario(SMALL, "s.yaml", ["transactions.look.0.open.pick=sequential"])
    pickers = compile_plan(scenario).body["pickers"]
    assert [picker["kind"] for picker in pickers] == ["sequential"]


def test_a_new_source_replaces_the_old_one(tmp_path: Path) -> None:
    manifest = tmp_path / "mine.tsv"
    manifest.write_text("path\ttype\tsize\tmode\tlink\na.txt\tf\t5\t600\t\n")
    scenario = parse_scenario(SMALL, "s.yaml", [f"files.manifest={manifest}"])
    assert scenario.datasets["files"].files is None
    assert [entry.path for entry in scenario.entries["files"]] == ["a.txt"]


SAID = """\
name: said
seed: 5
warm_up: 1s
written: zeros
iterations: 3
cache: warm
duration: 2s
users: {count: 2, ramp_up: 1s, think_time: 1s}
datasets:
  files: {files: 10, sizes: 1KiB, per_directory: 5, depth: 2}
  spare: {directory: true}
mix: {look: 9, rest: 1}
roles: {only: {users: 1, mix: {rest: 1}}}
transactions:
  look:
    - open: {from: files, pick: uniform, flags: [rdwr], mode: 0o600, expect: [ok, ENOENT]}
  rest:
    - think: 1ms
  unused:
    - think: 1ms
thresholds: ["look.p95 < 200ms"]
"""


@pytest.mark.parametrize(
    ("key", "text", "rest"),
    [
        ("seed", "seed: 5\n", ""),
        ("warm_up", "warm_up: 1s\n", ""),
        ("written", "written: zeros\n", ""),
        ("iterations", "iterations: 3\n", ""),
        ("cache", "cache: warm\n", ""),
        ("duration", "duration: 2s\n", ""),
        ("thresholds", 'thresholds: ["look.p95 < 200ms"]\n', ""),
        ("mix", "mix: {look: 9, rest: 1}\n", ""),
        ("mix.rest", "look: 9, rest: 1", "look: 9"),
        ("roles", "roles: {only: {users: 1, mix: {rest: 1}}}\n", ""),
        ("roles.only", "only: {users: 1, mix: {rest: 1}}", ""),
        ("users", "users: {count: 2, ramp_up: 1s, think_time: 1s}\n", ""),
        ("users.count", "count: 2, ", ""),
        ("users.ramp_up", "ramp_up: 1s, ", ""),
        ("spare", "  spare: {directory: true}\n", ""),
        ("files.depth", ", depth: 2", ""),
        ("transactions.unused", "  unused:\n    - think: 1ms\n", ""),
        ("transactions.look.0.open.flags", "flags: [rdwr], ", ""),
        ("transactions.look.0.open.mode", "mode: 0o600, ", ""),
        ("transactions.look.0.open.expect", ", expect: [ok, ENOENT]", ""),
    ],
)
def test_null_is_as_if_the_key_had_been_left_out(key: str, text: str, rest: str) -> None:
    assert SAID.count(text) == 1
    taken = parse_scenario(SAID, "s.yaml", [f"{key}=null"])
    left_out = parse_scenario(SAID.replace(text, rest), "s.yaml")
    assert taken.model_dump() == left_out.model_dump()
    assert taken.model_dump() != parse_scenario(SAID, "s.yaml").model_dump()


@pytest.mark.parametrize("key", ["seed", "warm_up", "arrivals", "roles", "users.every"])
def test_what_is_not_there_can_be_taken_away(key: str) -> None:
    taken = parse_scenario(SMALL, "s.yaml", [f"{key}=null"])
    assert taken.model_dump() == parse_scenario(SMALL, "s.yaml").model_dump()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("name", "name is missing"),
        ("transactions", "transactions is missing"),
        ("users.think_tmie", "unknown key think_tmie in users"),
        ("transactions.rest.0", "transactions.rest[0] must be a word"),
    ],
)
def test_what_cannot_be_left_out_or_is_no_key_is_refused(key: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(SAID, "s.yaml", [f"{key}=null"])
    assert str(refused.value).startswith(f"--set {key}=null: {message}")


def test_null_for_a_word_of_a_script_leaves_its_lines_out() -> None:
    word = "transactions.front_page_revalidated.0.script.with.php"
    scenario = load_scenario("wordpress-pages", [f"{word}=null"])
    (revalidated,), (page,) = (
        scenario.transactions[name] for name in ("front_page_revalidated", "front_page")
    )
    assert isinstance(revalidated, Script)
    assert isinstance(page, Script)
    assert revalidated.lines == page.lines


def test_scripts_of_options_are_those_of_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.tsv").write_text("use\tname\n")
    with pytest.raises(ScenarioError, match=f"{tmp_path}/mine.tsv:1: is not a script"):
        load_scenario("wordpress-pages", ["transactions.feed.0.script.file=mine.tsv"])


def test_paths_of_options_are_relative_to_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here.tsv").write_text("path\ttype\tsize\tmode\tlink\na\tf\t5\t600\t\n")
    monkeypatch.chdir(tmp_path)
    scenario = load_scenario("kernel-untar", ["linux.manifest=here.tsv"])
    assert len(scenario.entries["linux"]) == 1


def test_paths_inside_mappings_are_relative_to_the_current_directory_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine.tsv").write_text("path\ttype\tsize\tmode\tlink\na\tf\t7\t644\t\n")
    scenario = load_scenario("rm-rf", ["tree={manifest: ./mine.tsv, per: user}"])
    assert [entry.path for entry in scenario.entries["tree"]] == ["a"]
    with pytest.raises(ScenarioError, match=f"the archive {tmp_path}/none.tar does not exist"):
        load_scenario("rm-rf", ["tree.tar=none.tar"])
    with pytest.raises(ScenarioError, match=f"{tmp_path}/mine"):
        load_scenario("wordpress-replay", ["transactions.front_page.trace=mine"])


@pytest.mark.parametrize(
    ("option", "message", "hint"),
    [
        ("files.flies=5", "unknown key flies in datasets.files", "did you mean files?"),
        ("fils.files=5", "fils is neither a key nor a dataset", "did you mean files?"),
        ("users.count=zero", "users.count must be a whole number, got 'zero'", ""),
        ("users.count", "must be KEY=VALUE", "--set users.count=4"),
        ("users..count=3", "must be KEY=VALUE", ""),
        ("users.think_time=", "the value is empty", "is a variable not set?"),
        ("files.sizes= ", "the value is empty", "null removes"),
        ("files.sizes=# none", "the value is empty", ""),
        ("name.first=x", "is below a single value", ""),
        ("transactions.look.9.open.pick=own", "9 is not an index of a list of 3", ""),
        ("users={count: 2", "not valid YAML", ""),
        ("include=other.yaml", "include cannot be set", "write a file that includes it"),
    ],
)
def test_a_mistake_names_the_option(option: str, message: str, hint: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(SMALL, "s.yaml", [option])
    assert str(refused.value).startswith(f"--set {option}")
    assert message in str(refused.value)
    assert hint in refused.value.hint


def test_a_mistake_is_shown_on_one_line() -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(SMALL, "s.yaml", ['name="a\n\x1bb"'])
    shown, *hint = in_lines(refused.value).splitlines()
    assert shown.startswith('replayer: --set name="a\\n\\x1bb": ')
    assert len(hint) < 2
