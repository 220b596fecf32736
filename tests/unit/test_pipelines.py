"""The examples for pipelines: valid for who reads them, and every command line is one of ours."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from replayer import cli
from replayer.run.options import Settings, parse_run_time
from replayer.run.results import check_thresholds
from replayer.run.targets import parse_targets
from replayer.run.workload import make_workload

PIPELINES = Path(__file__).parents[2] / "scenarios" / "pipelines"
GITHUB = PIPELINES / "github-actions.yml"
GITLAB = PIPELINES / "gitlab-ci.yml"
KUBERNETES = PIPELINES / "kubernetes-job.yaml"
ENDS = {"|", ">", ">>", "<", "&&", "||", ";", "&"}


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each call of replayer in a shell script, without its redirections."""
    for line in text.splitlines():
        words = shlex.split(line)
        if words[:1] == ["replayer"]:
            end = next((at for at, word in enumerate(words) if word in ENDS), len(words))
            yield words[1:end]


def lines_of(path: Path) -> list[list[str]]:
    """Return every command line of an example."""
    if path == KUBERNETES:
        (container,) = job()["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["replayer"]
        return [container["args"]]
    document = yaml.safe_load(path.read_text())
    if path == GITHUB:
        steps = document["jobs"]["measure"]["steps"]
        scripts = [step["run"] for step in steps if "run" in step]
    else:
        scripts = [*document["file-system"]["script"], *document["file-system"]["after_script"]]
    return [words for script in scripts for words in commands(script)]


def job() -> Any:  # noqa: ANN401 - YAML
    return next(
        each for each in yaml.safe_load_all(KUBERNETES.read_text()) if each["kind"] == "Job"
    )


@pytest.mark.parametrize(
    ("path", "schema"), [(GITHUB, "vendor.github-workflows"), (GITLAB, "vendor.gitlab-ci")]
)
def test_a_pipeline_keeps_to_the_schema_of_who_runs_it(path: Path, schema: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_job_is_one_that_kubernetes_takes() -> None:
    documents = list(yaml.safe_load_all(KUBERNETES.read_text()))
    assert [each["kind"] for each in documents] == ["PersistentVolumeClaim", "Job"]
    for document in documents:
        kubernetes_validate.validate(document, "1.31", strict=True)


def test_no_example_installs_a_package_of_our_name_from_the_index() -> None:
    root = PIPELINES.parents[1]
    documents = [*PIPELINES.iterdir(), *root.glob("*.md"), root / "Dockerfile"]
    installs = [
        line
        for path in documents
        for line in path.read_text().splitlines()
        if "pip install" in line
    ]
    assert any("./vendor/replayer" in line for line in installs)
    assert [line for line in installs if re.search(r"pip install.*\sreplayer\b", line)] == []


@pytest.mark.parametrize("path", [GITHUB, GITLAB, KUBERNETES], ids=lambda path: path.stem)
def test_every_command_line_is_one_that_the_program_takes(path: Path) -> None:
    lines = lines_of(path)
    assert lines
    for words in lines:
        arguments = cli.parse_words(words)
        assert arguments.command == words[0]


@pytest.mark.parametrize("path", [GITHUB, GITLAB, KUBERNETES], ids=lambda path: path.stem)
def test_thresholds_are_on_what_the_run_will_have(path: Path) -> None:
    (words,) = [words for words in lines_of(path) if words[0] == "run"]
    arguments = cli.parse_words(words)
    arguments.results, arguments.command_line = "none", []
    arguments.num_users = int(arguments.users)
    arguments.run_time = parse_run_time(arguments.run_time)
    settings = Settings.read(arguments)
    assert settings.thresholds
    workload = make_workload(settings, 1)
    check_thresholds(workload, parse_targets(settings.targets), workload.plan.transactions)


def test_reports_are_made_of_the_folder_that_the_run_writes() -> None:
    for path in (GITHUB, GITLAB):
        run, *reports = lines_of(path)
        folder = run[run.index("-o") + 1]
        assert reports
        assert all(words[:2] == ["report", folder] for words in reports)
