"""The names of the modules of this room."""

import sys
from pathlib import Path

import replayer.locust


def test_no_module_hides_one_of_the_standard_library() -> None:
    # Locust puts the folder of a locustfile in front of sys.path while it imports the file.
    names = {path.stem for path in Path(replayer.locust.__file__).parent.glob("*.py")}
    assert not names & sys.stdlib_module_names
