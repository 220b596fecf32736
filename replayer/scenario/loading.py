"""From a name or a path to a scenario that has been judged whole."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from replayer.paths import UnaskablePathError, exists, is_file
from replayer.scenario.calls import StepPart
from replayer.scenario.document import (
    Key,
    Origin,
    ScenarioError,
    YamlDocument,
    leads_to_file,
    load_text,
    nearest_hint,
    parse_document,
)
from replayer.scenario.flow import check_flow
from replayer.scenario.manifests import (
    MANIFEST_ENDINGS,
    Entry,
    check_path,
    load_manifest,
    load_tar,
    part_of,
)
from replayer.scenario.model import Dataset, Scenario
from replayer.scenario.overrides import apply_overrides
from replayer.scenario.references import check_references, every_step, refuse
from replayer.scenario.refusals import explain, show_key
from replayer.scenario.shipped import shipped_folder, shipped_scenarios
from replayer.scenario.steps import (
    Choose,
    Each,
    For,
    Pipeline,
    Repeat,
    Replay,
    Script,
    ScriptLine,
    Until,
    Use,
    blocks_of,
)
from replayer.trace.errors import TraceError
from replayer.trace.facts import TraceFacts, load_facts
from replayer.trace.shipped import find_trace


def load_traces(scenario: Scenario, folder: Path) -> Mapping[str, TraceFacts]:
    """Return the facts of every trace that a scenario names, by that name; relative to a folder.

    Raises:
        ScenarioError: There is no such trace, or no such request in it; with file and line.
    """
    found: dict[str, TraceFacts] = {}
    for key, step in _replays(scenario):
        if step.trace not in found:
            found[step.trace] = _load(scenario, key, step.trace, folder)
        _check_request(scenario, key, step, found[step.trace])
    return found


def _replays(scenario: Scenario) -> Iterator[tuple[Key, Replay]]:
    for key, step in every_step(scenario):
        if isinstance(step, Replay):
            yield _written(scenario, key), step


def _written(scenario: Scenario, key: Key) -> Key:
    """Return where a step's operands stand: a transaction may be one step without a list."""
    group, name, *_ = key
    written = scenario.document.value
    value = written.get(group, {}).get(name) if isinstance(written, dict) else None
    return (group, name) if isinstance(value, dict) else (*key, "replay")


def _load(scenario: Scenario, key: Key, name: str, folder: Path) -> TraceFacts:
    try:
        return load_facts(name, folder)
    except (TraceError, UnaskablePathError) as error:
        place = str(scenario.document.origin((*key, "trace")))
        raise ScenarioError(place, str(error), hint=error.hint) from None


def _check_request(scenario: Scenario, key: Key, step: Replay, trace: TraceFacts) -> None:
    if step.request is None or step.request in trace.requests:
        return
    message = f"({step.request}) is not a request of the trace {step.trace}"
    hint = nearest_hint(step.request, trace.requests, kind="requests")
    raise refuse(scenario, (*key, "request"), message, hint)


MAX_STEPS = 1_000_000
"""Chosen: a hundred times the largest shipped scenario; compiling them takes a minute."""

MAX_BLOCKS = 16
"""How deep steps nest in plan format 1, the list of a transaction included."""


_Size = tuple[int, int]
"""Of steps: how many they become, and how many blocks lie in each other."""


def check_expansion(scenario: Scenario) -> None:
    """Check how many steps the transactions have, and how deep they nest.

    Raises:
        ScenarioError: There are too many, or they nest too deep.
    """
    gauge = _Gauge(scenario.sequences)
    whole = 0
    for name, steps in scenario.transactions.items():
        key = ("transactions", name)
        count, blocks = gauge.measure(steps)
        whole += count
        if blocks >= MAX_BLOCKS:
            raise refuse(scenario, key, f"must nest at most {MAX_BLOCKS - 1} blocks, got {blocks}")
        if whole > MAX_STEPS:
            message = f"has {count:,} steps after sequences and names are expanded"
            hint = (
                f"all transactions together may have {MAX_STEPS:,}; a repeat: or each: counts once"
            )
            raise refuse(scenario, key, message, hint)


