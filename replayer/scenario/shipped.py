"""Where the scenarios that come with the program are, in a checkout and in an installed package."""

from pathlib import Path

import replayer


def shipped_folder() -> Path:
    """Return the folder that holds the shipped scenarios.

    An installed package has them inside; a checkout has them beside the package.
    """
    package = Path(replayer.__file__).parent
    for folder in (package / "scenarios", package.parent / "scenarios"):
        if any(folder.glob("*.yaml")):
            return folder
    return package / "scenarios"


def shipped_scenarios() -> dict[str, Path]:
    """Return the file of every shipped scenario by its name, in alphabetical order."""
    return {path.stem: path for path in sorted(shipped_folder().glob("*.yaml"))}
