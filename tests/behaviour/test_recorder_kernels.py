"""The probe on other kernels: each is booted in an emulated machine, and records the same program.

What it tells is held against a recording of that program by this machine's kernel, and replayed.
"""

import json
import os
import shlex
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.behaviour.debian_kernels import CANNOT_BOOT, Kernel, Packages, boot
from tests.behaviour.probed import load, needs_probe
from tests.behaviour.shell import Shell, compile_program, make_shell

pytestmark = [
    needs_probe,
    pytest.mark.nightly,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(CANNOT_BOOT), reason=CANNOT_BOOT),
]

NATIVE = Path(__file__).parents[2] / "replayer/native"
OWN = (6, 1)
"""The kernel of the packages' first suite: it must be had."""
OTHERS = ((6, 12), (6, 16), (6, 17), (6, 18), (6, 19))
TOO_OLD = (5, 10)
LEAST = 200
"""Events of the script, but for those of requests."""
TELLS_REQUESTS = (6, 0)
TELLS_PAGES = (6, 11)
PROGRAMS = ("joins", "witness", "requests")
# No folder has two entries when it is listed: file systems have orders of their own.
LAY_OUT = """
mkdir -p r/src/deep/er
for n in 0 1 2 3 4 5; do head -c $((n * 3000)) /dev/zero >r/src/f$n; done
echo leaf >r/src/deep/er/leaf
ln -s f1 r/src/link
ln -s nowhere r/src/dangling
"""
SCRIPT = """
cd r
cat src/f1 src/link >both; echo more >>both; wc -c <both; ls missing; mv both moved; ln moved hard
(cd src && cat f2) >two; test -e src/dangling; exec 5<src/f3 6<&5; cat <&6 | wc -l
mkdir -p a/b/c; rmdir a/b/c; cp -a src/deep copy; find copy | wc -l; rm -r copy
chmod 600 two; touch -d 2020-01-01 two
joins
mkdir calls ring
witness calls ../../account
cd ring; exec requests entered
"""


@dataclass(frozen=True)
class Bench:
    """What is run on each kernel, and what this machine's kernel tells of it.

    Attributes:
        shell: A folder with the programs in ``bin``, and this machine's recording in ``trace``.
        recorder: Records a command without Python.
        libraries: What it is linked with.
    """

    shell: Shell
    recorder: Path
    libraries: tuple[Path, ...]

    @property
    def home(self) -> Path:
        return self.shell.home

    def words(self, path: str | Path) -> list[str]:
        """Return the command that is recorded; its programs are in a folder."""
        return ["busybox", "sh", "-c", f"export PATH={path}\n{SCRIPT}"]

    def boot(self, kernel: Path, folder: Path) -> Path:
        """Record the command on a kernel, and return the folder with what came of it."""
        files = {f"bin/{name}": self.home / "bin" / name for name in (*PROGRAMS, "busybox")}
        files["bin/record"] = self.recorder
        files |= {str(library).lstrip("/"): library for library in self.libraries}
        work = (
            f"mkdir -p {self.home} && mount -t tmpfs none {self.home} && cd {self.home}\n"
            f"{LAY_OUT}\nrecord log.bpf r {shlex.join(self.words('/bin'))}\n"
            "code=$?; cp log.bpf /tmp/out; exit $code\n"
        )
        return boot(kernel, folder, files, work)

    def tell(self, log: Path) -> list[list[str]]:
        """Return what each thread of a recording did, in its order."""
        words = (self.recorder, "tell", self.home, log)
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        told = json.loads(done.stdout)
        assert told["not_understood"] == 0
        threads: list[list[str]] = told["threads"]
        return threads


def build_recorder() -> Path:
    profile = os.environ.get("CARGO_PROFILE", "dev")
    words = ("cargo", "build", "--locked", "--package=replayer-recorder", "--example=record")
    more = (f"--profile={profile}", "--message-format=json")
    done = subprocess.run((*words, *more), cwd=NATIVE, check=True, capture_output=True, text=True)
    built = [json.loads(line) for line in done.stdout.splitlines()]
    (program,) = [made["executable"] for made in built if made.get("executable")]
    return Path(program)