class _Gauge:
    def __init__(self, sequences: Mapping[str, Sequence[StepPart]]) -> None:
        self.sequences = sequences
        self.of_sequence = cache(lambda name: self.measure(self.sequences[name]))

    def measure(self, steps: Sequence[StepPart]) -> _Size:
        return _in_a_row([self.of_step(step) for step in steps])

    def of_step(self, step: StepPart) -> _Size:
        match step:
            case Use():
                return self.of_sequence(step.sequence)
            case Script():
                count, blocks = _in_a_row([self.of_sequence(each.sequence) for each in step.lines])
                return len(step.lines) + count, blocks
            case For():
                count, blocks = self.measure(step.steps)
                return len(step.names) * (1 + count), blocks
            case Repeat() | Choose() | Each() | Pipeline() | Until():
                inside = [self.measure(steps) for _, steps in blocks_of(step, ())]
                count, blocks = _in_a_row(inside)
                return 1 + count, 1 + blocks
            case _:
                return 1, 0


def _in_a_row(sizes: Sequence[_Size]) -> _Size:
    return sum(count for count, _ in sizes), max((blocks for _, blocks in sizes), default=0)


ADDED = frozenset({"users", "datasets", "sequences", "transactions"})
"""Keys whose entries are added to those of the included files; other keys are replaced."""

MAX_DEPTH = 4
"""Chosen: a variant of a scenario that uses shared sequences is two deep."""


def include_files(document: YamlDocument, folder: Path, depth: int = 0) -> YamlDocument:
    """Return a document with everything that its ``include`` names.

    Files are looked for in the folder of the one that includes them, then among the shipped ones.
    ``depth`` files have included this one.

    Raises:
        ScenarioError: A file does not exist, cannot be read, or files include each other.
    """
    names = _names(document)
    if not names:
        return document
    place = str(document.origin(("include",)))
    if depth == MAX_DEPTH:
        raise ScenarioError(place, f"include must be nested at most {MAX_DEPTH} files deep")
    below = YamlDocument({})
    for name in names:
        path = _find_included(name, folder, place)
        found = parse_document(load_text(path), str(path))
        if not isinstance(found.value, dict):
            raise ScenarioError(str(path), "must be a mapping with keys such as sequences")
        below = _laid_over(below, include_files(found, path.parent, depth + 1))
    return _laid_over(below, document)


def _names(document: YamlDocument) -> list[str]:
    """Return what is included; anything else than names is left to the models to refuse."""
    value = document.value
    names = value.get("include", ()) if isinstance(value, dict) else ()
    names = [names] if isinstance(names, str) else names
    good = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return list(names) if good else []


def _find_included(name: str, folder: Path, place: str) -> Path:
    for home in (folder, shipped_folder()):
        path = home / Path(name).expanduser()
        if leads_to_file(path, place):
            return path
    raise ScenarioError(place, f"the included file {folder / name} does not exist")


def _laid_over(below: YamlDocument, above: YamlDocument) -> YamlDocument:
    value = dict(_mapping(below.value))
    origins: dict[Key, Origin] = dict(below.origins)
    for name, new in _mapping(above.value).items():
        old = value.get(name)
        if name in ADDED and isinstance(new, dict) and isinstance(old, dict):
            value[name] = {**old, **new}
            gone: list[Key] = [(name, inner) for inner in new]
        else:
            value[name] = new
            gone = [(name,)]
        origins = {
            key: at for key, at in origins.items() if not {key[:1], key[:2]}.intersection(gone)
        }
    return YamlDocument(value, {**origins, **above.origins})


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


HEADER = "use\tname"
MAX_LINES = 100_000


def load_scripts(scenario: Scenario, folder: Path) -> None:
    """Give every ``script`` step of a scenario its lines.

    Raises:
        ScenarioError: A script does not exist, is no table or uses a sequence that does not exist.
    """
    scripts = [(key, step) for key, step in every_step(scenario) if isinstance(step, Script)]
    for key, _ in scripts:
        if key[0] == "sequences":
            place = str(scenario.document.origin(key))
            message = f"{show_key(key)}: a script must be in transactions, not in sequences"
            raise ScenarioError(place, message)
    for key, step in scripts:
        inside = (*key, "script")
        path = _find_script(scenario, inside, step, folder)
        lines = _load_script(scenario, inside, step, path)
        step.give_lines(line.below(step.below) for line in lines)


