"""Why the kernel does not let strace trace, as far as /proc tells."""

from pathlib import Path

from replayer.capture.refusal import TracerError

__all__ = ["explain_refusal"]

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
STATUS = Path("/proc/self/status")
CAP_SYS_PTRACE = 19  # linux/capability.h

_OTHERS = "1"  # Yama: only descendants may be traced
_NOBODY = "3"  # Yama: and this cannot be undone without a restart


def explain_refusal(said: str) -> TracerError:
    """Return the error for what strace said when it failed."""
    first = said.splitlines()[0] if said else "it ended without a word"
    lowered = said.lower()
    if "no such process" in lowered:
        return TracerError(f"strace could not attach: {first}", hint="the process has ended")
    if "ptrace" in lowered or "not permitted" in lowered or "seize" in lowered:
        return TracerError(f"strace may not trace here: {first}", hint=_way_out())
    return TracerError(f"strace failed: {first}", hint="try it: strace -f -o /dev/null true")


def _way_out() -> str:
    status = _read_status()
    scope = YAMA.read_text().strip() if YAMA.exists() else ""
    if status.get("TracerPid", "0") != "0":
        return "this program is itself being traced, and nothing can be traced twice"
    if scope == _NOBODY:
        return "kernel.yama.ptrace_scope is 3: tracing is off until the machine starts anew"
    capable = int(status.get("CapEff", "0"), 16) >> CAP_SYS_PTRACE & 1
    if scope not in ("", "0") and not capable:
        need = "the process was not started by this command and " if scope == _OTHERS else ""
        return (
            f"{need}kernel.yama.ptrace_scope is {scope}: run it as root, "
            "or sysctl kernel.yama.ptrace_scope=0"
        )
    if status.get("Seccomp", "0") != "0" or not capable:
        return (
            "in a container, add --cap-add=SYS_PTRACE (and --security-opt seccomp=unconfined on "
            "kernels before 4.8); for a process of another user, run it as root"
        )
    return "the kernel or its security module forbids ptrace(2)"


def _read_status() -> dict[str, str]:
    lines = STATUS.read_text().splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name: value.strip() for name, _, value in pairs}
