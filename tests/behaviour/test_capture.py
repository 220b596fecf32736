"""``replayer capture`` of commands: real files, and witnesses that know what they did."""

import errno
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from replayer.cli import main
from replayer.measure.units import format_time_ns
from tests.behaviour.probe_records import probed_calls
from tests.behaviour.probed import needs_probe
from tests.behaviour.shell import (
    IS_ROOT,
    Done,
    Shell,
    compile_program,
    forbidding,
    needs_setpriv,
)
from tests.behaviour.strace_lines import whole_lines

HERE = Path(__file__).parent
CALL = re.compile(r"^(\d+) +[\d.]+ (\w+)\(")
RESULT = re.compile(r"= (-?\d+|0x[0-9a-f]+)(?:<.*>)?(?: (E\w+) \(.*\)| /\*.*\*/)?(?: <[\d.]+>)?$")
NOT_ANNOUNCED = {"pipe2", "clone", "wait4", "fork", "vfork", "clone3"}
OP_OF = {
    "openat": "open",
    "pread64": "pread",
    "pwrite64": "pwrite",
    "getdents64": "getdents",
    "unlinkat": "unlink",
}


def load(trace: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads((trace / "trace.json").read_text())


def capture(shell: Shell, *words: str | Path, trace: str = "trace", root: str = "root") -> Done:
    (shell.home / root).mkdir(exist_ok=True)
    return shell.run("capture", "-o", trace, "--root", root, *words)


def records_between_markers(log: Path) -> dict[int, list[tuple[str, int]]]:
    """Return the same of a log of the probe."""
    calls: dict[int, list[tuple[str, int]]] = defaultdict(list)
    inside: set[int] = set()
    for call in probed_calls(log):
        if b"/replayer/request/" in call.data:
            inside ^= {call.task}
        elif call.task in inside and call.name not in NOT_ANNOUNCED:
            calls[call.task].append((call.name, call.result))
    return dict(calls)


def lines_between_markers(log: Path) -> dict[int, list[tuple[str, int]]]:
    """Return the calls of each process between its markers, as (name, result)."""
    calls: dict[int, list[tuple[str, int]]] = defaultdict(list)
    inside: set[int] = set()
    for line in whole_lines(log):
        found = CALL.match(line)
        if found is None:
            continue
        process, name = int(found[1]), found[2]
        if "/replayer/request/" in line:
            inside ^= {process}
        elif process in inside and name not in NOT_ANNOUNCED:
            result = RESULT.search(line)
            assert result is not None, line
            number = int(result[1], 0)
            calls[process].append((name, -getattr(errno, result[2]) if result[2] else number))
    return dict(calls)


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("witness.c", tmp_path_factory.mktemp("witness") / "witness")


Witnessed = tuple[Path, dict[int, list[tuple[str, int]]]]


@pytest.fixture
def witnessed(tmp_path: Path, witness: Path, recorder: str) -> Witnessed:
    shell = Shell(tmp_path)
    account = shell.home / "account"
    done = capture(shell, "--recorder", recorder, "--keep-raw", "--", witness, "root", account)
    assert done.code == 0, done.err
    told: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for line in account.read_text().splitlines():
        process, name, result = line.split()
        told[int(process)].append((name, int(result)))
    return shell.home / "trace", dict(told)


def test_a_log_holds_exactly_the_calls_that_a_witness_says_it_made(
    witnessed: Witnessed, recorder: str
) -> None:
    trace, told = witnessed
    if recorder == "ebpf":
        recorded = records_between_markers(trace / "raw" / "log.bpf.xz")
    else:
        recorded = lines_between_markers(trace / "raw" / "log.strace.xz")
    assert len(told) == 2
    for process, calls in told.items():
        plain = [call for call in recorded[process] if call[0] != "mmap"]
        assert plain == [call for call in calls if call[0] != "mmap"]
    assert Counter(name for name, _ in recorded[min(told)])["mmap"] == 1


def test_a_trace_holds_exactly_the_events_of_a_witness(witnessed: Witnessed, recorder: str) -> None:
    trace, told = witnessed
    document = load(trace)
    counts = document["counts"]
    expected = Counter(OP_OF.get(name, name) for calls in told.values() for name, _ in calls)
    expected -= Counter(["read", "dup", "read", "write"])  # unknown descriptor; state; a pipe's two
    expected += Counter(["chdir", "close_dup", "close_exit"])  # into the root; a child's descriptor
    expected -= Counter(["close"])  # of the duplicate: close_dup
    if recorder == "ebpf":  # a page; the mapping keeps the file open when its descriptor is closed
        expected += Counter(["mmap_read", "close_dup"])
        expected -= Counter(["close"])
    found = Counter(counts["ops"])
    assert found.pop("exit") == len(told)
    assert found - Counter({"close_exit": found["close_exit"] - 1}) == expected
    assert counts["lines_not_understood"] == 0
    assert counts["calls_not_representable"] == {}
    assert counts["calls_with_unknown_file"] == {"read": 1}
    assert counts["errors"] == {"ENOENT": 2, "EEXIST": 1, "ENAMETOOLONG": 1}
    assert document["blind_spots"], "mmap is a blind spot, and is to be named"
    assert [request["label"] for request in document["requests"]].count("witness") == 1


def test_threads_and_children_are_recorded_call_by_call(shell: Shell, recorder: str) -> None:
    done = capture(shell, "--recorder", recorder, "--", sys.executable, HERE / "witness.py", "root")
    assert done.code == 0, done.err
    counts = load(shell.home / "trace")["counts"]
    made = json.loads(done.out)
    assert {op: counts["ops"][op] for op in made} == made
    assert counts["threads"] >= 7
    assert counts["lines_not_understood"] == 0


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ((), "replayer capture of true"),
        (("--note", "a release of the shop"), "a release of the shop"),
    ],
)
def test_a_trace_says_what_it_is_of(shell: Shell, words: tuple[str, ...], note: str) -> None:
    assert capture(shell, *words, "--", "true").code == 0
    assert load(shell.home / "trace")["origin"]["note"] == note
    assert note in shell.run("show", "trace").out


