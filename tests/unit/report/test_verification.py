"""What verifying found is told whole: also what was read back at the end, and what was not."""

from replayer.measure.verification import LastReading, Verification, WrongBlocks, WrongFile
from replayer.report.description import describe_verification

NONE = WrongBlocks(torn=0, swapped=0, lost=0, stale=0)


def found(last: LastReading | None, *, by_name: bool = False) -> Verification:
    return Verification(
        reads=0,
        verified_bytes=0,
        unverified_bytes=0,
        mixed_bytes=0,
        time_ns=0,
        wrong_blocks=NONE,
        blind=False,
        by_name=by_name,
        last=last,
    )


LAST = LastReading(
    files=4,
    unclear_files=1,
    failed_files=2,
    left_files=3,
    unsynced_files=5,
    verified_bytes=8192,
    unverified_bytes=0,
    cached_bytes=4096,
    wrong_blocks=NONE.model_copy(update={"lost": 1}),
    wrong_files=(WrongFile(target=0, path="media/a", outcome="LOST"),),
    took_s=1.5,
)


def test_what_was_left_unread_or_is_not_proven_is_said_with_what_was_found() -> None:
    told = describe_verification(found(LAST))
    for words in (
        "read back at the end: 4 files",
        "from the client's page cache",
        "1 of which nothing is certain",
        "3 left unread",
        "2 not to be read",
        "5 whose fsync failed",
        "wrong blocks: 1 lost; the first: LOST media/a; 1.50 s",
    ):
        assert words in told


def test_short_times_have_a_unit_that_fits() -> None:
    short = found(LAST.model_copy(update={"took_s": 3.88e-6})).model_copy(update={"time_ns": 43})
    told = describe_verification(short)
    assert "; 43 ns of all users" in told
    assert told.endswith("; 3.88 µs")


def test_a_run_without_a_last_reading_says_nothing_of_one() -> None:
    assert "read back" not in describe_verification(found(None))


def test_blocks_and_bytes_of_both_are_added() -> None:
    assert found(LAST).wrong_total == 1
    assert found(LAST).checked_bytes == 8192
    assert found(None).wrong_total == found(None).checked_bytes == 0


def test_names_that_stand_for_several_files_are_called_names() -> None:
    told = describe_verification(found(LAST, by_name=True))
    assert "read back at the end: 4 names of files (those of one name count once)" in told
    assert "1 of which nothing is certain" in told
