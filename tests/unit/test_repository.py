"""Rules of the repository that no linter knows."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import replayer

ROOT = Path(__file__).parents[2]
LOCKS = ["requirements.lock", "requirements-dev.lock", "requirements-docs.lock"]
CRATES = 'source = "registry+https://github.com/rust-lang/crates.io-index"'
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
TOP_LEVEL = {
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Dockerfile",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "docs",
    "justfile",
    "mkdocs.yml",
    "pyproject.toml",
    "replayer",
    "requirements-dev.lock",
    "requirements-docs.lock",
    "requirements.lock",
    "scenarios",
    "tests",
    "traces",
}


def _listed_by_git() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def _not_ignored(folder: Path) -> Iterator[Path]:
    """List the files below a folder that no plain pattern of .gitignore names."""
    lines = (ROOT / ".gitignore").read_text().splitlines()
    patterns = [".git", *(line.rstrip("/") for line in lines if line and line[0] != "#")]
    for path in folder.iterdir():
        if any(fnmatch(path.name, pattern) for pattern in patterns):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _not_ignored(path)
        else:
            yield path


def _tracked() -> list[Path]:
    """List the project's files; an unpacked archive and a machine without git have them too."""
    has_git = (ROOT / ".git").exists() and shutil.which("git") is not None
    return [
        path for path in (_listed_by_git() if has_git else _not_ignored(ROOT)) if path.is_file()
    ]


def _sources(*suffixes: str) -> list[Path]:
    return [path for path in _tracked() if path.suffix in suffixes]


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("name", LOCKS)
def test_no_lock_file_names_a_registry(name: str) -> None:
    assert "://" not in (ROOT / name).read_text()


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_a_hash(name: str) -> None:
    pins = re.split(r"\n(?=[a-z])", (ROOT / name).read_text())[1:]
    bare = [pin.splitlines()[0] for pin in pins if "--hash=sha256:" not in pin]
    assert pins
    assert bare == []


def test_crates_come_from_the_public_index_alone() -> None:
    lock = (ROOT / "replayer/native/Cargo.lock").read_text()
    sources = {line for line in lock.splitlines() if line.startswith("source = ")}
    assert sources == {CRATES}


@pytest.mark.parametrize("name", LOCKS)
def test_every_dependency_is_pinned(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed, groups = project["project"]["dependencies"], project["dependency-groups"]
    wanted = {
        "requirements.lock": needed,
        "requirements-dev.lock": needed + groups["dev"],
        "requirements-docs.lock": groups["docs"],  # built by itself, and not by who runs the tests
    }[name]
    names = {re.split(r"[^a-z0-9-]", requirement)[0] for requirement in wanted}
    pinned = set(re.findall(r"(?m)^([a-z0-9-]+)==", (ROOT / name).read_text()))
    assert names - pinned == set()


def test_no_source_file_is_longer_than_600_lines() -> None:
    long = [
        str(path.relative_to(ROOT))
        for path in _sources(".py", ".rs", ".c", ".pyi")
        if len(path.read_text().splitlines()) > MAX_FILE_LINES
    ]
    assert long == []


def test_an_unpacked_archive_holds_the_same_files_as_the_checkout() -> None:
    assert {path for path in _not_ignored(ROOT) if path.is_file()} == set(_tracked())


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in _sources(".py")
        for function in _functions(path)
        if (function.end_lineno or 0) - function.lineno >= MAX_FUNCTION_LINES
    ]
    assert long == []


def test_the_top_level_holds_what_was_agreed() -> None:
    found = {path.relative_to(ROOT).parts[0] for path in _tracked()}
    assert {name for name in found if not name.startswith(".")} - TOP_LEVEL == set()


def test_ci_runs_the_test_command_of_the_readme() -> None:
    block = re.search(r"<!-- tests -->\n```sh\n(.*?)\n```", (ROOT / "README.md").read_text())
    assert block is not None
    assert block[1] in (ROOT / ".ci/run").read_text().splitlines()


def test_the_readme_names_the_script_of_what_takes_long() -> None:
    script = ROOT / ".ci/nightly"
    assert "`.ci/nightly`" in (ROOT / "README.md").read_text()
    assert "tests/run.sh nightly" in script.read_text()
    assert os.access(script, os.X_OK)


def test_the_oldest_rust_is_the_same_everywhere() -> None:
    workspace = tomllib.loads((ROOT / "replayer/native/Cargo.toml").read_text())["workspace"]
    oldest = {workspace["package"]["rust-version"]}
    readme = re.findall(r"Rust that is there, ([\d.]+) or later", (ROOT / "README.md").read_text())
    script = re.findall(r"MINIMUM_RUST=(\d+)", (ROOT / "tests/run.sh").read_text())
    assert oldest == {*readme} == {f"1.{minor}" for minor in script}


def test_the_package_carries_the_scenarios() -> None:
    shipped = Path(replayer.__file__).parent / "scenarios"
    assert {path.name for path in shipped.glob("*.yaml")} == {
        path.name for path in (ROOT / "scenarios").glob("*.yaml")
    }
    assert list(shipped.glob("*.yaml"))
