"""How long pauses must be for a replay to take as long as a command."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.errors import ReplayerError
from replayer.run.fitting import LEAST_PERCENT, solve
from replayer.trace.facts import MOST_PERCENT


@given(
    asap_ns=st.integers(1_000_000, 10**9),
    pauses_ns=st.integers(1_000, 10**9),
    wanted_ns=st.integers(1_000_000, 2 * 10**9),
)
def test_pauses_one_after_the_other_are_found(asap_ns: int, pauses_ns: int, wanted_ns: int) -> None:
    def closed(percent: int) -> int:
        return asap_ns + pauses_ns * percent // 100

    if asap_ns > 1.1 * wanted_ns:
        with pytest.raises(ReplayerError, match="no time is left for pauses"):
            solve(closed, asap_ns, wanted_ns)
        return
    percent = solve(closed, asap_ns, wanted_ns)
    assert LEAST_PERCENT <= percent <= MOST_PERCENT
    if LEAST_PERCENT < percent < MOST_PERCENT and pauses_ns > asap_ns // 100:
        step_ns = pauses_ns / 100
        assert abs(closed(percent) - wanted_ns) <= max(0.01 * wanted_ns, step_ns)


@given(st.lists(st.floats(0.7, 1.4), min_size=8, max_size=8), st.integers(105, 400))
def test_times_that_vary_still_end_with_the_best_that_was_tried(
    noise: list[float], wanted_ms: int
) -> None:
    """Threads overlap and machines are noisy: what counts is what was seen."""
    seen: dict[int, int] = {}

    def closed(percent: int) -> int:
        seen[percent] = int((100_000_000 + 1_000_000 * percent) * noise[len(seen)])
        return seen[percent]

    wanted_ns = wanted_ms * 1_000_000
    try:
        best = solve(closed, 100_000_000, wanted_ns)
    except ReplayerError:
        assert max(seen.values()) <= 100_000_000
        return
    assert abs(seen[best] - wanted_ns) == min(abs(each - wanted_ns) for each in seen.values())


def test_file_calls_that_take_as_long_as_the_command_leave_next_to_no_pauses() -> None:
    tried = []

    def closed(percent: int) -> int:
        tried.append(percent)
        return 105

    assert solve(closed, 104, 100) == 1
    assert tried == [1]


def test_a_trace_without_pauses_is_refused() -> None:
    with pytest.raises(ReplayerError, match="no pauses to fit"):
        solve(lambda percent: 50 + 0 * percent, 50, 100)
