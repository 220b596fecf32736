"""Scripts: lists of paths that a transaction goes through, kept beside the scenario as a table.

A script has a header line ``use<TAB>name``; every other line names a sequence of the scenario and a
path in the dataset. It keeps a page view of five hundred paths, in the order of the application,
out of the YAML.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from replayer.scenario.document import Key, leads_to_file
from replayer.scenario.manifests import check_path
from replayer.scenario.model import Scenario
from replayer.scenario.problems import ScenarioError, nearest_hint
from replayer.scenario.refusals import show_key
from replayer.scenario.steps import Script, ScriptLine
from replayer.scenario.walk import walk_steps

__all__ = ["load_scripts", "parse_script"]

HEADER = "use\tname"
MAX_LINES = 100_000


def load_scripts(scenario: Scenario, folder: Path) -> None:
    """Give every ``script`` step of a scenario its lines.

    Raises:
        ScenarioError: A script does not exist, is no table or uses a sequence that does not exist.
    """
    for name, steps in scenario.sequences.items():
        for key, step in walk_steps(steps, ("sequences", name)):
            if isinstance(step, Script):
                place = str(scenario.document.origin(key))
                message = f"{show_key(key)}: a script stands in transactions, not in sequences"
                raise ScenarioError(place, message)
    for name, steps in scenario.transactions.items():
        for key, step in walk_steps(steps, ("transactions", name)):
            if isinstance(step, Script):
                inside = (*key, "script")
                path = _find(scenario, inside, step, folder)
                lines = _load(scenario, inside, step, path)
                step.give_lines(line.below(step.below) for line in lines)


def parse_script(
    text: str,
    source: str,
    sequences: Mapping[str, object],
    instead: Mapping[str, str | None] = MappingProxyType({}),
) -> list[ScriptLine]:
    """Parse the table of a script.

    Args:
        text: The table.
        source: What messages call it.
        sequences: Those that exist.
        instead: Sequences for words of the table, or None for those to leave out.

    Raises:
        ScenarioError: It is no such table, or uses a sequence that does not exist.
    """
    lines = text.splitlines()
    if not lines or lines[0] != HEADER or len(lines) == 1:
        hint = "the first line must be: use<TAB>name"
        raise ScenarioError(f"{source}:1", "not a script", hint=hint)
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


def _find(scenario: Scenario, key: Key, step: Script, folder: Path) -> Path:
    """Return the script's file: beside the scenario, or beside the included file that names it."""
    origin = scenario.document.origin((*key, "file"))
    here, beside = folder / step.file, Path(origin.source).parent / step.file
    is_beside = not leads_to_file(here, str(origin)) and leads_to_file(beside, str(origin))
    return beside if is_beside else here


def _load(scenario: Scenario, key: Key, step: Script, path: Path) -> Sequence[ScriptLine]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        place = str(scenario.document.origin((*key, "file")))
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ScenarioError(place, f"the script {path} cannot be read: {reason}") from None
    return parse_script(text, str(path), scenario.sequences, step.with_)
