"""What a load shape returns, and whether Locust can make a load of it."""

import math
from fractions import Fraction
from typing import Any

import pytest
from locust import LoadTestShape, User
from locust.env import Environment

from replayer.locust.failures import ShapeWatch


class Reader(User):
    """Takes part."""


class Writer(User):
    """Does not."""


class Told(LoadTestShape):
    """Wants what it is told to."""

    def __init__(self, wanted: object) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # of Locust
        self._wanted = wanted

    def tick(self) -> Any:  # noqa: ANN401 - mistakes among it
        return self._wanted


def asked(wanted: object) -> tuple[object, tuple[str, ...]]:
    """Return what Locust is given of what a shape wants, and what is noted."""
    shape = Told(wanted)
    watch = ShapeWatch(Environment(user_classes=[Reader], shape_class=shape))
    return shape.tick(), tuple(found.raised for found in watch.found)


@pytest.mark.parametrize(
    "wanted",
    [None, (0, 1), (8, 0.5), [8, 4], (Fraction(8), 4), (8, 4, None), (8, 4, [Reader])],
)
def test_what_a_load_can_be_made_of_is_handed_on(wanted: object) -> None:
    assert asked(wanted) == (wanted, ())


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (8, "(users, spawn_rate) or None"),
        (("8", 4), "(users, spawn_rate) or None"),
        ((8, 4, None, None), "(users, spawn_rate) or None"),
        ((-1, 4), "a finite number of users, at least 0"),
        ((math.nan, 4), "a finite number of users, at least 0"),
        ((math.inf, 4), "a finite number of users, at least 0"),
        ((8, 0), "a spawn_rate above 0"),
        ((8, -1), "a spawn_rate above 0"),
        ((8, math.nan), "a spawn_rate above 0"),
        ((8, math.inf), "a spawn_rate above 0"),
        ((8, 4, Reader), "user classes of this run, in a list"),
        ((8, 4, [Writer]), "user classes of this run, in a list"),
        ((8, 4, "Reader"), "user classes of this run, in a list"),
    ],
)
def test_what_no_load_can_be_made_of_ends_the_shape_and_is_noted(wanted: object, says: str) -> None:
    assert asked(wanted) == (None, (f"tick() must return {says}, got {wanted!r}",))
