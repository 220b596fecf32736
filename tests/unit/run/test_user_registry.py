"""Slots of users, with a real engine behind them."""

from pathlib import Path

from locust import User
from locust.env import Environment

from replayer._native import Engine, Plan, Sandbox
from replayer.plan.compile import compile_plan
from replayer.run.user_registry import UserRegistry
from replayer.scenario.loading import parse_scenario

SCENARIO = """
name: looks
duration: 1s
users: {count: 2}
mix: {look: 1}
datasets:
  files: {files: 1, sizes: 1KiB}
transactions:
  look:
    - stat: {from: files}
"""


def test_nobody_is_seated_any_more_when_all_has_ended(tmp_path: Path) -> None:
    """Locust begins users anew on a worker that has closed when another one leaves."""
    plan = Plan(compile_plan(parse_scenario(SCENARIO, "a test")).document())
    sandbox = Sandbox.create(str(tmp_path), "roster", "{}")
    sandbox.lay_out(plan, 1).result()
    engine = Engine(plan, [[sandbox]])
    registry = UserRegistry(engine, [0, 1], 2)
    slot = registry.take(User(Environment()))
    assert slot is not None
    engine.close()
    registry.close()
    assert registry.take(User(Environment())) is None
    assert len(registry) == 1
    registry.check()  # nothing was refused
