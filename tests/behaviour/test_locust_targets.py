"""Users in Python on several targets at once."""

import pytest

from tests.behaviour.shell import Shell

LOCUST = ("-m", "locust")

SLOW = """
from locust import constant, task

from replayer.locust import FileUser


class Slow(FileUser):
    wait_time = constant(1.5)

    @task
    def save(self):
        with self.fs.transaction("save"), self.fs.open("notes", "w") as file:
            file.write(100)
"""


def test_users_in_python_on_several_targets_are_measured_for_as_long_on_each(shell: Shell) -> None:
    (shell.home / "slow.py").write_text(SLOW)
    places = [f"--target={name}={shell.target(name)}" for name in ("a", "b")]
    words = ("-f", "slow.py", "--headless", "-u", "2", "-t", "4s", "--only-summary", *places)
    done = shell.run(*words, "--results", "json", program=LOCUST)
    first, second = (each["overall"] for each in done.document()["summary"]["targets"])
    assert first["measured_s"] == second["measured_s"] >= 4
    assert first["drain_s"] == second["drain_s"]
    (found,) = second["transactions"]
    assert found["rate_per_s"] == pytest.approx(found["count"] / second["measured_s"])


@pytest.mark.parametrize(
    ("users", "are", "hint"),
    [(("-u", "3"), "3 users", "-u 2 or -u 4"), ((), "1 user", "-u 2")],
)
def test_users_in_python_that_targets_cannot_share_evenly_are_refused(
    shell: Shell, users: tuple[str, ...], are: str, hint: str
) -> None:
    (shell.home / "slow.py").write_text(SLOW)
    places = [f"--target={name}={shell.target(name)}" for name in ("a", "b")]
    words = ("-f", "slow.py", "--headless", *users, "-t", "4s", *places)
    done = shell.run(*words, program=LOCUST)
    assert done.code == 2
    assert f"{are} of a locustfile cannot be divided evenly among 2 targets" in done.err
    assert f"hint: {hint}, or run it once for each target" in done.err
    assert not (shell.home / "replayer-runs").exists()
