"""How often a wait for workers is told of."""

from replayer.cluster.worker_pool import Reminder

POLLS_PER_S = 10


def told(counts: dict[int, int], until_s: int) -> list[tuple[float, int]]:
    """Return when which count is told, where counts are those from a second on."""
    reminder, count, found = Reminder(0.0), 0, []
    for poll in range(until_s * POLLS_PER_S):
        now_s = poll / POLLS_PER_S
        count = counts.get(int(now_s), count)
        if reminder.is_due(count, now_s):
            found.append((now_s, count))
    return found


def test_a_wait_that_does_not_get_on_is_told_of_ever_more_rarely() -> None:
    moments = [now_s for now_s, _ in told({}, 2000)]
    assert moments == [5, 15, 35, 75, 155, 315, 615, 915, 1215, 1515, 1815]


def test_a_new_number_is_told_at_once_and_begins_anew() -> None:
    found = told({0: 0, 1: 1, 40: 2, 41: 3}, 70)
    assert found == [(5, 1), (15, 1), (35, 1), (40, 2), (41, 3), (51, 3)]


def test_many_that_come_at_once_are_told_of_once_a_second() -> None:
    reminder = Reminder(0.0)
    found = [reminder.is_due(count, 10 + count / 100) for count in range(301)]
    assert sum(found) == 4


def test_workers_that_are_there_soon_are_not_told_of() -> None:
    assert told({0: 0, 1: 1, 2: 2, 3: 3}, 5) == []
