"""How a plan is refused that a scenario's text alone cannot show to be wrong."""

from replayer.scenario.problems import ScenarioError


class PlanError(ScenarioError):
    """A scenario cannot be compiled for the users, seed and datasets asked for."""
