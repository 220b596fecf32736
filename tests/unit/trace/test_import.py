import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replayer import _native
from replayer.cli import main
from replayer.trace.errors import TraceError
from replayer.trace.importing import ImportOptions, Window, import_trace
from replayer.trace.reading import load_trace

FRONT = Path(__file__).parent / "logs" / "front.strace"
"""A real page view of WordPress, from accept to accept."""
OPTIONS = ImportOptions(
    roots=[Path("/srv/www/wordpress")], directories=[(18726, Path("/srv"))], note="one page view"
)
OPS = {
    "access": 207,
    "chdir": 1,
    "close": 8,
    "fstat": 15,
    "lseek": 8,
    "open": 12,
    "read": 22,
    "stat": 19,
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    import_trace([FRONT], tmp_path / "front", OPTIONS)
    return tmp_path / "front"


def test_a_real_page_view_is_imported_call_by_call(trace: Path) -> None:
    counts = load_trace(trace)["counts"]
    assert counts["ops"] == OPS
    assert counts["errors"] == {"ENOENT": 56}
    assert counts["calls_below_roots"] == counts["calls_as_events"] == sum(OPS.values())
    assert counts["lines_not_understood"] == 0
    assert counts["tree_repairs"]["unexplained"] == 0
    assert counts["threads"] == 1


def test_a_trace_names_its_files_its_requests_and_its_limits(trace: Path) -> None:
    described = load_trace(trace)
    assert described["requests"] == [{"label": "(not named)", "count": 1, "events": 292}]
    assert described["roots"] == [{"directory": "/srv/www/wordpress", "name": "wordpress"}]
    assert described["clock"]["resolution_ns"] == 1000
    assert 1000 < described["calibration"]["call_ns"] < 10_000
    assert described["labels"]["private"] == 0
    assert described["tree"]["files"] > 0
    readme = (trace / "README.md").read_text()
    assert "one page view" in readme
    assert "292 events of 1 threads" in readme


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_compressed_log_gives_the_same_tables(
    tmp_path: Path, trace: Path, pack: Callable[[bytes], bytes]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(pack(FRONT.read_bytes()))
    packed = import_trace([log], tmp_path / "packed", OPTIONS)
    assert packed["tables"] == load_trace(trace)["tables"]


def test_a_window_names_the_request_that_was_accepted_in_it(tmp_path: Path) -> None:
    begin = 1795223203_370000000
    options = ImportOptions(roots=OPTIONS.roots, windows=[Window(begin, begin + 10**9, "front")])
    described = import_trace([FRONT], tmp_path / "front", options)
    assert described["requests"] == [{"label": "front", "count": 1, "events": 292}]


def test_progress_can_stop_an_import_and_nothing_is_left(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('access("/srv/www/wordpress/a", F_OK) = 0\n' * 1_500_000)

    def stop(_: int) -> None:
        message = "enough"
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="enough"):
        import_trace([log], tmp_path / "trace", OPTIONS, stop)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_changed_table_is_told(trace: Path) -> None:
    events = trace / "events.parquet"
    damaged = bytearray(events.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    events.write_bytes(damaged)
    with pytest.raises(
        TraceError, match=r"events\.parquet: has changed since it was written"
    ) as told:
        load_trace(trace)
    assert told.value.hint


def test_a_trace_of_another_version_is_refused(trace: Path) -> None:
    document = trace / "trace.json"
    document.write_text(document.read_text().replace('"format": 2', '"format": 7'))
    with pytest.raises(
        TraceError, match="has trace format 7, this version of replayer reads 1 to 2"
    ):
        load_trace(trace)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roots": []}, "needs at least one"),
        (
            {"roots": [Path("relative")]},
            "--root must be an absolute directory below /, got relative",
        ),
        ({"roots": [Path("/a"), Path("/a/b")]}, "one is inside the other"),
        ({"format": "blktrace"}, "--format must be one of"),
        ({"manifest": Path("/nowhere/tree.tsv")}, "/nowhere/tree.tsv: No such file"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    options = ImportOptions(**{"roots": OPTIONS.roots, **changes})
    with pytest.raises(TraceError, match=message):
        import_trace([FRONT], tmp_path / "trace", options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", _native.trace_formats())
def test_every_format_keeps_the_contract(name: str) -> None:
    assert _native.trace_is_applicable(name, b"the quick brown fox\n" * 100) == "no"
    assert _native.trace_is_applicable(name, b"") == "need more"


def test_only_the_importer_of_strace_takes_a_strace_log() -> None:
    head = FRONT.read_bytes()[:4096]
    takers = [
        name for name in _native.trace_formats() if _native.trace_is_applicable(name, head) == "yes"
    ]
    assert takers == ["strace"]


def test_import_and_show_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "front")
    words = [
        "import",
        str(FRONT),
        "-o",
        target,
        "--root",
        "/srv/www/wordpress",
        "--cwd",
        "18726=/srv",
    ]
    assert main([*words, "--note", "one page view"]) == 0
    imported = capsys.readouterr().out
    assert main(["show", target]) == 0
    assert capsys.readouterr().out == imported
    assert "access 207" in imported
    assert "ENOENT 56" in imported
    assert "0 of 365 lines" in imported


SEPARATE = {
    10: ["vfork() = 11", "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11"],
    11: ['unlink("/srv/a") = 0', "+++ exited with 0 +++"],
}


@pytest.mark.parametrize(
    ("front", "is_guessed"), [("", True), ("12:00:00 ", True), ("12:00:00.000000 ", False)]
)
def test_an_order_that_stamps_do_not_tell_is_said_to_be_a_guess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], front: str, *, is_guessed: bool
) -> None:
    logs = []
    for task, lines in SEPARATE.items():
        logs.append(tmp_path / f"log.{task}")
        logs[-1].write_text("".join(f"{front}{line}\n" for line in lines))
    target = str(tmp_path / "trace")
    assert main(["import", *map(str, logs), "-o", target, "--root", "/srv"]) == 0
    imported = capsys.readouterr().out
    assert ("the order of 2 tasks is a guess" in imported) is is_guessed
    assert ("record with strace -f" in imported) is is_guessed
    assert main(["show", target]) == 0
    assert capsys.readouterr().out == imported
    readme = (tmp_path / "trace/README.md").read_text()
    assert ("tasks in an order that is a guess (2)" in readme) is is_guessed


def test_show_prints_what_the_folder_says(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(trace), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown.pop("pauses").keys() == {"calls_ns", "pauses_ns", "recorder_ns"}
    assert shown == load_trace(trace)


def test_mistakes_on_the_command_line_exit_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "trace")
    assert main(["import", str(tmp_path / "none"), "-o", target, "--root", "/r"]) == 2
    assert main(["import", str(FRONT), "-o", target, "--root", "/r", "--cwd", "here"]) == 2
    for umask in ("888", "x=022", "1777", "18446744073709551616=077"):
        assert main(["import", str(FRONT), "-o", target, "--root", "/r", "--umask", umask]) == 2
    assert main(["show", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "none: No such file or directory" in told
    assert "--cwd must be DIR or PID=DIR" in told
    assert told.count("--umask must be MASK or PID=MASK, 0 to 777 (octal), got ") == 4
    assert "is not a trace: it has no trace.json" in told


def test_strict_refuses_a_log_with_words_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text(FRONT.read_text() + "Segmentation fault\n")
    words = ["import", str(log), "-o", str(tmp_path / "trace"), "--root", "/srv/www", "--strict"]
    assert main(words) == 2
    assert "1 of 366 lines could not be parsed; the first is " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--root", "/nosuch"], "calls are outside the roots"),
        (["--root", "/srv/www", "--format", "dbench"], "365 of 365 lines could not be parsed"),
    ],
)
def test_an_import_that_finds_nothing_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    assert main(["import", str(FRONT), "-o", str(tmp_path / "trace"), *words]) == 2
    told = capsys.readouterr().err
    assert "contains no event: " in told
    assert reason in told


def test_a_place_that_takes_no_trace_is_told_before_the_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    options = ImportOptions(roots=(Path("/srv"),))
    with pytest.raises(TraceError, match="cannot be created") as caught:
        import_trace([tmp_path / "missing.strace"], tmp_path / "file/trace", options)
    assert caught.value.exit_code == 3
