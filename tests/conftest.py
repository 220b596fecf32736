"""Profiles of the property tests, wherever they are."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A fresh folder is made inside of every example, so that fixtures may be shared by all.
EVERY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("default", EVERY, max_examples=10, derandomize=True)
settings.register_profile("nightly", EVERY, max_examples=100, print_blob=True)
settings.register_profile("long", EVERY, max_examples=2000, print_blob=True)


def pytest_configure() -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A long run takes its time."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "long":
        for item in items:
            item.add_marker(pytest.mark.timeout(0))
