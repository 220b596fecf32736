"""Finding and loading the studies that come with the program."""

import difflib

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
    found = []
    for path in (shipped_folder() / "studies").glob("*.yaml"):
        try:
            found.append(Study.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))))
        except (ValidationError, yaml.YAMLError) as error:
            first = str(error).splitlines()[:3]
            message = f"{path.name}: is no study: {' '.join(first)}"
            raise ReplayerError(message) from error
    return tuple(sorted(found, key=lambda study: study.letter))


def load_study(word: str) -> Study:
    """Return a study by its letter or its name.

    Raises:
        ReplayerError: There is none of that name.
    """
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
