"""Locust drives and the engine works: users, ramp-up and stop here, native threads there.

Importing Locust patches the standard library for gevent, so it is imported when it is asked for
and not before: ``from replayer.locust import FileUser`` is for locustfiles.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replayer.locust.users import FileUser, ScenarioUser

__all__ = ["LOCUSTFILE", "FileUser", "ScenarioUser"]

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
"""What ``locust -f`` is given."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - see PEP 562
    if name not in {"FileUser", "ScenarioUser"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from replayer.locust import listeners, users  # noqa: PLC0415 - see above

    listeners.register()
    return getattr(users, name)
