"""Finds the traces that a scenario names, and judges that they hold what it replays of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from replayer.paths import UnaskablePathError
from replayer.scenario.document import Key
from replayer.scenario.model import Scenario
from replayer.scenario.problems import ScenarioError, nearest_hint
from replayer.scenario.references import refuse
from replayer.scenario.replay_steps import Replay
from replayer.scenario.walk import walk_steps
from replayer.trace import TraceError, TraceFacts, load_facts

__all__ = ["load_traces"]


def load_traces(scenario: Scenario, folder: Path) -> Mapping[str, TraceFacts]:
    """Return the facts of every trace, by the name that the scenario has for it.

    Args:
        scenario: Whose steps are looked through.
        folder: What relative names begin at.

    Raises:
        ScenarioError: There is no such trace, or no such request in it; with file and line.
    """
    found: dict[str, TraceFacts] = {}
    for key, step in _replays(scenario):
        if step.trace not in found:
            found[step.trace] = _load(scenario, key, step.trace, folder)
        _check_request(scenario, key, step, found[step.trace])
    return found


def _replays(scenario: Scenario) -> Iterator[tuple[Key, Replay]]:
    for group in ("transactions", "sequences"):
        for name, steps in getattr(scenario, group).items():
            for key, step in walk_steps(steps, (group, name)):
                if isinstance(step, Replay):
                    yield _written(scenario, key), step


def _written(scenario: Scenario, key: Key) -> Key:
    """Return where a step's operands stand: a transaction may be one step without a list."""
    group, name, *_ = key
    written = scenario.document.value
    value = written.get(group, {}).get(name) if isinstance(written, dict) else None
    return (group, name) if isinstance(value, dict) else (*key, "replay")


def _load(scenario: Scenario, key: Key, name: str, folder: Path) -> TraceFacts:
    try:
        return load_facts(name, folder)
    except (TraceError, UnaskablePathError) as error:
        place = str(scenario.document.origin((*key, "trace")))
        raise ScenarioError(place, str(error), hint=error.hint) from None


def _check_request(scenario: Scenario, key: Key, step: Replay, trace: TraceFacts) -> None:
    if step.request is None or step.request in trace.requests:
        return
    message = f"({step.request}) is no request of the trace {step.trace}"
    hint = nearest_hint(step.request, trace.requests, kind="requests")
    raise refuse(scenario, (*key, "request"), message, hint)