def parse_script(
    text: str,
    source: str,
    sequences: Mapping[str, object],
    instead: Mapping[str, str | None] = MappingProxyType({}),
) -> list[ScriptLine]:
    """Parse the table of a script.

    ``instead`` names sequences for words of the table, or None for lines to leave out.

    Raises:
        ScenarioError: It is no such table, or uses a sequence that does not exist.
    """
    lines = text.splitlines()
    if not lines or lines[0] != HEADER or len(lines) == 1:
        hint = "the first line must be: use<TAB>name"
        raise ScenarioError(f"{source}:1", "is not a script", hint=hint)
    if len(lines) > MAX_LINES:
        raise ScenarioError(source, f"must have at most {MAX_LINES} lines, got {len(lines)}")
    found = []
    for number, row in enumerate(lines[1:], start=2):
        word, name = _split(row, f"{source}:{number}")
        use = instead.get(word, word)
        if use is not None:
            found.append(_parse_line(use, name, f"{source}:{number}", sequences))
    return found


def _split(row: str, place: str) -> tuple[str, str]:
    word, tab, name = row.partition("\t")
    if not tab or not name or "\t" in name:
        raise ScenarioError(place, f"must be a sequence, a tab and a path, got {row!r}")
    return word, name


def _parse_line(use: str, name: str, place: str, sequences: Mapping[str, object]) -> ScriptLine:
    if use not in sequences:
        hint = nearest_hint(use, sequences, kind="sequences")
        raise ScenarioError(place, f"names the sequence {use}, which does not exist", hint=hint)
    problem = None if name == "." else check_path(name)
    if problem is not None:
        raise ScenarioError(place, f"the path {name!r} {problem}")
    return ScriptLine(use, name, place)


def _find_script(scenario: Scenario, key: Key, step: Script, folder: Path) -> Path:
    """Return the script's file: beside the scenario, or beside the included file that names it."""
    origin = scenario.document.origin((*key, "file"))
    here, beside = folder / step.file, Path(origin.source).parent / step.file
    is_beside = not leads_to_file(here, str(origin)) and leads_to_file(beside, str(origin))
    return beside if is_beside else here


def _load_script(scenario: Scenario, key: Key, step: Script, path: Path) -> Sequence[ScriptLine]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        place = str(scenario.document.origin((*key, "file")))
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ScenarioError(place, f"the script {path} cannot be read: {reason}") from None
    return parse_script(text, str(path), scenario.sequences, step.with_)


def load_scenario(path_or_name: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario from its file, or a shipped one by its name, with ``--set`` applied.

    Raises:
        ScenarioError: It does not exist or cannot be run; the message names file and line.
        UnaskablePathError: Its path gives no answer.
    """
    path = _find(str(path_or_name))
    if path.suffix == ".py":
        hint = f"give it with -f: locust -f {path} --target …, or replayer run SCENARIO -f {path}"
        raise ScenarioError(str(path), "is a locustfile, not a scenario", hint=hint)
    return _build(parse_document(load_text(path), str(path)), path.parent, overrides)


def parse_scenario(text: str, source: str, overrides: Sequence[str] = ()) -> Scenario:
    """Parse the text of a scenario; manifests are looked for beside its source if that is a path.

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
        path_or_name, "no such scenario, neither a file nor a shipped scenario", hint=hint
    )


def _hint_for_trace(name: str) -> str:
    """Say what a trace is for, where one was named in the place of a scenario."""
    try:
        find_trace(name, Path())
    except (TraceError, UnaskablePathError):
        return ""
    return f"it is a trace: replayer replay {name}"


def _build(document: YamlDocument, folder: Path, overrides: Sequence[str]) -> Scenario:
    document = apply_overrides(include_files(document, folder), overrides)
    if not isinstance(document.value, dict):
        message = "must be a mapping with keys such as name, users and transactions"
        raise ScenarioError(str(document.origin(())), message, hint="see scenarios/README.md")
    try:
        scenario = Scenario.model_validate(document.value)
    except ValidationError as error:
        raise explain(error, document) from None
    scenario = scenario.knowing(document)
    check_references(scenario)
    load_scripts(scenario, folder)
    check_expansion(scenario)
    check_flow(scenario)
    entries = _load_entries(scenario, folder)
    return scenario.knowing(entries=entries, traces=load_traces(scenario, folder))


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


def load_known(name: str) -> tuple[Entry, ...]:
    """Return a list of files that comes with the program.

    Raises:
        ScenarioError: It cannot be read.
    """
    return load_manifest(_find_manifest(name, shipped_folder(), name))


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
    raise ScenarioError(place, f"no manifest is named {name}", hint=hint)
