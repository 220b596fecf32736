"""Duets: how often they err, how much narrower their intervals are, and what refuses them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from numpy.typing import NDArray

from replayer.measure.duet import SLOWED, BesideAlone, Duet
from replayer.measure.record import RunRecord, load_run
from replayer.measure.summarise import summarise
from replayer.report.claims import lie_apart_in_pairs
from replayer.report.comparing import compare
from replayer.report.composition import compose
from replayer.report.first_screen import render_first_screen
from replayer.report.ranking import rank
from tests.unit.runs import RunWriter, make_health, make_load, make_run, make_target

FIGURES = 60
"""Equal on both targets; as many others take longer on the second."""
ROUNDS, SECONDS, ALONE, SAMPLES = 6, 6, 2, 24
LONGER = 1.15
NOISE, OWN = 0.4, 0.03
"""Of the logarithm of a second's times: what others on the machine do to both, and what is left."""

Floats = NDArray[np.float64]


def disturbed(random: np.random.Generator, seconds: int, figures: int) -> Floats:
    """What others do to this machine: it comes and goes over some seconds (AR(1))."""
    steps = random.normal(scale=NOISE * np.sqrt(1 - 0.8**2), size=(seconds, figures))
    found = np.empty_like(steps)
    found[0] = random.normal(scale=NOISE, size=figures)
    for second in range(1, seconds):
        found[second] = 0.8 * found[second - 1] + steps[second]
    return found


def write(
    folder: Path, ratios: Sequence[float], *, duet: bool = True, slower: float = 1.0
) -> RunRecord:
    """A run of two targets in turns or at the same time, with a transaction for each ratio.

    The second target takes that many times as long; ``slower`` is what each does to the other.
    """
    random, writer, clock = np.random.default_rng(7), RunWriter(folder), 0
    figures = len(ratios)
    noise = disturbed(random, ROUNDS * 2 * (SECONDS + ALONE), figures)

    def second(target: int, number: int, phase: str, factor: float) -> None:
        means = 1e6 * factor * np.exp(noise[clock] + random.normal(scale=OWN, size=figures))
        means *= np.array(ratios) if target else 1.0
        for figure, mean in enumerate(means):
            times = (mean * random.lognormal(sigma=0.3, size=SAMPLES)).astype(int).tolist()
            place = f"{target}/{number}/{phase}/f{figure}"
            writer.record(f"{place}/transaction/ok/expected", times, (clock, clock + 1))
        writer.record(f"{target}/{number}/{phase}/f0/stat/ok/expected", [9], (clock, clock + 1))

    for number in range(ROUNDS):
        for target in (0, 1):
            for _ in range(ALONE if duet else SECONDS):
                second(target, number, "alone" if duet else "measured", 1.0)
                clock += 1
        for _ in range(SECONDS if duet else 0):
            for target in (0, 1):
                second(target, number, "measured", slower)
            clock += 1
    targets = (make_target(0, "a"), make_target(1, "b"))
    load = make_load(rounds=ROUNDS, duet=duet)
    run = make_run(targets=targets, load=load, health=make_health(), status="finished")
    return load_run(writer.write(run))


@dataclass(frozen=True)
class Medians:
    """How the medians of equal and of different transactions were told apart."""

    claims: int
    """Of equal ones that are said to differ."""
    missed: int
    """Of equal ones whose interval leaves out 1."""
    found: int
    """Of different ones that are said to differ."""
    width: float
    """How wide an interval usually is, as a logarithm."""


@pytest.fixture(scope="module")
def medians(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Medians]:
    """Those of a duet (True), and of turns with the same noise."""
    ratios = (*[1.0] * FIGURES, *[LONGER] * FIGURES)
    return {
        duet: judged(write(tmp_path_factory.mktemp("run") / "out", ratios, duet=duet))
        for duet in (True, False)
    }


def judged(record: RunRecord) -> Medians:
    figures = rank(record, summarise(record)).figures
    own = [each for each in figures if (each.kind, each.figure) == ("transaction", "p50")]
    rows = {int(each.subject[1:]): each.standings[1] for each in own}
    assert len(rows) == 2 * FIGURES
    equal = [row for number, row in rows.items() if number < FIGURES]
    others = [row for number, row in rows.items() if number >= FIGURES]
    widths = [
        log(row.ratio_high / row.ratio_low) for row in equal if row.ratio_high and row.ratio_low
    ]
    return Medians(
        claims=sum(row.claim == "differs" for row in equal),
        missed=sum((row.ratio_low or 0) > 1 for row in equal),
        found=sum(row.claim == "differs" for row in others),
        width=median(widths),
    )


