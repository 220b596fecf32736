"""Why a capture is refused or fails, as far as strace and /proc tell."""

from pathlib import Path

from replayer.errors import EXIT_ENVIRONMENT, EXIT_INCONCLUSIVE, ReplayerError

__all__ = ["LostLogError", "NothingRecordedError", "TracerError", "explain_refusal"]

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
STATUS = Path("/proc/self/status")
CAP_SYS_PTRACE = 19  # linux/capability.h

_OTHERS = "1"  # Yama: only descendants may be traced
_NOBODY = "3"  # Yama: and this cannot be undone without a restart


class TracerError(ReplayerError):
    """Nothing can be recorded here: strace is missing, too old, or not permitted."""

    exit_code = EXIT_ENVIRONMENT


class NothingRecordedError(ReplayerError):
    """The recording is empty."""

    exit_code = EXIT_INCONCLUSIVE


class LostLogError(ReplayerError):
    """What strace writes is gone, or cannot be reached.

    Args:
        path: Where it was.
        reason: What became of it, in words to follow its name.
    """

    exit_code = EXIT_ENVIRONMENT

    def __init__(self, path: Path, reason: str) -> None:
        message = f"{path}: the log {reason}: the recording is lost"
        super().__init__(message, hint="give -o a path on a local disk")


def explain_refusal(said: str) -> TracerError:
    """Return the error for what strace said when it failed."""
    first = said.splitlines()[0] if said else "it exited without a message"
    lowered = said.lower()
    if "no such process" in lowered:
        return TracerError(f"strace could not attach: {first}", hint="the process has ended")
    if "ptrace" in lowered or "not permitted" in lowered or "seize" in lowered:
        return TracerError(f"strace cannot trace here: {first}", hint=_way_out())
    return TracerError(f"strace failed: {first}", hint="test it with: strace -f -o /dev/null true")


def _way_out() -> str:
    status = _read_status()
    scope = YAMA.read_text().strip() if YAMA.exists() else ""
    if status.get("TracerPid", "0") != "0":
        return "this program is traced itself, and a process has only one tracer"
    if scope == _NOBODY:
        return "kernel.yama.ptrace_scope is 3: tracing is disabled until the next boot"
    capable = int(status.get("CapEff", "0"), 16) >> CAP_SYS_PTRACE & 1
    if scope not in ("", "0") and not capable:
        need = "the process is not a child of this command, and " if scope == _OTHERS else ""
        return (
            f"{need}kernel.yama.ptrace_scope is {scope}: run as root, or set sysctl "
            "kernel.yama.ptrace_scope=0"
        )
    if status.get("Seccomp", "0") != "0" or not capable:
        return (
            "in a container, add --cap-add=SYS_PTRACE (and --security-opt seccomp=unconfined on "
            "kernels before 4.8); for a process of another user, run as root"
        )
    return "the kernel or its security module forbids ptrace(2)"


def _read_status() -> dict[str, str]:
    lines = STATUS.read_text().splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name: value.strip() for name, _, value in pairs}
