import runpy
from pathlib import Path

import pytest

from replayer.load.people import place_of, put

FILES = {
    "broken.py": ("x = 1\ndef (:\n", "SyntaxError: invalid syntax", 2),
    "lost.py": ("\nimport no_such_module\n", "ModuleNotFoundError: No module named", 2),
    "deep.py": ("import json\njson.loads('[')\n", "json.decoder.JSONDecodeError: Expecting", 2),
    "done.py": ("\n\nraise SystemExit(0)\n", "SystemExit: 0", 3),
}


@pytest.mark.parametrize("name", FILES)
def test_the_innermost_line_of_a_persons_own_file_is_named(tmp_path: Path, name: str) -> None:
    text, words, line = FILES[name]
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises((Exception, SystemExit)) as raised:
        runpy.run_path(str(file))
    # The test's own lines are a person's too, but further out.
    assert place_of(raised.value) == f"{file}:{line}"
    assert put(raised.value).startswith(words)


def test_what_libraries_raise_by_themselves_has_no_place() -> None:
    assert place_of(ValueError("never raised")) is None
