"""What is written over what files hold already, and makes none of them longer."""

__all__ = ["Rewriting"]


class Rewriting:
    """Follows writes into files that were there before a transaction; amounts are expected ones."""

    def __init__(self) -> None:
        self._done_bytes = 0.0
        self._open: dict[int, list[float]] = {}
        """Of each slot: bytes written, and how many of them fit into what is there."""

    def begin(self, slot: int, size_bytes: float) -> None:
        """A file of this size is open, and its writes begin at its begin."""
        self._open[slot] = [0.0, size_bytes]

    def wrote(self, slot: int, size_bytes: float) -> None:
        """So much was written."""
        if slot in self._open:
            self._open[slot][0] += size_bytes

    def fits(self, slot: int, size_bytes: float) -> None:
        """So much more will be written somewhere within the file."""
        if slot in self._open:
            self._open[slot][1] += size_bytes

    def end(self, slot: int) -> None:
        """The slot has another file, or writes go behind the end of this one."""
        self._done_bytes += min(self._open.pop(slot, [0.0]))

    def finish(self) -> float:
        """Return how many bytes made no file longer."""
        for slot in list(self._open):
            self.end(slot)
        return self._done_bytes
