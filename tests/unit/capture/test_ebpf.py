"""What is said where the kernel refuses the probe."""

from pathlib import Path

import pytest

from replayer.capture import ebpf

REFUSED = RuntimeError("eBPF cannot be used: Operation not permitted", "the capabilities CAP_BPF")


@pytest.mark.parametrize(
    ("lockdown", "says"),
    [
        ("none integrity [confidentiality]\n", "needed: a kernel that is not locked down"),
        ("none [integrity] confidentiality\n", "needed: the capabilities CAP_BPF"),
        (None, "needed: the capabilities CAP_BPF"),
    ],
)
def test_a_kernel_that_is_locked_down_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lockdown: str | None, says: str
) -> None:
    file = tmp_path / "lockdown"
    if lockdown is not None:
        file.write_text(lockdown)
    monkeypatch.setattr(ebpf, "LOCKDOWN", file)
    refusal = ebpf.refusal_of(REFUSED)
    assert str(refusal) == "eBPF cannot be used: Operation not permitted"
    assert (refusal.hint or "").startswith(says)
