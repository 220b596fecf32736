"""The former name of ``replayer.locust``: locustfiles that import ``FileUser`` from here go on."""

from replayer.locust import FileUser, ScenarioUser

__all__ = ["FileUser", "ScenarioUser"]
