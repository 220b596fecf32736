"""Who is there: the numbers of the engine's users, and the greenlets that stand for them.

A greenlet of Locust takes a slot, starts the native thread of its number and waits; the engine
works on its own. A number is free again when its thread has ended.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gevent.event import Event

from replayer._native import Engine
from replayer.errors import OutsideError, ReplayerError

MOST_REFUSALS = 10


@dataclass(eq=False)
class UserSlot:
    """One user's place."""

    number: int
    user: object
    ended: Event = field(default_factory=Event)
    """Set when the native thread has ended, or was given up."""


class UserRegistry:
    """The slots of a run."""

    def __init__(self, engine: Engine, numbers: Sequence[int], capacity: int) -> None:
        self._engine = engine
        self._free = list(numbers)
        """Of users that are seated here, ascending; others may be seated by other workers."""
        self._slots: dict[int, UserSlot] = {}
        self._closed = False
        self._opened = Event()
        self.capacity = capacity
        """How many users the plan is made for."""
        self.refusals: list[ReplayerError] = []

    def __len__(self) -> int:
        return len(self._slots)

    def check(self) -> None:
        """Refuse to go on with fewer users than were asked for.

        Raises:
            ReplayerError: The plan or the system had no place for some.
        """
        if self.refusals:
            raise self.refusals[0]

    def take(self, user: object) -> UserSlot | None:
        """Give a user the lowest free number; None when there are no more, or all has ended."""
        if self._closed:
            return None
        if not self._free:
            message = f"the plan has {self.capacity} users, and more were requested"
            hint = "set -u to the largest number of users, as of a load shape"
            self.refuse(ReplayerError(message, hint=hint))
            return None
        slot = UserSlot(heapq.heappop(self._free), user)
        self._slots[slot.number] = slot
        return slot

    def open(self) -> None:
        """Let users begin: from now on it is said what their calls count as."""
        self._opened.set()

    def wait_until_open(self) -> None:
        """Wait until the run's first segment has begun."""
        self._opened.wait()

    def close(self) -> None:
        """Give no slot any more: Locust begins users anew here when another worker has left."""
        self._closed = True

    def refuse(self, error: ReplayerError) -> None:
        """Remember why a user could not begin; the first few tell it all."""
        if len(self.refusals) < MOST_REFUSALS:
            self.refusals.append(error)

    def refuse_thread(self, slot: UserSlot, error: OSError) -> None:
        """Remember that the system gave a user no thread, and take its slot back."""
        message = f"user {slot.number} got no thread: {error.strerror or error}"
        hint = "raise the limits (ulimit -u, pids.max of the cgroup), or use fewer users (-u)"
        self.refuse(OutsideError(message, hint=hint))
        self.finish([slot.number])

    def user_of(self, number: int) -> object | None:
        """Return the user that has a number now."""
        slot = self._slots.get(number)
        return slot.user if slot else None

    def stop(self, slot: UserSlot) -> None:
        """Let a user finish its transaction."""
        self._engine.stop_user(slot.number)

    def cancel(self, slot: UserSlot) -> None:
        """End a user before its next call."""
        if not slot.ended.is_set():
            self._engine.cancel_user(slot.number)

    def finish(self, numbers: Iterable[int]) -> None:
        """Wake the greenlets of threads that have ended; their numbers are free again."""
        for number in numbers:
            slot = self._slots.pop(number, None)
            if slot:
                heapq.heappush(self._free, number)
                slot.ended.set()

    def give_up(self, numbers: Iterable[int]) -> None:
        """Wake the greenlets of threads that hang; their numbers stay taken."""
        for number in numbers:
            slot = self._slots.pop(number, None)
            if slot:
                slot.ended.set()
