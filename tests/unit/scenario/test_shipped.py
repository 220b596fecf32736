"""Shipped scenarios load, are documented, fit their schema and need nothing from elsewhere."""

import re
from functools import cache
from pathlib import Path

import jsonschema
import pytest

import replayer
from replayer.scenario.calls import Open
from replayer.scenario.document import load_text, parse_document
from replayer.scenario.json_schema import scenario_schema
from replayer.scenario.loading import load_scenario
from replayer.scenario.model import Scenario
from replayer.scenario.shipped import shipped_folder, shipped_scenarios

NAMES = sorted(shipped_scenarios())
SCHEMA = scenario_schema()


def test_all_families_are_there() -> None:
    assert {
        "close-to-open",
        "docroot-copy",
        "file-server",
        "fio-cache",
        "fio-upload",
        "kernel-build-like",
        "kernel-untar",
        "lock-contention",
        "mail-spool",
        "mdtest-easy",
        "mdtest-hard",
        "php-sessions",
        "rm-rf",
        "small-reads",
        "stream-burst",
        "sync-async-writes",
        "uploads",
        "visibility",
        "web-server",
        "wordpress-deploy",
        "wordpress-pages",
        "wordpress-replay",
        "wordpress-update",
        "wordpress-uploads",
        "write-100mb-files",
        "write-1mb-files",
        "write-size-sweep",
    } == set(NAMES)


@cache
def loaded(name: str) -> Scenario:
    return load_scenario(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_loads_by_name_and_by_path(name: str) -> None:
    by_name = loaded(name)
    assert by_name == load_scenario(shipped_scenarios()[name])
    assert by_name.name == name
    assert len(by_name.about) > 80
    assert len(by_name.assumptions) >= 3
    assert "errors == 0" in by_name.thresholds


LONGEST_NS = 100_000_000_000  # with laying out and stopping it ends within two minutes


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_ends_by_itself_within_two_minutes(name: str) -> None:
    duration_ns = loaded(name).duration_ns
    assert duration_ns is not None, "on a slow mount, iterations alone may take hours"
    assert duration_ns <= LONGEST_NS


def parameters() -> dict[str, list[str]]:
    """What scenarios/README.md says is worth turning, by scenario."""
    found: dict[str, list[str]] = {}
    for line in (shipped_folder() / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = [name for name in NAMES if f"`{name}`" in cells[0]]
        if len(cells) == 3 and names:
            words = [word for word in re.findall("`([^`]+)`", cells[2]) if "=" in word]
            above = list(found.values())[-1:]
            found[names[0]] = above[0] if cells[2] == "the same" else words
    return found


PARAMETERS = parameters()


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_has_parameters_that_its_readme_names(name: str) -> None:
    settings = [word for word in PARAMETERS[name] if ".tar=" not in word]  # a file of the reader's
    assert settings
    assert load_scenario(name, settings) != loaded(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_fits_the_schema(name: str) -> None:
    path = shipped_scenarios()[name]
    jsonschema.Draft202012Validator(SCHEMA).validate(
        parse_document(load_text(path), str(path)).value
    )


def test_the_schema_is_one_and_refuses_unknown_keys() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    sound = {"name": "x", "mix": {"a": 1}, "transactions": {"a": [{"stat": {"in": "d"}}]}}
    validator.validate(sound)
    for foul in (
        {**sound, "durations": "5s"},
        {**sound, "duration": "5 parsecs"},
        {**sound, "transactions": {"a": ["clse"]}},
        {**sound, "transactions": {"a": [{"stat": {"inn": "d"}}]}},
        {**sound, "transactions": {"a": [{"stat": "x", "close": "x"}]}},
        {**sound, "users": {"count": 0}},
    ):
        assert not validator.is_valid(foul)


def test_a_checkout_has_the_scenarios_beside_or_inside_the_package() -> None:
    package = Path(replayer.__file__).parent
    assert shipped_folder() in {package / "scenarios", package.parent / "scenarios"}


def test_an_installed_package_finds_the_scenarios_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "replayer" / "scenarios").mkdir(parents=True)
    (tmp_path / "replayer" / "scenarios" / "one.yaml").write_text("name: one")
    monkeypatch.setattr(replayer, "__file__", str(tmp_path / "replayer" / "__init__.py"))
    assert list(shipped_scenarios()) == ["one"]


def test_a_checkout_without_the_link_finds_the_scenarios_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "replayer").mkdir()
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "two.yaml").write_text("name: two")
    monkeypatch.setattr(replayer, "__file__", str(tmp_path / "replayer" / "__init__.py"))
    assert list(shipped_scenarios()) == ["two"]


def test_every_shipped_scenario_is_listed_with_what_it_answers() -> None:
    listed = (shipped_folder() / "README.md").read_text()
    assert [name for name in NAMES if f"| `{name}` |" not in listed] == []


def test_every_shipped_script_and_manifest_is_used_or_offered() -> None:
    folder = shipped_folder()
    texts = "".join(path.read_text() for path in [*folder.glob("**/*.yaml"), folder / "README.md"])
    files = [*folder.glob("scripts/*"), *folder.glob("manifests/*")]
    names = {
        path.name if path.parent.name == "scripts" else path.name.split(".tsv")[0] for path in files
    }
    assert [name for name in sorted(names) if name not in texts] == []


def test_locks_of_two_kinds_are_never_on_the_same_file() -> None:
    """On NFS they exclude each other, and on a local file system they do not."""
    transactions = loaded("lock-contention").transactions
    opened = {
        name: next(step.from_ for step in steps if isinstance(step, Open))
        for name, steps in transactions.items()
    }
    assert opened["flock"] == opened["try_flock"] != opened["fcntl"]
