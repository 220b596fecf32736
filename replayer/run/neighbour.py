"""A neighbour as it was asked for: the load that runs beside the measured one, and its rate.

It is checked before anything is made. Its processes are next door (``neighbour_process``).
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from replayer.errors import ReplayerError
from replayer.measure.neighbour import say_neighbour
from replayer.run.own_command import ENDLESS, FIRST_THREADS, arriving

if TYPE_CHECKING:
    from replayer.scenario.model import Scenario


@dataclass(frozen=True)
class NeighbourOrder:
    """What was asked for."""

    scenario: str
    rate: str | None
    """Arrivals, such as ``20/s``; None: as the scenario says."""

    @property
    def name(self) -> str:
        """What settings beside it are called after."""
        return Path(self.scenario).stem

    @property
    def changes(self) -> tuple[str, ...]:
        """``KEY=VALUE`` each, laid over its scenario."""
        return ENDLESS if self.rate is None else (*ENDLESS, *arriving(self.rate))


@dataclass(frozen=True)
class CheckedNeighbour:
    """One that can run."""

    order: NeighbourOrder
    rate_per_s: float | None
    users: int

    @property
    def says(self) -> str:
        """Its name, with its rate if that was given."""
        return say_neighbour(self.order.name, self.rate_per_s)


def read_neighbour(text: str) -> NeighbourOrder:
    """Read ``SCENARIO[@RATE]``; what follows the last @ is a rate if it begins with a digit.

    Raises:
        argparse.ArgumentTypeError: It is none, or without a scenario.
    """
    # Only when one is given: the models are slow to import, and help is asked for often.
    from pydantic_core import PydanticCustomError  # noqa: PLC0415

    from replayer.scenario.units import read_rate  # noqa: PLC0415

    scenario, at, rate = text.rpartition("@")
    if not at or not rate[:1].isdigit():
        scenario, rate = text, ""
    if not Path(scenario).stem:
        message = f"must be SCENARIO or SCENARIO@RATE, such as uploads@20/s, got {text!r}"
        raise argparse.ArgumentTypeError(message)
    try:
        if rate:
            read_rate(rate)
    except PydanticCustomError as error:
        raise argparse.ArgumentTypeError(error.message()) from None
    return NeighbourOrder(scenario, rate or None)


def check_neighbour(order: NeighbourOrder) -> CheckedNeighbour:
    """Load and compile its scenario.

    Raises:
        ReplayerError: It cannot be run, or not at a rate.
    """
    from replayer.scenario.loading import load_scenario  # noqa: PLC0415 - see above
    from replayer.scenario.units import read_rate  # noqa: PLC0415

    scenario = load_scenario(order.scenario, order.changes)
    if scenario.roles:
        message = f"--neighbour {order.scenario}: its users have roles, and wait for each other"
        raise ReplayerError(message, hint="a neighbour needs transactions that begin on their own")
    if order.rate is None:
        return CheckedNeighbour(order, None, _first_that_fits(scenario, [scenario.users.count]))
    users = _first_that_fits(scenario, [*_threads(scenario.users.count)])
    return CheckedNeighbour(order, read_rate(order.rate), users)


def _threads(least: int) -> Iterator[int]:
    """Yield how many users may serve arrivals, the most first, down to the scenario's own."""
    users = FIRST_THREADS
    while users > least:
        yield users
        users //= 2
    yield least


def _first_that_fits(scenario: "Scenario", counts: list[int]) -> int:
    """Return the first number of users for which the scenario has files enough.

    Raises:
        ReplayerError: None does.
    """
    from replayer.plan.compile import compile_plan  # noqa: PLC0415 - see above

    *more, last = counts
    for users in more:
        try:
            compile_plan(scenario, users=users)
        except ReplayerError:
            continue
        return users
    compile_plan(scenario, users=last)
    return last
