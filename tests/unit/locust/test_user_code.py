import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from replayer.locust.user_code import place_of, put

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


@pytest.mark.parametrize(
    "place",
    [".local/lib/python3.11/site-packages/locust", "usr/lib/python3/dist-packages/locust"],
)
def test_what_is_installed_anywhere_is_no_persons_own(tmp_path: Path, place: str) -> None:
    file = tmp_path / place / "main.py"
    file.parent.mkdir(parents=True)
    file.write_text("raise SystemExit(0)\n")
    with pytest.raises(SystemExit) as raised:
        runpy.run_path(str(file))
    assert place_of(raised.value) != f"{file}:1"


@pytest.mark.parametrize("way", ["--target", "checkout"])
def test_locust_outside_of_the_usual_places_is_a_library(tmp_path: Path, way: str) -> None:
    package = tmp_path / "locust"
    package.mkdir()
    (package / "__init__.py").touch()
    (tmp_path / "mine.py").touch()
    if way == "--target":
        (tmp_path / "locust-2.0.dist-info").mkdir()
        (tmp_path / "locust-2.0.dist-info" / "METADATA").write_text("Name: locust\nVersion: 2.0\n")
    words = (
        "from replayer.locust import user_code; print(*map(user_code._is_of_people, ['{}', '{}']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", words.format(package / "__init__.py", tmp_path / "mine.py")],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["False", str(way == "checkout")]


def test_what_libraries_raise_by_themselves_has_no_place() -> None:
    assert place_of(ValueError("never raised")) is None
