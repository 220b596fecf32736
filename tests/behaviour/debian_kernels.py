"""Kernels of Debian's packages, and an emulated machine that boots them."""

import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["CANNOT_BOOT", "Kernel", "Packages", "boot"]

SUITES = ("bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports", "sid")
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
IMAGE = re.compile(r"linux-image-((\d+)\.(\d+)\.(\d+)\S*)-cloud-amd64")
QEMU = "qemu-system-x86_64"
NEEDS = {QEMU: "qemu-system-x86", "busybox": "busybox-static", "apt-get": "apt", "cargo": "Rust"}
CANNOT_BOOT = ", ".join(
    f"{program} ({package}) is missing"
    for program, package in NEEDS.items()
    if shutil.which(program) is None
)
"""Why no other kernel can be booted here; nothing if one can."""
MEMORY = "1G"
CPUS = "2"
CRASH = 3000
"""Characters of what a crashed kernel said last that are shown."""
BOOTED = "the script begins"
FIRST = f"""\
#!/bin/sh
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mkdir /tmp/out
echo "{BOOTED}" >/dev/console
sh /work >/tmp/out/said 2>&1
echo $? >/tmp/out/code
stty -F /dev/ttyS1 raw
tar cf - -C /tmp/out . >/dev/ttyS1
poweroff -f
"""


@dataclass(frozen=True, order=True)
class Kernel:
    """A package with a kernel that has most drivers built in."""

    series: tuple[int, int]
    patch: int
    release: str
    package: str

    @classmethod
    def of(cls, package: str) -> Self | None:
        """Read the name of a package; None if it is another one."""
        found = IMAGE.fullmatch(package)
        if found is None:
            return None
        major, minor, patch = map(int, found.group(2, 3, 4))
        return cls((major, minor), patch, found[1], package)

    def __str__(self) -> str:
        return ".".join(map(str, self.series))


class Packages:
    """What apt can get of Debian's suites, with lists of its own: the machine's stay as they are.

    Attributes:
        trouble: What apt complained of last.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for part in ("state/lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        mirror = _mirror()
        signed = f"[signed-by={KEYS}] " if KEYS.exists() else ""
        lines = [f"deb {signed}{mirror} {suite} main\n" for suite in SUITES] if mirror else []
        (folder / "sources.list").write_text("".join(lines))

        self.trouble = self._apt("apt-get", "-qq", "update").stderr if mirror else "no mirror"
        names = self._apt("apt-cache", "pkgnames", "linux-image-").stdout.split()
        found = sorted(kernel for kernel in map(Kernel.of, names) if kernel is not None)
        self._newest = {kernel.series: kernel for kernel in found}

    def newest(self, series: tuple[int, int]) -> Kernel | None:
        """Return the newest kernel of a series, if a suite has one."""
        return self._newest.get(series)

    def fetch(self, kernel: Kernel) -> Path | None:
        """Return the file of a kernel, or None if its package cannot be had."""
        place = self._folder / kernel.release
        for name in (kernel.package, kernel.package.replace("-image-", "-binary-")):
            self.trouble = self._apt("apt-get", "-qq", "download", name).stderr
            for package in self._folder.glob(f"{name}_*.deb"):
                subprocess.run(("dpkg-deb", "-x", package, place), check=True)
                package.unlink()
            # From Linux 6.19 on, the first package depends on the second, which has the file.
            for file in place.rglob("vmlinuz*"):
                return file
        return None

    def _apt(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        options = {
            "Dir::Etc::sourcelist": self._folder / "sources.list",
            "Dir::Etc::sourceparts": os.devnull,
            "Dir::State": self._folder / "state",
            "Dir::Cache": self._folder / "cache",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "APT::Sandbox::User": "root",
            "APT::Architectures": "amd64",
        }
        pairs = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return subprocess.run(
            [program, *pairs, *words],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )


def _mirror() -> str:
    """Return where this machine gets Debian's packages from, or nothing."""
    if shutil.which("apt-get") is None:
        return ""
    words = ("apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)")
    lines = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
    found = (line.split("|") for line in lines)
    return next((uri for origin, label, uri in found if origin == label == "Debian"), "")


def boot(kernel: Path, folder: Path, files: dict[str, Path], work: str) -> Path:
    """Boot a kernel with these files and a script of the shell; return the folder that it left.

    There the script finds ``/tmp/out`` for what is to be kept; ``said`` is what it printed. A
    kernel that crashes before the script begins is booted once more: emulation does that at times.
    """
    root, left = folder / "root", folder / "left"
    for part in ("proc", "sys", "dev", "tmp", "bin"):
        (root / part).mkdir(parents=True)
    for name, file in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    subprocess.run(("busybox", "--install", root / "bin"), check=True)
    (root / "init").write_text(FIRST)
    (root / "init").chmod(0o755)
    (root / "work").write_text(work)
    listed = subprocess.run(("find", "."), cwd=root, capture_output=True, check=True).stdout
    packed = subprocess.run(
        ("busybox", "cpio", "-o", "-H", "newc"),
        cwd=root,
        input=listed,
        capture_output=True,
        check=True,
    ).stdout
    (folder / "initramfs").write_bytes(packed)
    if not _run(kernel, folder):
        _run(kernel, folder)
    console = (folder / "console").read_text(errors="replace")
    assert tarfile.is_tarfile(folder / "left.tar"), f"it crashed: {console[-CRASH:]}"
    with tarfile.open(folder / "left.tar") as packed_files:
        packed_files.extractall(left, filter="data")
    return left


def _run(kernel: Path, folder: Path) -> bool:
    """Boot a kernel once; return whether the script began."""
    # Without cx16: its emulation in QEMU 7.2 lets Linux 6.18 crash at times. Without it, Linux 6.19
    # has memory for what a probe keeps of a task only where its allocator is checked.
    words = (
        *(QEMU, "-accel", "tcg", "-cpu", "max,-cx16", "-m", MEMORY, "-smp", CPUS, "-no-reboot"),
        *("-display", "none", "-monitor", "none", "-nic", "none"),
        *("-serial", f"file:{folder / 'console'}", "-serial", f"file:{folder / 'left.tar'}"),
        *("-kernel", kernel, "-initrd", folder / "initramfs"),
        *("-append", "console=ttyS0 panic=-1 rdinit=/init slub_debug=F"),
    )
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=600)
    return BOOTED in (folder / "console").read_text(errors="replace")
