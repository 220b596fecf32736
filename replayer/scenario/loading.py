"""From a name or a path to a scenario that has been judged whole."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from replayer.paths import UnaskablePathError, exists, is_file
from replayer.scenario.document import Document, leads_to_file, load_text, parse_document
from replayer.scenario.expansion import check_expansion
from replayer.scenario.flow import check_flow
from replayer.scenario.inclusion import include_files
from replayer.scenario.manifests import MANIFEST_ENDINGS, Entry, load_manifest, load_tar, part_of
from replayer.scenario.model import Dataset, Scenario
from replayer.scenario.overrides import apply_overrides
from replayer.scenario.problems import ScenarioError, nearest_hint
from replayer.scenario.references import check_references
from replayer.scenario.refusals import explain
from replayer.scenario.scripts import load_scripts
from replayer.scenario.shipped import shipped_folder, shipped_scenarios
from replayer.scenario.traces import load_traces
from replayer.trace import TraceError, find_trace

__all__ = ["load_scenario", "parse_scenario"]


def load_scenario(path_or_name: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario from its file, or a shipped one by its name.

    Args:
        path_or_name: ``wordpress-pages`` or a path such as ``mine/office.yaml``.
        overrides: ``KEY.KEY=VALUE`` each, as given to ``--set``.

    Raises:
        ScenarioError: It does not exist or cannot be run; the message names file and line.
        UnaskablePathError: Its path gives no answer.
    """
    path = _find(str(path_or_name))
    if path.suffix == ".py":
        hint = f"give it by -f: locust -f {path} --target …, or replayer run SCENARIO -f {path}"
        raise ScenarioError(str(path), "is a locustfile, not a scenario", hint=hint)
    return _build(parse_document(load_text(path), str(path)), path.parent, overrides)


def parse_scenario(text: str, source: str, overrides: Sequence[str] = ()) -> Scenario:
    """Parse the text of a scenario.

    Args:
        text: YAML.
        source: What messages call it; manifests are looked for beside it when it is a path.
        overrides: ``KEY.KEY=VALUE`` each, as given to ``--set``.

    Raises:
        ScenarioError: It cannot be run; the message names source and line.
    """
    return _build(parse_document(text, source), Path(source).parent, overrides)


def _find(path_or_name: str) -> Path:
    path = Path(path_or_name)
    if is_file(path):
        return path
    shipped = shipped_scenarios()
    name = path_or_name.removesuffix(".yaml").removeprefix("scenarios/")
    if name in shipped:
        return shipped[name]
    if exists(path):
        raise ScenarioError(path_or_name, "is not a file", hint=_hint_for_trace(path_or_name))
    hint = _hint_for_trace(path_or_name) or nearest_hint(name, shipped, kind="scenarios")
    raise ScenarioError(
        path_or_name, "there is no such scenario, neither as a file nor by name", hint=hint
    )


def _hint_for_trace(name: str) -> str:
    """Say what a trace is for, where one was named in the place of a scenario."""
    try:
        find_trace(name, Path())
    except (TraceError, UnaskablePathError):
        return ""
    return f"it is a trace: replayer replay {name}"


def _build(document: Document, folder: Path, overrides: Sequence[str]) -> Scenario:
    document = apply_overrides(include_files(document, folder), overrides)
    if not isinstance(document.value, dict):
        message = "must be a mapping of keys such as name, users and transactions"
        raise ScenarioError(str(document.origin(())), message, hint="see scenarios/README.md")
    try:
        scenario = Scenario.model_validate(document.value)
    except ValidationError as error:
        raise explain(error, document) from None
    scenario = scenario.located(document, {})
    check_references(scenario)
    load_scripts(scenario, folder)
    check_expansion(scenario)
    check_flow(scenario)
    found = scenario.located(document, _load_entries(scenario, folder))
    return found.replaying(load_traces(found, folder))


def _load_entries(scenario: Scenario, folder: Path) -> Mapping[str, tuple[Entry, ...]]:
    found: dict[str, tuple[Entry, ...]] = {}
    for name, dataset in scenario.datasets.items():
        if dataset.manifest is not None:
            place = str(scenario.document.origin(("datasets", name, "manifest")))
            found[name] = load_manifest(_find_manifest(dataset.manifest, folder, place))
        if dataset.tar is not None:
            found[name] = _load_archive(scenario, name, dataset, folder)
        if dataset.part is not None:
            found[name] = part_of(found[name], dataset.part)
    return found


def _load_archive(
    scenario: Scenario, name: str, dataset: Dataset, folder: Path
) -> tuple[Entry, ...]:
    path = folder / Path(str(dataset.tar)).expanduser()
    place = str(scenario.document.origin(("datasets", name, "tar")))
    if not leads_to_file(path, place):
        raise ScenarioError(place, f"the archive {path} does not exist")
    return load_tar(path)


def _find_manifest(name: str, folder: Path, place: str) -> Path:
    if "/" in name or name.endswith(MANIFEST_ENDINGS):
        path = folder / Path(name).expanduser()
        if leads_to_file(path, place):
            return path
        raise ScenarioError(place, f"the manifest {path} does not exist")
    homes = [folder / "manifests", shipped_folder() / "manifests"]
    for path in (home / f"{name}{ending}" for home in homes for ending in MANIFEST_ENDINGS):
        if leads_to_file(path, place):
            return path
    known = {p.name.split(".tsv")[0] for home in homes for p in home.glob("*.tsv*")}
    hint = nearest_hint(name, sorted(known), kind="manifests")
    raise ScenarioError(place, f"there is no manifest named {name}", hint=hint)
