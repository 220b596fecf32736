"""Job files: what passes, what is refused with file and line, and what fio is given."""

import re
from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.fio.amounts import bytes_needed, depth, processes_at_once, seconds_needed
from replayer.fio.checking import check_job_file
from replayer.fio.jobfile import JobFile, parse_job_file
from replayer.fio.writing import Scale, render_job_file, scaled

GOLDEN = Path(__file__).parents[2] / "golden/fio"
ENVIRONMENT = {"SIZE": "64m", "HOME": "/root"}


def check(text: str, name: str = "x.fio") -> JobFile:
    return check_job_file(parse_job_file(text, name, ENVIRONMENT), None)


@pytest.mark.parametrize("path", sorted((GOLDEN / "accepted").glob("*.fio")), ids=lambda p: p.stem)
def test_a_file_in_the_manner_of_fios_examples_is_accepted(path: Path) -> None:
    assert check(path.read_text()).sections


@pytest.mark.parametrize("path", sorted((GOLDEN / "refused").glob("*.fio")), ids=lambda p: p.stem)
def test_a_file_that_could_lead_outside_is_refused_with_its_line(path: Path) -> None:
    text = path.read_text()
    found = re.search(r"; refused in line (\d+): (.*)", text)
    assert found is not None
    with pytest.raises(ReplayerError) as refusal:
        check(text, "x.fio")
    assert str(refusal.value).startswith(f"x.fio:{found[1]}: ")
    assert found[2] in str(refusal.value)
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize("path", sorted((GOLDEN / "accepted").glob("*.fio")), ids=lambda p: p.stem)
def test_what_is_written_reads_back_as_what_was_checked(path: Path) -> None:
    file = check(path.read_text())
    again = parse_job_file(render_job_file(file, None), "again", {})
    assert [section.name for section in again.sections] == [s.name for s in file.sections]
    for written, checked in zip(again.sections, file.sections, strict=True):
        pairs = [(option.name, option.value) for option in written.options]
        assert pairs[: len(checked.options)] == [(o.name, o.value) for o in checked.options]


def test_options_of_global_sections_come_before_those_of_the_job() -> None:
    (job,) = check("[global]\nbs=4k\n[a]\nbs=8k\nsize=1m\n").sections
    assert job.value("bs") == "8k"


def test_the_name_of_a_global_section_is_no_jobs_name_as_with_fio() -> None:
    (job,) = check("[global]\nname=fio-rand-read\nsize=1m\n[file1]\nrw=read\n").sections
    assert (job.name, job.value("name")) == ("file1", None)
    with pytest.raises(ReplayerError, match="name is not supported"):
        check("[file1]\nname=other\n")


def test_the_command_line_replaces_size_and_runtime_of_every_job() -> None:
    file = check("[a]\nsize=4g\nio_size=8g\nruntime=60\n[b]\nsize=1g\n")
    found = scaled(file, Scale(size_bytes=1 << 20, runtime_s=2.5, seed=7))
    for section in found.sections:
        assert section.value("size") == str(1 << 20)
        assert section.value("io_size") is None
        assert section.value("runtime") == "2500ms"
        assert section.value("randseed") == "7"


def test_any_seed_is_one_that_fio_takes() -> None:
    (section,) = scaled(check("[a]\nsize=1m\n"), Scale(seed=2**64 - 1)).sections
    assert int(section.value("randseed") or "") < 2**63


@pytest.mark.parametrize("line", ["", "time_based=0\n", "time_based\n"])
def test_a_job_runs_as_long_as_the_command_line_says(line: str) -> None:
    (section,) = scaled(check(f"[a]\nsize=1m\n{line}"), Scale(runtime_s=2.5)).sections
    assert [each.value for each in section.options if each.name == "time_based"] == [None]


def test_a_job_that_reads_back_what_it_wrote_gets_the_time_to() -> None:
    text = "[a]\nrw=write\nsize=1m\nverify=crc32c\ntime_based\n"
    (section,) = scaled(check(text), Scale(runtime_s=2.5)).sections
    assert not section.switched_on("time_based")


