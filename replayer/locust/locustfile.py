"""The locustfile of ``replayer run``: users of the scenario that ``--scenario`` names.

It is for Locust's own command line too: ``locust -f "$(replayer locustfile)" --scenario FILE``.
"""

from replayer.locust.listeners import register
from replayer.locust.users import ScenarioUser

__all__ = ["ScenarioUser"]

register()
