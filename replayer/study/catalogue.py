"""Finding and loading the studies that come with the program."""

import difflib
from pathlib import Path

import yaml
from pydantic import ValidationError

from replayer.errors import ReplayerError
from replayer.scenario.shipped import shipped_folder
from replayer.study.model import Study

__all__ = ["load_studies", "load_study"]


def load_studies() -> tuple[Study, ...]:
    """Return all shipped studies, by letter.

    Raises:
        ReplayerError: One of the files was changed and is no study any more.
    """
    found = [_load(path) for path in (shipped_folder() / "studies").glob("*.yaml")]
    return tuple(sorted(found, key=lambda study: study.letter))


def load_study(word: str) -> Study:
    """Return a study by its letter, its name, or its file (``.yaml``).

    Raises:
        ReplayerError: There is none of that name, or the file is none.
    """
    if word.endswith(".yaml"):
        return _load(Path(word))
    studies = load_studies()
    for study in studies:
        if word.upper() == study.letter or word.lower() == study.name:
            return study
    names = [study.name for study in studies]
    near = difflib.get_close_matches(word, names, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(f"{study.letter} ({study.name})" for study in studies)
    message = f"no study {word!r}"
    raise ReplayerError(message, hint=f"{meant}there are: {listed}")


def _load(path: Path) -> Study:
    try:
        return Study.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        message = f"{path}: {error.strerror or error}"
        raise ReplayerError(message) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        message = f"{path}: {place}: {first['msg']}"
        raise ReplayerError(message, hint="see scenarios/studies for studies") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        message = f"{path}: is no YAML: {' '.join(str(error).split())}"
        raise ReplayerError(message) from error
