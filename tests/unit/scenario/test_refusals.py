"""Every mistake is one line with file, line, name, value and bound, and a hint where one helps."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.plan.compile import compile_plan
from replayer.scenario.document import ScenarioError
from replayer.scenario.loading import load_scenario, parse_scenario
from tests.unit.scenario.texts import SMALL, changed, expect_refusal, message_of

AFTER_LOOK = "    - close\n  make"

MISTAKES = {
    "unknown key": (
        changed("duration: 2s", "durations: 2s"),
        "s.yaml:3: unknown key durations",
        "did you mean duration?",
    ),
    "unknown key of a step": (
        changed("pick: uniform", "pik: uniform"),
        "s.yaml:10: unknown key pik in transactions.look[0].open",
        "did you mean pick?",
    ),
    "wrong unit": (
        changed("2s", "10 parsecs"),
        "s.yaml:3: duration '10 parsecs' has the unknown unit 'parsecs', expected a time",
        "known units: ns, us",
    ),
    "no unit": (changed("2s", "10"), "s.yaml:3: duration 10 has no unit", "known units"),
    "no time": (changed("2s", "0s"), "s.yaml:3: duration must be more than 0, got '0s'", ""),
    "negative count": (
        changed("count: 2", "count: -1"),
        "s.yaml:2: users.count must be at least 1, got -1",
        "",
    ),
    "no users": (
        changed("count: 2", "count: 0"),
        "s.yaml:2: users.count must be at least 1, got 0",
        "",
    ),
    "too many users": (
        changed("count: 2", "count: 99999999999"),
        "s.yaml:2: users.count must be at most 1000000, got 99999999999",
        "",
    ),
    "words for a number": (
        changed("count: 2", "count: many"),
        "s.yaml:2: users.count must be a whole number, got 'many'",
        "",
    ),
    "missing dataset": (
        changed("from: files", "from: file"),
        "s.yaml:10: transactions.look[0].open.from names the dataset file, which does not exist",
        "did you mean files?",
    ),
    "nothing to do": (
        changed("mix: {look: 9, make: 1}\n", ""),
        "s.yaml:1: the scenario has neither mix nor roles: users have no transactions",
        "add mix",
    ),
    "empty mix": (changed("{look: 9, make: 1}", "{}"), "s.yaml:7: mix must have at least 1", ""),
    "more users than roles": (
        changed("mix: {look: 9, make: 1}", "roles: {only: {users: 1, mix: {make: 1}}}"),
        "s.yaml:7: users must be 1, as many as the roles have, got 2",
        "without a mix, other users have nothing to do: use -u 1",
    ),
    "mix of zero": (
        changed("look: 9, make: 1", "look: 0, make: 0"),
        "s.yaml:7: mix is all zero: at least one weight must be more than 0",
        "",
    ),
    "unknown content": (
        changed("mix:", "written: ones\nmix:"),
        "s.yaml:7: written must be random, zeros or {compressible: 50%}, got 'ones'",
        "",
    ),
    "negative weight": (
        changed("look: 9", "look: -3"),
        "s.yaml:7: mix.look must be at least 0, got -3",
        "",
    ),
    "unknown transaction in the mix": (
        changed("look: 9", "lok: 9"),
        "s.yaml:7: mix.lok is not a transaction",
        "did you mean look?",
    ),
    "unknown step": (
        changed(AFTER_LOOK, "    - clse\n  make"),
        "s.yaml:12: transactions.look[2] is the unknown step clse",
        "did you mean close?",
    ),
    "two steps in one": (
        changed(AFTER_LOOK, "    - {close: file, stat: file}\n  make"),
        "s.yaml:12: transactions.look[2] must be a word or a mapping with one key",
        "",
    ),
    "steps that are no list": (
        changed(AFTER_LOOK, "    - close\n  other: 3\n  make"),
        "s.yaml:13: transactions.other must be a list, got 3",
        "",
    ),
    "no steps": (
        changed(AFTER_LOOK, "    - close\n  other: []\n  make"),
        "s.yaml:13: transactions.other must have at least 1 entry, got 0",
        "",
    ),
    "name never bound": (
        changed(AFTER_LOOK, "    - stat: {path: fil}\n  make"),
        "s.yaml:12: transactions.look[2].stat.path uses the name fil, which no earlier step",
        "did you mean file?",
    ),
    "unknown placeholder": (
        changed("f{seq}", "f{sequ}"),
        "s.yaml:14: transactions.make[0].open.name uses the name sequ, which no earlier step",
        "",
    ),
    "file used before it is open": (
        changed("    - read: {size: 64KiB, until: end}\n", "    - read: {file: other}\n"),
        "s.yaml:11: transactions.look[1].read.file uses the file other before an open step",
        "known open files: file",
    ),
    "file used after it is closed": (
        changed(AFTER_LOOK, "    - close\n    - read\n  make"),
        "s.yaml:13: transactions.look[3].read.file uses the file file before an open step",
        "",
    ),
    "file closed by the turn before": (
        changed(AFTER_LOOK, "    - repeat: {times: 3, steps: [fstat, close]}\n  make"),
        "s.yaml:12: transactions.look[2].repeat.steps[0].fstat.file uses the file file before",
        "",
    ),
    "file open in one branch only": (
        changed(
            AFTER_LOOK,
            "    - choose: [{steps: [close]}, {steps: []}]\n    - fstat\n  make",
        ),
        "s.yaml:13: transactions.look[3].fstat.file uses the file file before",
        "",
    ),
    "threshold on an unknown transaction": (
        changed("look.p95", "lok.p95"),
        "s.yaml:17: thresholds[0] (lok.p95 < 200ms) names lok, a transaction which does not exist",
        "did you mean look?",
    ),
    "unknown picker": (
        changed("uniform", "unifrm"),
        "s.yaml:10: transactions.look[0].open.pick 'unifrm' is not a picker",
        "did you mean uniform?",
    ),
    "half a hot set": (
        changed("uniform", "{hot: 80}"),
        "s.yaml:10: transactions.look[0].open.pick.hot must be two percentages such as 80/20",
        "",
    ),
    "unknown outcome": (
        changed("pick: uniform", "expect: ENOFILE"),
        "s.yaml:10: transactions.look[0].open.expect 'ENOFILE' is neither ok, any nor an errno",
        "did you mean ENFILE?",
    ),
    "unknown flag": (
        changed("wronly", "wronlyy"),
        "s.yaml:14: transactions.make[0].open.flags[1] must be 'rdonly', 'wronly'",
        "did you mean wronly?",
    ),
    "unknown distribution": (
        changed("lognormal", "lognorml"),
        "s.yaml:15: transactions.make[1].write.size lognorml is not a distribution",
        "did you mean lognormal?",
    ),
    "backward range": (
        changed("{lognormal: {median: 300B, p95: 4KiB}}", "{uniform: [5KiB, 4KiB]}"),
        "s.yaml:15: transactions.make[1].write.size must be in ascending order",
        "",
    ),
    "no end": (
        changed("duration: 2s\n", ""),
        "s.yaml:1: the scenario has no end: duration or iterations must be given",
        "add duration: 60s",
    ),
    "broken YAML": (
        changed("users: {count: 2}", "users: {count: 2"),
        "s.yaml:3: not valid YAML",
        "",
    ),
    "key given twice": (
        changed("duration: 2s", "duration: 2s\nduration: 3s"),
        "s.yaml:4: duration is given twice, first in line 3",
        "",
    ),
    "empty file": ("", "s.yaml: the file is empty", "README"),
    "a list": ("- a\n- b\n", "s.yaml:1: must be a mapping with keys", "README"),
    "datasets in a circle": (
        changed(
            "work: {directory: true, per: user}",
            "work: {copy_of: twin}\n  twin: {copy_of: work}",
        ),
        "s.yaml:6: datasets.work contains itself: work -> twin -> work",
        "",
    ),
    "sequences in a circle": (
        changed("transactions:", "sequences: {a: [use: b], b: [use: a]}\ntransactions:"),
        "s.yaml:8: sequences.a contains itself: a -> b -> a",
        "",
    ),
    "two sources of a dataset": (
        changed("directory: true", "directory: true, files: 3"),
        "s.yaml:6: datasets.work must have exactly one of manifest, tar, files, directory, copy_of",
        "",
    ),
    "missing manifest": (
        changed("files: 10, bytes: 100KB, per_directory: 5", "manifest: wordpres"),
        "s.yaml:5: no manifest is named wordpres",
        "did you mean wordpress-6.1.9?",
    ),
    "missing archive": (
        changed("files: 10, bytes: 100KB, per_directory: 5", "tar: none.tar"),
        "s.yaml:5: the archive none.tar does not exist",
        "",
    ),
    "mode that is not octal": (
        changed("[create, wronly]", "[create, wronly], mode: 0999"),
        "s.yaml:14: transactions.make[0].open.mode must be octal permission bits",
        "",
    ),
    "way out through ..": (
        changed("f{seq}", "../f{seq}"),
        "s.yaml:14: transactions.make[0].open.name (../f{seq}) leads out of the dataset",
        "",
    ),
    "absolute name": (
        changed("f{seq}", "/f{seq}"),
        "s.yaml:14: transactions.make[0].open.name must be relative",
        "",
    ),
    "link out of the run's folder": (
        changed(
            AFTER_LOOK,
            '    - close\n    - symlink: {in: work, name: l, target: "../../../etc"}\n  make',
        ),
        "s.yaml:13: transactions.look[3].symlink.target (../../../etc) leads out of the run's",
        "",
    ),
    "arrivals and think time": (
        changed("{count: 2}", "{count: 2, think_time: 1s}\narrivals: {rate: 5/s}"),
        "s.yaml:1: the scenario has both arrivals and think_time or every",
        "remove think_time",
    ),
    "rate of zero": (
        changed("{count: 2}", "{count: 2}\narrivals: {rate: 0/s}"),
        "s.yaml:3: arrivals.rate must be more than 0, got 0/s",
        "",
    ),
    "one name for all files": (
        changed("per_directory: 5", "names: same"),
        "s.yaml:5: datasets.files.names gives same twice",
        "put {n}",
    ),
    "match of nothing": (
        changed("pick: uniform", 'match: ["*.xyz"]'),
        "s.yaml:10: transactions.look[0].open.match matches nothing in files",
        "",
    ),
    "layout of a pick": (
        changed("pick: uniform", "pick: uniform, expect: layout"),
        "s.yaml:10: transactions.look[0].open.expect is layout, but no dataset says",
        "bind it",
    ),
    "too many roles": (
        changed("mix:", "roles: {many: {users: 3, mix: {make: 1}}}\nmix:"),
        "s.yaml:7: roles use 3 users, more than users.count (2)",
        "",
    ),
    "verified zeros": (
        changed("per: user", "per: user, content: zeros") + "verify: true\n",
        "s.yaml:6: datasets.work.content is only zeros, which verify cannot tell apart",
        "without verify",
    ),
    "verified zeros that are written": (
        SMALL + "verify: true\nwritten: {compressible: 100%}\n",
        "s.yaml:19: written is only zeros, which verify cannot tell apart",
        "without verify",
    ),
    "foreign tag": (
        "a: !!python/object/apply:os.system [ls]",
        "s.yaml:1: the tag tag:yaml.org,2002:python/object/apply:os.system is not supported",
        "",
    ),
    "half a character": (
        changed("f{seq}", "f\\ud800"),
        "s.yaml:14: must be valid UTF-8, and has half of a surrogate pair",
        "",
    ),
    "wrong offset": (
        changed("    - read: {size: 64KiB, until: end}", "    - pread: {offset: anywhere}"),
        "s.yaml:11: transactions.look[1].pread.offset must be a size such as 300B",
        "",
    ),
    "alias of itself": ("a: &a [*a]", "s.yaml:1: an alias that contains itself", ""),
    "deep nesting": ("[" * 5_000, "s.yaml: must be nested at most 64 levels deep", ""),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_its_line(mistake: str) -> None:
    expect_refusal(*MISTAKES[mistake])


def test_zeros_are_refused_by_the_option_that_asks_for_them() -> None:
    with pytest.raises(ScenarioError, match="--set written=zeros: written is only zeros"):
        parse_scenario(SMALL, "s.yaml", ["verify=true", "written=zeros"])
    parse_scenario(SMALL, "s.yaml", ["verify=true", "written={compressible: 99%}"])
    parse_scenario(SMALL, "s.yaml", ["written=zeros"])


def test_own_files_are_refused_when_users_outnumber_them() -> None:
    scenario = parse_scenario(changed("uniform", "own"), "s.yaml")
    with pytest.raises(ScenarioError, match=r"s.yaml:10: .* files has 10 for 11 users"):
        compile_plan(scenario, users=11)
    compile_plan(scenario, users=10)


@pytest.mark.parametrize("name", ["close-to-open", "visibility"])
def test_users_that_would_write_the_files_of_others_are_refused(name: str) -> None:
    scenario = load_scenario(name)
    wanted = scenario.users.count
    compile_plan(scenario, users=wanted)
    for count in (wanted - 1, wanted + 1, 2 * wanted):
        with pytest.raises(ScenarioError, match=rf"{name}.yaml:\d+: users must be .*{count}$"):
            compile_plan(scenario, users=count)


def test_an_alias_bomb_is_refused() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ScenarioError, match="at most 100000 values after aliases"):
        parse_scenario("\n".join(rows), "s.yaml")


def test_a_file_over_16_mib_is_refused() -> None:
    with pytest.raises(ScenarioError, match="at most 16 MiB"):
        parse_scenario("#" * (16 * 1024 * 1024 + 1), "s.yaml")


def test_the_first_mistake_of_several_is_shown() -> None:
    text = changed("count: 2", "count: 0").replace("uniform", "unifrm")
    with pytest.raises(ScenarioError, match=r"^s.yaml:2: "):
        parse_scenario(text, "s.yaml")


@given(st.text(max_size=200))
def test_any_text_is_a_scenario_or_is_refused(text: str) -> None:
    assert message_of(text).startswith("s.yaml")


@given(st.integers(0, len(SMALL) - 1), st.integers(1, 30), st.text(max_size=8))
def test_a_damaged_scenario_is_accepted_or_refused_in_one_line_with_its_file(
    start: int, length: int, text: str
) -> None:
    message = message_of(SMALL[:start] + text + SMALL[start + length :])
    assert message == "" or message.startswith("s.yaml")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["wordpress/front-warm", "traces/linux/untar"])
def test_a_trace_in_the_place_of_a_scenario_is_told_as_one(name: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(name)
    assert caught.value.hint == f"it is a trace: replayer replay {name}"


def test_a_locustfile_in_the_place_of_a_scenario_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "editors.py"
    path.write_text("from locust import task\n\ndef f():\n    pass\n")
    with pytest.raises(ScenarioError, match=r"editors\.py: is a locustfile") as caught:
        load_scenario(path)
    assert caught.value.hint.endswith(f"replayer run SCENARIO -f {path}")