@pytest.mark.nightly
def test_a_duet_of_equal_targets_errs_at_most_1_time_in_20(medians: dict[bool, Medians]) -> None:
    assert medians[True].claims <= FIGURES / 20
    assert medians[True].missed <= FIGURES / 20


@pytest.mark.nightly
def test_intervals_of_a_duet_are_far_narrower_than_those_of_turns(
    medians: dict[bool, Medians],
) -> None:
    assert medians[False].width > 4 * medians[True].width


@pytest.mark.nightly
def test_a_duet_finds_what_turns_leave_open(medians: dict[bool, Medians]) -> None:
    assert medians[True].found >= 0.9 * FIGURES
    assert medians[False].found <= 0.1 * FIGURES


def test_targets_that_slow_each_other_down_are_not_compared(tmp_path: Path) -> None:
    record = write(tmp_path / "run", [2.0] * 5, slower=4.0)
    document = compose(record)
    assert document.verdict.outcome == "inconclusive"
    assert document.verdict.exit_code == 4
    (reason,) = document.verdict.reasons
    assert reason.startswith("a and b slow each other down, so they share something: p50 of a is ")
    assert reason.endswith("measure them in turns (without --duet)")
    assert (document.ranking, document.unranked) == ((), ())
    shown = render_first_screen(document)
    assert "p50 to best" not in shown
    assert "Cannot be decided here: a and b slow each other down" in " ".join(shown.split())
    assert compare([record]).compared == ()
    assert compare([record]).headline[0].startswith("cannot be decided here: a and b slow")


def test_targets_that_leave_each_other_alone_are_compared(tmp_path: Path) -> None:
    document = compose(write(tmp_path / "run", [2.0] * 5))
    assert document.verdict.reasons == ()
    assert document.answer[0].startswith("use a: transactions take ")
    assert document.duet is not None
    assert {each.target for each in document.duet.figures if each.low} == {"a", "b"}
    assert "at the same time" in render_first_screen(document)


def figure(target: str = "a", ratio: float = 1.0, low: float | None = 0.9) -> BesideAlone:
    high = None if low is None else ratio * ratio / low
    return BesideAlone(
        target=target, figure="p50", alone_ns=1e6, beside_ns=ratio * 1e6, ratio=ratio, low=low,
        high=high,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ((figure("a"), figure("b")), None),
        ((figure("a", SLOWED - 0.01, low=1.05), figure("b")), None),  # certain, and harmless
        ((figure("a", 1.5, low=0.95), figure("b")), None),  # noise may have done that
        ((figure("a"), figure("b", 1.5, low=1.3)), "p50 of b is 1.50 times as long beside a as"),
        ((figure("a"),), "too little was measured of b alone"),
        ((figure("a"), figure("b", low=None)), "too little was measured of b alone"),
        ((), "too little was measured of a and b alone"),
    ],
)
def test_a_duet_says_why_it_proves_nothing(
    figures: tuple[BesideAlone, ...], says: str | None
) -> None:
    why = Duet(figures=figures).why_not(("a", "b"), make_health())
    assert why is None if says is None else says in str(why)


def test_a_duet_of_a_saturated_client_is_not_printed_as_a_comparison(tmp_path: Path) -> None:
    record = write(tmp_path / "run", [3.0] * 2)
    busy = make_health(client_cpu_share=0.97)
    folder = RunWriter(record.folder)
    (folder.path / "run.json").write_text(
        record.run.model_copy(update={"health": busy}).model_dump_json()
    )
    document = compose(load_run(record.folder))
    assert document.ranking == ()
    assert document.answer == (f"cannot be decided here: {document.verdict.reasons[0]}",)
    assert document.verdict.reasons[0].startswith("the client was saturated")


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ((1, 5, 9), (2, 6, 10), True),  # noise is larger than what lies between them
        ((1, 5, 9), (2, 6, 8), False),
        ((1, 5, 9), (1, 6, 10), False),
        ((1, 2, 3, 4, 5, 6, 7, 8), (2, 3, 4, 5, 6, 7, 8, 1), True),  # 7 of 8: 1 time in 14
        ((1, 2, 3, 4, 5, 6, 7), (2, 3, 4, 5, 6, 7, 1), False),
    ],
)
def test_rounds_of_a_duet_are_held_against_each_other_in_pairs(
    one: tuple[float, ...],
    other: tuple[float, ...],
    apart: bool,  # noqa: FBT001
) -> None:
    assert lie_apart_in_pairs(one, other) is apart
    assert lie_apart_in_pairs(other, one) is apart
