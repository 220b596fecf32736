"""Changes to a scenario from the command line: ``--set docroot.files=5000``.

They change the plain values before the models see them: an override can do what the file can, and
no more.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from replayer.paths import exists, is_file, is_folder
from replayer.scenario.document import (
    Key,
    Origin,
    ScenarioError,
    YamlDocument,
    nearest_hint,
    parse_fragment,
)
from replayer.scenario.manifests import MANIFEST_ENDINGS
from replayer.scenario.model import Dataset, Scenario
from replayer.trace.shipped import shipped_traces

SCRIPT = ("script", "file")
WITH = ("script", "with")
"""Where nothing means something: that lines with a word are left out."""
TOP = tuple(field.alias or name for name, field in Scenario.model_fields.items())


def apply_overrides(document: YamlDocument, overrides: Sequence[str]) -> YamlDocument:
    """Return the document with ``KEY.KEY=VALUE`` applied in order; values are YAML.

    Raises:
        ScenarioError: An override has no ``=``, is no YAML or leads nowhere; the message names the
        option.
    """
    for override in overrides:
        document = _apply(document, override)
    return document


def names_file(override: str) -> bool:
    """Whether an override has a file read that does not come with the program, wherever it is.

    Raises:
        ScenarioError: It is no YAML.
    """
    dotted, _, text = override.partition("=")
    names = tuple(dotted.strip().split("."))
    value = parse_fragment(text, f"--set {override}")
    return any(_leads_away(key, found) for key, found in _texts(names, value))


def _texts(key: Key, value: object) -> Iterator[tuple[Key, str]]:
    if isinstance(value, str):
        yield key, value
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    for part, inner in inside.items() if isinstance(inside, dict) else ():
        yield from _texts((*key, part), inner)


def _leads_away(key: Key, value: str) -> bool:
    match key[-1]:
        case "manifest":
            return value.endswith(MANIFEST_ENDINGS) or "/" in value or exists(Path(value))
        case "trace" | "replay":
            return value not in shipped_traces()
        case _:
            return key[-1] == "tar" or key[-2:] == SCRIPT


def _apply(document: YamlDocument, override: str) -> YamlDocument:
    option = f"--set {override}"
    dotted, equals, text = override.partition("=")
    names = dotted.strip().split(".")
    if not equals or not all(names):
        hint = "for example --set users.count=4 or --set docroot.files=5000"
        raise ScenarioError(option, "must be KEY=VALUE", hint=hint)
    if names == ["include"]:
        message = "include cannot be set: included files are inserted first"
        raise ScenarioError(option, message, hint="write a file that includes it")
    key = _resolve(document, names, option)
    value = _rooted(key, parse_fragment(text, option))
    changed = _with(document.value, key, value, option)
    origins = {k: v for k, v in document.origins.items() if k[: len(key)] != key}
    return YamlDocument(_without_other_sources(changed, key), {**origins, key: Origin(option)})


def _resolve(document: YamlDocument, names: list[str], option: str) -> Key:
    """Return the full key; the word ``datasets`` may be left out."""
    if names[0] in TOP:
        return _numbered(names, document.value)
    datasets = document.value.get("datasets") if isinstance(document.value, dict) else None
    known = list(datasets) if isinstance(datasets, dict) else []
    if names[0] in known:
        return ("datasets", *names)
    hint = nearest_hint(names[0], [*TOP, *known], kind="keys")
    raise ScenarioError(
        option, f"{names[0]} is neither a key nor a dataset of the scenario", hint=hint
    )


def _numbered(names: list[str], value: object) -> Key:
    """Turn the names that count items of a list into numbers."""
    key: Key = ()
    for name in names:
        inside = isinstance(value, list) and name.isdecimal() and int(name) < len(value)
        part = int(name) if inside else name
        key = (*key, part)
        try:
            value = value[part]  # type: ignore[index]
        except (KeyError, TypeError, IndexError):
            value = None
    return key


def _with(value: object, key: Key, new: object, option: str, around: Key = ()) -> object:
    """Return a value that has something new where a key leads; nothing takes the key away."""
    if not key:
        return new
    first, rest = key[0], key[1:]
    if isinstance(value, list):
        index = int(first) if str(first).isdecimal() else -1
        if not 0 <= index < len(value):
            raise ScenarioError(option, f"{first} is not an index of a list of {len(value)}")
        return [
            _with(item, rest, new, option, (*around, first)) if i == index else item
            for i, item in enumerate(value)
        ]
    if value is None or isinstance(value, dict):
        inside = value or {}
        # Inside of others only the models know which keys there may be: what is not there stays.
        is_known = not around or first in inside
        if new is None and not rest and is_known and around[-2:] != WITH:
            return {name: held for name, held in inside.items() if name != first}
        return {**inside, first: _with(inside.get(first), rest, new, option, (*around, first))}
    raise ScenarioError(option, f"{first} is below a single value, which is not a mapping")


def _rooted(key: Key, value: object) -> object:
    """Make paths of the command line relative to the current directory, not to the scenario."""
    if isinstance(value, dict):
        return {name: _rooted((*key, name), inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rooted((*key, index), inner) for index, inner in enumerate(value)]
    if isinstance(value, str) and _is_path(key, value):
        return str(Path(value).expanduser().absolute())
    return value


def _is_path(key: Key, value: str) -> bool:
    """Whether a value names a file; manifests, scripts and traces may lie beside the scenario."""
    if key[0] == "datasets" and key[-1] == "tar":
        return True
    if key[0] == "datasets" and key[-1] == "manifest":
        return "/" in value or exists(Path(value))
    if key[0] not in {"transactions", "sequences"}:
        return False
    if key[-2:] == SCRIPT:
        return is_file(Path(value).expanduser())
    return key[-1] in {"trace", "replay"} and is_folder(Path(value).expanduser())


def _without_other_sources(value: object, key: Key) -> object:
    """Let the source of a dataset replace the one it had, with all that shaped it."""
    depth = len(("datasets", "NAME", "SOURCE"))
    if len(key) != depth or key[0] != "datasets" or key[2] not in Dataset.SOURCES:
        return value
    shape = () if key[2] == "files" else Dataset.SHAPE
    gone = {*Dataset.SOURCES, "part", *shape} - {key[2]}
    datasets = dict(value["datasets"])  # type: ignore[index]
    if datasets[key[1]].get(key[2]) is None:  # it was taken away
        return value
    datasets[key[1]] = {k: v for k, v in datasets[key[1]].items() if k not in gone}
    return {**value, "datasets": datasets}  # type: ignore[dict-item]
