"""Progress of a baseline, in the display of runs: what each job did so far, and the time left."""

from collections.abc import Sequence

from replayer.fio import Gain, JobFile, processes_at_once
from replayer.measure import format_time_ns
from replayer.run.ledger import Ledger
from replayer.run.progress import Tick, make_progress

__all__ = ["JobProgress"]


class JobProgress:
    """Tells a person how far it is."""

    def __init__(self, targets: Sequence[str], *, quiet: bool) -> None:
        self._targets = tuple(targets)
        self._progress = make_progress(quiet=quiet)
        self._ledger = Ledger()
        self._phase = ""
        self._target = 0
        self._users = 0

    def announce(self, name: str, expected_s: float | None) -> None:
        """Say what comes and how long it takes."""
        long = (
            "as long as the work takes"
            if expected_s is None
            else f"at least {format_time_ns(expected_s * 1e9)}, and the time to lay out files"
        )
        self._progress.say(f"fio: {name}: {long}")

    def begin(self, phase: str, target: int, file: JobFile) -> None:
        """A turn begins."""
        self._phase, self._target = phase, target
        self._users = processes_at_once(file)
        self._ledger.begin_turn()
        self.lay_out(0)

    def lay_out(self, size_bytes: int) -> None:
        """Show that files are laid out, and how much was written of them."""
        self._tick(None, size_bytes)

    def show(self, gains: list[Gain], left_s: float | None) -> None:
        """Show what has come."""
        for gain in gains:
            key = gain.key
            if key.op == "transaction":
                place, seconds = (
                    (self._target, key.transaction),
                    gain.span.end_s - gain.span.start_s,
                )
                self._ledger.take(place, gain.histogram, seconds, expected=key.expected)
        self._tick(left_s, None)

    def say(self, text: str) -> None:
        """Say what a person must know at once."""
        self._progress.say(text)

    def close(self) -> None:
        """End the display."""
        self._progress.close()

    def _tick(self, left_s: float | None, laid_out_bytes: int | None) -> None:
        tick = Tick(
            phase=self._phase,
            users=self._users,
            left_s=left_s,
            ledger=self._ledger,
            targets=self._targets,
            laid_out_bytes=laid_out_bytes,
            target=self._target,
        )
        self._progress.tick(tick)