def test_without_a_time_a_job_ends_as_its_file_says() -> None:
    (section,) = scaled(check("[a]\nsize=1m\nruntime=9\n"), Scale()).sections
    assert not section.switched_on("time_based")


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("[a]\nsize=4k\n", 4096),
        ("[a]\nsize=4KiB\n", 4000),  # as fio: with kb_base=1024 it is the other way round
        ("[a]\nsize=4Ki\n", 4096),
        ("[a]\nsize=4kb\n", 4096),
        ("[a]\nkb_base=1000\nsize=4k\n", 4000),
        ("[a]\nkb_base=1000\nsize=4KiB\n", 4096),
        ("[a]\nsize=1m\nnumjobs=3\n", 3 << 20),
        ("[a]\nsize=1m\nnumjobs=3\nfilename=one\n", 1 << 20),
        ("[a]\nfilesize=4k\nnrfiles=10\n", 40960),
        ("[a]\nsize=10%\n", 0),
    ],
)
def test_the_room_that_jobs_need_is_counted_as_fio_reads_sizes(text: str, needed: int) -> None:
    assert bytes_needed(check(text)) == needed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("[a]\nruntime=3\n[b]\nruntime=5s\n", 5.0),
        ("[a]\nruntime=3\n[b]\nstonewall\nruntime=2m\nramp_time=1\n", 124.0),
        ("[a]\nruntime=3\n[b]\nsize=1m\n", None),
        ("[a]\nruntime=3\n[b]\nwait_for=a\nruntime=5\n[c]\nwait_for=b\nruntime=7\n", 15.0),
        ("[a]\nruntime=3\n[b]\nstonewall\nwait_for=a\nruntime=5\n[c]\nruntime=1\n", 8.0),
        ("[a]\nruntime=(5*60)\n", None),
        ("[global]\nruntime=30\n[a]\nruntime=0\nsize=1m\n", None),
        ("[a]\nruntime=0s\nramp_time=3\n", None),
    ],
)
def test_the_time_of_a_file_counts_what_waits_one_after_the_other(
    text: str, seconds: float | None
) -> None:
    assert seconds_needed(check(text)) == seconds


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("[a]\nnumjobs=2\n[b]\n", 3),
        ("[a]\nnumjobs=2\n[b]\nstonewall\nnumjobs=3\n[c]\n[d]\nstonewall\n", 4),
        ("[global]\nstonewall\n[a]\n[b]\n[c]\nnumjobs=2\n", 2),
        ("[a]\nnumjobs=2\n[b]\nwait_for=a\n[c]\nwait_for=a\nnumjobs=4\n[d]\n", 6),
        ("[a]\nnumjobs=4\n[b]\nwait_for=a\n[c]\nwait_for=b\nnumjobs=3\n", 4),
        ("[a]\n[b]\nstonewall\nwait_for=a\nnumjobs=2\n[c]\n", 3),
    ],
)
def test_jobs_that_never_run_together_are_not_counted_together(text: str, most: int) -> None:
    assert processes_at_once(check(text)) == most


def test_a_device_that_the_user_named_may_stand_in_the_file_and_no_other() -> None:
    parsed = parse_job_file("[a]\nrw=read\nfilename=/dev/vdz\n", "x.fio", {})
    checked = check_job_file(parsed, Path("/dev/vdz"))
    assert "filename=/dev/vdz" in render_job_file(checked, Path("/dev/vdz")).splitlines()
    with pytest.raises(ReplayerError, match="is not the target"):
        check_job_file(parsed, Path("/dev/vdy"))


def test_a_job_on_a_device_has_no_folder_that_fio_would_put_before_its_name() -> None:
    parsed = parse_job_file("[a]\nrw=read\ndirectory=.\n", "x.fio", {})
    with pytest.raises(ReplayerError, match="a device has no folders"):
        check_job_file(parsed, Path("/dev/vdz"))


@pytest.mark.parametrize(
    ("lines", "at_once"),
    [
        ("iodepth=32", 1),
        ("ioengine=psync\niodepth=32", 1),
        ("ioengine=psync\niodepth=32\nio_submit_mode=offload", 32),
        ("ioengine=libaio\niodepth=32", 32),
        ("ioengine=io_uring", 1),
    ],
)
def test_only_an_engine_that_queues_has_several_ios_under_way(lines: str, at_once: int) -> None:
    (section,) = check(f"[a]\nsize=1m\n{lines}\n").sections
    assert depth(section) == at_once