def test_a_command_keeps_its_streams_and_its_exit_status(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ["capture", "-o", "trace", "--root", "root", "--", "sh", "-c"]
    process = subprocess.run(
        [sys.executable, "-m", "replayer", *words, "cat; echo to-stderr >&2; exit 7"],
        cwd=shell.home,
        input=b"through \xff\x00 stdin",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == 7
    assert process.stdout == b"through \xff\x00 stdin"
    assert process.stderr.startswith(b"to-stderr\nreplayer: ")
    assert json.loads((shell.home / "trace/capture.json").read_text())["exit_status"] == 7


def test_what_lies_behind_links_that_lead_out_of_the_root_is_replayed(shell: Shell) -> None:
    root = shell.home / "root"
    root.mkdir()
    (shell.home / "outside.conf").write_text("far away")
    (root / "out").symlink_to(shell.home / "outside.conf")
    script = (
        f"cat root/out; ln -s {shell.home}/outside.conf root/abs; cat root/abs; readlink root/abs"
    )
    assert capture(shell, "--", "sh", "-c", script).code == 0
    done = shell.run("replay", "trace", "--target", shell.target(), "--json")
    results = done.document()["replay"]["results"]
    assert results["diverged"] == []
    assert results["compared"] > 10


COMPUTING = """
import os
for _ in range(500):
    os.stat("root")
    sum(range({numbers}))
print(os.times().user)
"""


def test_the_cpu_time_of_a_command_is_noted_and_bounds_the_pauses_of_strace(shell: Shell) -> None:
    used_ns = []
    for numbers in (0, 50_000):
        program = (sys.executable, "-c", COMPUTING.format(numbers=numbers))
        words = ("--recorder", "strace", "--", *program)
        done = capture(shell, *words, trace=f"trace-{numbers}")
        facts = json.loads((shell.home / f"trace-{numbers}/capture.json").read_text())
        used_ns.append(facts["user_ns"])
        # The kernel tells it in hundredths of a second; the interpreter ends after it has looked.
        assert 0 <= facts["user_ns"] - float(done.out) * 1e9 <= 100_000_000
        calibration = load(shell.home / f"trace-{numbers}")["calibration"]
        assert calibration["most_owed_ns"] == 0
        assert f"{facts['user_ns'] // 10**6} ms of CPU time" in calibration["method"]
        shown = shell.run("show", f"trace-{numbers}").out
        assert (
            f"and {format_time_ns(calibration['gap_ns'])} between calls; pauses are limited"
            in shown
        )
    assert used_ns[1] > 2 * used_ns[0]


def test_a_capture_without_events_says_why(shell: Shell) -> None:
    done = capture(shell, "--", "sh", "-c", "exit 7", root="mistyped")
    assert done.code == 7
    told = re.search(r"trace: contains no event: (\d+) calls are outside the roots\n", done.err)
    assert told is not None, done.err
    assert int(told[1]) == sum(load(shell.home / "trace")["counts"]["calls_out_of_scope"].values())
    assert "hint: give --root as named on the traced machine" in done.err
    assert "show it with" not in done.err


def test_a_signal_that_ends_a_command_is_its_exit_status(shell: Shell) -> None:
    assert capture(shell, "--", "sh", "-c", "kill -TERM $$").code == 128 + 15
    assert (shell.home / "trace/trace.json").exists()


def test_output_that_the_shell_redirects_into_a_root_is_recorded(
    shell: Shell, recorder: str
) -> None:
    (shell.home / "root").mkdir()
    with (shell.home / "root/out").open("wb") as out:
        words = ["capture", "--recorder", recorder, "-o", "trace", "--root", "root"]
        words += ["--", "sh", "-c", "echo 1234"]
        subprocess.run(
            [sys.executable, "-m", "replayer", *words],
            cwd=shell.home,
            stdout=out,
            check=True,
            timeout=60,
        )
    counts = load(shell.home / "trace")["counts"]
    assert counts["ops"]["write"] == 1
    assert counts["bytes_written"] == 5


def test_the_tree_is_that_of_before_and_nothing_of_ours_is_in_it(shell: Shell) -> None:
    root = shell.home / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub/old").write_text("old")
    (root / "sub/link").symlink_to("old")
    words = ("--keep-raw", "--", "sh", "-c", "rm root/sub/old; echo > root/new")
    done = capture(shell, *words, trace="root/trace")
    assert done.code == 0
    assert "is inside the root" in done.err
    assert sorted(path.name for path in root.iterdir()) == ["new", "sub", "trace"]
    packed = (root / "trace/raw/tree.tsv.xz").read_bytes()
    rows = lzma.decompress(packed).decode().splitlines()
    assert rows[0] == "path\ttype\tsize\tmode\tlink"
    assert {row.split("\t")[0] for row in rows[1:]} == {".", "sub", "sub/old", "sub/link"}
    assert "sub/old\tf\t3\t644\t" in rows
    assert "sub/link\tl\t3\t777\told" in rows


def test_several_roots_make_one_trace(shell: Shell) -> None:
    for name in ("from", "root"):
        (shell.home / name).mkdir()
    (shell.home / "from/file").write_text("content")
    assert capture(shell, "--root", "from", "--", "mv", "from/file", "root/file").code == 0
    document = load(shell.home / "trace")
    assert document["counts"]["ops"]["rename"] == 1
    assert document["counts"]["tree_repairs"]["missing_in_manifest"] == 0


def test_what_strace_costs_is_measured_with_every_capture(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/a").write_text("a")
    assert capture(shell, "--recorder", "strace", "--", "cat", "root/a").code == 0
    calibration = load(shell.home / "trace")["calibration"]
    assert "measured at the capture" in calibration["method"]  # too few calls tell it themselves
    assert calibration["call_ns"] > 0
    assert calibration["gap_ns"] > 0


def test_odd_names_are_in_the_tree(shell: Shell) -> None:
    root = shell.home / "root"
    root.mkdir()
    (root / "a\tb\nc\\d").write_text("12345")
    done = capture(shell, "--", "sh", "-c", "cat root/*")
    assert done.code == 0, done.err
    assert "could not be listed" not in done.err
    document = load(shell.home / "trace")
    assert document["tree"]["bytes"] == 5
    assert document["tree"]["inferred"] == 0
    assert document["counts"]["tree_repairs"]["missing_in_manifest"] == 0


def test_a_root_may_be_named_by_a_link(shell: Shell) -> None:
    (shell.home / "real").mkdir()
    (shell.home / "real/a").write_text("12345")
    (shell.home / "link").symlink_to("real")
    done = shell.run("capture", "-o", "trace", "--root", "link", "--", "cat", shell.home / "link/a")
    assert done.code == 0, done.err
    document = load(shell.home / "trace")
    assert document["counts"]["bytes_read"] == 5
    assert [root["name"] for root in document["roots"]] == ["real"]


def test_a_log_over_its_limit_is_cut_and_the_command_goes_on(shell: Shell, recorder: str) -> None:
    script = "import os\nfor n in range(20000): os.access('root', 0)\nprint('done')"
    words = ("--recorder", recorder, "--limit", "200kB", "--", sys.executable, "-c", script)
    done = capture(shell, *words)
    assert (done.code, done.out) == (0, "done\n")
    assert "recording stops" in done.err
    facts = json.loads((shell.home / "trace/capture.json").read_text())
    assert 100_000 < facts["recorder"]["log_bytes"] <= 200_100  # and the record of its end
    assert (facts["recorder"]["cut_bytes"] > 1_000_000) == (recorder == "strace")
    assert load(shell.home / "trace")["counts"]["lines_not_understood"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--root", "root"], "needs either a command"),
        (["--", "true"], "needs at least one --root"),
        (["--root", "/", "--", "true"], "must be a directory below /"),
        (["--root", "tiny.yaml", "--", "true"], "is not a directory"),
        (["--root", "missing", "--", "true"], "No such file or directory"),
        (["--root", "root", "--root", ".", "--", "true"], "one is inside the other"),
        (["--root", "root", "--", "no-such-command"], "command not found"),
        (["--root", "root", "-o", "tiny.yaml", "--", "true"], "already exists"),
        (["--root", "root", "-o", "missing/trace", "--", "true"], "No such file or directory"),
        (["--root", "root", "--limit", "much", "--", "true"], "--limit"),
        (["--root", "root", "-p", "999999999"], "no such process"),
        (["--root", "root", "-p", str(os.getpid())], "would record itself"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_leaves_nothing(
    shell: Shell,
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (shell.home / "root").mkdir()
    before = sorted(shell.home.iterdir())
    monkeypatch.chdir(shell.home)
    assert main(["capture", "-o", "trace", *words]) == 2
    assert said in capsys.readouterr().err
    assert sorted(shell.home.iterdir()) == before


STRACE = ("--recorder", "strace")
WITHOUT_EBPF = ("setpriv", "--bounding-set=-bpf,-sys_admin", "--inh-caps=-all")


def run_with_path(
    shell: Shell, path: str, *before: str | Path, named: tuple[str, ...] = STRACE
) -> subprocess.CompletedProcess[str]:
    (shell.home / "root").mkdir()
    words = ["-m", "replayer", "capture", "-o", "trace", "--root", "root", *named]
    return subprocess.run(
        [*before, sys.executable, *words, "--", "/bin/true"],
        cwd=shell.home,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_without_strace_one_is_told_how_to_install_it(shell: Shell) -> None:
    done = run_with_path(shell, "/nowhere")
    assert done.returncode == 3
    assert "strace was not found" in done.stderr
    assert "apt install strace" in done.stderr
    assert "dnf install strace" in done.stderr


@needs_setpriv
def test_without_ebpf_one_line_says_why_and_what_it_needs_and_strace_records(shell: Shell) -> None:
    before = WITHOUT_EBPF if IS_ROOT else ()
    done = run_with_path(shell, os.environ["PATH"], *before, named=())
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()[0]
    assert said.startswith("replayer: recording with strace: eBPF cannot be used: Operation not")
    assert "needed: the capabilities CAP_BPF and CAP_PERFMON" in said
    facts = json.loads((shell.home / "trace/capture.json").read_text())
    assert facts["recorder"]["name"] == "strace"


@needs_probe
def test_in_a_pid_namespace_strace_records(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ("capture", "-o", "trace", "--root", "root", "--", "ls", "root")
    apart = ("unshare", "--pid", "--fork", "--mount-proc")
    process = shell.start(*words, within=apart)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "recording with strace: eBPF cannot be used: this program is in a PID namespace" in err
    assert "--pid host" in err
    assert load(shell.home / "trace")["counts"]["ops"]["getdents"] == 2


@needs_setpriv
def test_without_ebpf_and_strace_one_is_told_of_both(shell: Shell) -> None:
    setpriv = str(shutil.which("setpriv"))
    before = (setpriv, *WITHOUT_EBPF[1:]) if IS_ROOT else ()
    done = run_with_path(shell, "/nowhere", *before, named=())
    assert done.returncode == 3
    assert "CAP_BPF" in done.stderr
    assert "apt install strace" in done.stderr
    assert not (shell.home / "trace").exists()


@needs_probe
def test_with_ebpf_it_records_without_a_word_and_the_trace_says_so(shell: Shell) -> None:
    done = capture(shell, "--", "ls", "root")
    assert done.code == 0
    assert done.err.startswith(f"replayer: {shell.home}/trace: "), done.err
    assert "recorded with eBPF" in done.err
    facts = json.loads((shell.home / "trace/capture.json").read_text())
    assert facts["recorder"]["name"] == "ebpf"
    assert load(shell.home / "trace")["origin"]["format"] == "bpf"


def test_rehearsals_are_for_strace(shell: Shell) -> None:
    done = capture(shell, "--rehearse", "1", "--", "ls", "root")
    assert done.code == 0
    assert "recording with strace: --rehearse corrects its pauses" in done.err
    facts = json.loads((shell.home / "trace/capture.json").read_text())
    assert facts["recorder"]["name"] == "strace"
    refused = capture(shell, "--recorder", "ebpf", "--rehearse", "1", "--", "true", trace="other")
    assert refused.code == 2
    assert "those of eBPF need no correction" in refused.err


def test_an_old_strace_is_refused_by_its_version(shell: Shell) -> None:
    old = shell.home / "bin/strace"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'strace -- version 5.10'\n")
    old.chmod(0o755)
    done = run_with_path(shell, f"{old.parent}:{os.environ['PATH']}")
    assert done.returncode == 3
    assert "must be at least 5.15, got 5.10" in done.stderr


def test_where_tracing_is_forbidden_one_is_told_why(shell: Shell, tmp_path: Path) -> None:
    program = forbidding(tmp_path, "ptrace", "EPERM")
    done = run_with_path(shell, os.environ["PATH"], program)
    assert done.returncode == 3, done.stderr
    assert "cannot trace here" in done.stderr
    assert "SYS_PTRACE" in done.stderr
    assert not (shell.home / "trace").exists()


def test_a_recording_that_does_not_compile_is_kept(shell: Shell) -> None:
    in_the_way = "mkdir trace root/made; exit 7"  # the first in the importer's way
    done = capture(shell, "--", "sh", "-c", in_the_way)
    assert done.code == 2
    assert "the command ended with exit status 7" in done.err
    assert "the recording is kept in" in done.err
    again = next(line for line in done.err.splitlines() if "replayer import" in line)
    words = again.split()[2:]
    shutil.rmtree(shell.home / "trace")
    assert shell.run(*words).code == 0
    assert (shell.home / "trace/trace.json").exists()
