"""Kernel NFS 4.1 in a guest: a kernel that runs as a process (user-mode-linux) beside this one.

For machines whose kernel has no NFS and that can run no virtual machine. The guest sees this
machine's files, and may write to one folder of them; it ends when its command has.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from tests.mounts.machine import CannotError, call, need_root, needs

__all__ = ["Guest", "boot"]

HERE = Path(__file__).parent / "nfs"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "replayer-tests" / "uml"
PACKAGE = "user-mode-linux"  # of Debian, unpacked and not installed
MEMORY = "3G"
DISK_BYTES = 4 << 30
SPARE_BYTES = 256 << 20
MOUNTS = {
    "nfs-sync": ("/nfs/sync", "/nfs/sync-too"),
    "nfs-async": ("/nfs/async", "/nfs/async-too"),
}


class Guest:
    """A guest that can be booted, once for each command."""

    def __init__(self, folder: Path, kernel: Path) -> None:
        self._folder = folder
        self._kernel = kernel

    def run(self, *words: str | Path, limit_s: float) -> str:
        """Boot, run a command in this process's working directory, and return what it said.

        Raises:
            CannotError: The guest did not come up, or its command failed.
        """
        command = shlex.join(map(str, words))
        path = shlex.quote(os.environ["PATH"])
        there = f"cd {shlex.quote(str(Path.cwd()))}\nexport PATH={path} PYTHONPATH=$PWD\n"
        (self._folder / "work").write_text(f"{there}exec {command}\n")
        said = self._boot(limit_s)
        code = self._folder / "code"
        if not code.exists():
            raise CannotError(f"the guest did not come up: {said[-500:]}")
        out = (self._folder / "out").read_text()
        if code.read_text().strip() != "0":
            raise CannotError(f"in the guest: {out[-2000:]}")
        return out

    def _boot(self, limit_s: float) -> str:
        words = (
            *(self._kernel / "usr/bin/linux.uml", f"mem={MEMORY}", "rootfstype=hostfs"),
            *("rootflags=/", "ro", f"init={self._folder}/nfs/first.sh"),
            *(
                f"ubda={self._folder}/disk",
                f"ubdb={self._folder}/spare",
                f"uml_dir={self._folder}",
                "umid=guest",
            ),
            *("con=null", "con0=null,fd:1", "quiet"),
        )
        done = subprocess.run(
            [str(word) for word in words],
            check=False,
            cwd=self._folder,
            env={**os.environ, "LD_PRELOAD": str(self._kernel / "fill_up.so")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
        return done.stdout


def boot(folder: Path) -> Guest:
    """Get a guest ready in a folder that it may write to."""
    need_root()
    needs("rpc.nfsd", "nfs-kernel-server")
    needs("modprobe", "kmod")
    needs("ip", "iproute2")
    kernel = _kernel()
    shutil.copytree(HERE, folder / "nfs")
    disk = folder / "disk"
    for path, size_bytes in ((disk, DISK_BYTES), (folder / "spare", SPARE_BYTES)):
        with path.open("wb") as file:
            file.truncate(size_bytes)
    call("mkfs.ext4", "-q", "-F", disk)
    modules = kernel / "usr/lib/uml/modules"
    (folder / "nfs" / "settings").write_text(
        f"modules={shlex.quote(str(modules))}\nshared={shlex.quote(str(folder))}\n"
    )
    (folder / "nfs" / "first.sh").chmod(0o755)
    return Guest(folder, kernel)


def _kernel() -> Path:
    """Return where the guest's kernel is unpacked, fetching it once."""
    if not (CACHE / "fill_up.so").exists():
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE.mkdir(parents=True)
        try:
            subprocess.run(
                ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", PACKAGE],
                check=True,
                cwd=CACHE,
                capture_output=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise CannotError(f"the package {PACKAGE} cannot be had") from error
        (package,) = CACHE.glob("*.deb")
        call("dpkg-deb", "-x", package, CACHE)
        package.unlink()
        flags = ("-O2", "-shared", "-fPIC", "-Wno-builtin-declaration-mismatch")
        call("cc", *flags, "-o", CACHE / "fill_up.so", HERE / "fill_up.c")
    return CACHE