def libraries_of(program: Path) -> tuple[Path, ...]:
    done = subprocess.run(("ldd", program), check=True, capture_output=True, text=True)
    return tuple(Path(word) for word in done.stdout.split() if word.startswith("/"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    shell = make_shell(tmp_path_factory.mktemp("bench"))
    programs = shell.home / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        compile_program(f"{name}.c", programs / name, "-static", "-pthread")
    shutil.copy(shutil.which("busybox") or "", programs / "busybox")
    subprocess.run((programs / "busybox", "--install", programs), check=True)
    built = build_recorder()
    made = Bench(shell, shell.home / "record", libraries_of(built))
    subprocess.run(("strip", "-o", made.recorder, built), check=True)
    subprocess.run(("sh", "-c", LAY_OUT), cwd=shell.home, check=True)
    words = ("capture", "--recorder", "ebpf", "-o", "trace", "--root", "r", "--keep-raw", "--")
    done = shell.run(*words, *made.words(programs))
    assert done.code == 0, done.err
    return made


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(tmp_path_factory.mktemp("packages"))


def fetched(packages: Packages, series: tuple[int, int]) -> tuple[Kernel, Path]:
    kernel = packages.newest(series)
    file = packages.fetch(kernel) if kernel else None
    if kernel is None or file is None:
        why = f"no package of Linux {series[0]}.{series[1]} can be had: {packages.trouble}"
        if series == OWN:
            pytest.fail(why)
        pytest.skip(why)
    return kernel, file


def is_of_requests(deed: str) -> bool:
    """Whether an event may be of a request: those that are made at once end in any order."""
    return "r/ring/" in deed


def is_of_pages(deed: str) -> bool:
    return deed.startswith("mmap_read")


def in_order(threads: list[list[str]]) -> list[list[str]]:
    """Return the events of each thread whose order is no chance.

    There are as many lanes of requests as were made at once, which is chance, too.
    """
    lanes = [any(map(is_of_requests, thread)) for thread in threads]
    kept = [
        [deed for deed in thread if not is_of_requests(deed) and not is_of_pages(deed)]
        for thread in threads
    ]
    return sorted(
        thread
        for thread, is_lane in zip(kept, lanes, strict=True)
        if not is_lane or any(not deed.startswith("exit") for deed in thread)
    )


def of_requests(threads: list[list[str]]) -> Counter[str]:
    return Counter(deed for thread in threads for deed in thread if is_of_requests(deed))


@pytest.mark.parametrize("series", [OWN, *OTHERS], ids=lambda series: ".".join(map(str, series)))
def test_a_kernel_accepts_the_probe_and_tells_the_same_as_this_one(
    bench: Bench, packages: Packages, tmp_path: Path, series: tuple[int, int]
) -> None:
    kernel, file = fetched(packages, series)
    left = bench.boot(file, tmp_path)
    said = (left / "said").read_text()
    print(kernel.release, said)  # noqa: T201 - for who reads the evidence: pytest -rP
    assert (left / "code").read_text() == "0\n", said
    assert "lost: 0\n" in said
    lacks = {
        "requests of io_uring": series < TELLS_REQUESTS,
        "pages of mappings": series < TELLS_PAGES,
    }
    assert {what: f"left out: {what}: " in said for what in lacks} == lacks, said

    own = bench.tell(bench.home / "trace/raw/log.bpf.xz")
    other = bench.tell(left / "log.bpf")
    assert in_order(other) == in_order(own)
    assert sum(map(len, in_order(own))) > LEAST
    assert of_requests(other) == of_requests(own)
    pages = [deed for thread in other for deed in thread if is_of_pages(deed)]
    assert len(pages) == (series >= TELLS_PAGES)

    shell = make_shell(tmp_path)
    tree = bench.home / "trace/raw/tree.tsv.xz"
    words = ("--format", "bpf", "--root", bench.home / "r", "--cwd", bench.home, "--tree", tree)
    assert shell.run("import", left / "log.bpf", "-o", "trace", *words).code == 0
    blind = {"mmap (in part)": 1} if series >= TELLS_PAGES else {"mmap": 1}
    assert load(shell)["blind_spots"] == blind
    replayed = shell.run("replay", "trace", "--target", shell.target(), "--pace", "asap")
    assert replayed.code in (0, 4), replayed.out + replayed.err  # 4: it was too busy to judge times
    assert "100 % as recorded, 0 diverged" in replayed.out


def test_a_kernel_that_is_too_old_is_named(
    bench: Bench, packages: Packages, tmp_path: Path
) -> None:
    kernel, file = fetched(packages, TOO_OLD)
    left = bench.boot(file, tmp_path)
    said = (left / "said").read_text()
    assert (left / "code").read_text() == "1\n", said
    assert f"Linux 5.14 or later with BTF, for x86-64 (this is Linux {kernel.release}" in said
