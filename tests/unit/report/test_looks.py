"""Runs that end as soon as they have decided, of known truth: how often they are wrong, or late."""

import re
import sys
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from replayer._native import Histogram
from replayer.analysis.resampling import Draw
from replayer.analysis.slots import Distribution, Slots, Subject
from replayer.measure.health import UntilDecided
from replayer.measure.run import Run
from replayer.measure.summarise import statistics_of
from replayer.measure.summary import RoundSummary, TargetSummary, TransactionSummary
from replayer.report.answer import DIFFERS
from replayer.report.claims import lie_apart
from replayer.report.decision import PRECISION, find_open, plan_looks, say_ended
from replayer.report.ranking import Entrant, RunRanking, rank_entrants
from replayer.verdict.threshold import parse_threshold
from tests.unit.runs import make_load, make_run

LONG = [pytest.mark.nightly, pytest.mark.timeout(1800)]
SEEDS = pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(1_000), marks=LONG)], ids=len
)
TOLD = {"p50", "p95"}
BUDGET_S, ROUND_S = 300, 10
SLOT_S, SAMPLES = 5, 2_000  # of a slot
MIXES = {1: {"page": 1.0}, 2: {"page": 0.75, "login": 0.25}}
SCALES_NS = {"page": 1e6, "login": 4e6}
BINS = np.exp(np.linspace(-0.75, 0.75, 76))  # times of one transaction, around its median
CHANCES = np.exp(-0.5 * (np.log(BINS) / 0.3) ** 2)
CHANCES /= CHANCES.sum()


@dataclass(frozen=True)
class Truth:
    """What a run is like: how rounds differ by chance, how the machine drifts, who is slower."""

    targets: int
    noise: float
    drift: float = 0.2
    slower: float = 1.0
    transactions: int = 1

    @property
    def most(self) -> int:
        """How many rounds fit into the budget."""
        return BUDGET_S // (ROUND_S * self.targets)


class SimulatedRun:
    """All rounds of a run; who looks earlier sees the first ones."""

    def __init__(self, truth: Truth, seed: int) -> None:
        self.truth = truth
        self.looks = plan_looks(truth.most)
        self._shares = MIXES[truth.transactions]
        random = np.random.default_rng([seed, truth.targets, round(1_000 * truth.noise)])
        shape = (truth.most, truth.targets)
        turns = np.arange(truth.most * truth.targets).reshape(shape) / (truth.most * truth.targets)
        self._factors = np.exp(random.normal(0, truth.noise, shape) + truth.drift * turns)
        self._factors[:, -1] *= truth.slower
        slots = (truth.most, truth.targets, ROUND_S // SLOT_S)
        self._counts = {
            name: random.multinomial(round(SAMPLES * share), CHANCES, slots)
            for name, share in self._shares.items()
        }

    def rank(self, rounds: int) -> RunRanking:
        """Rank what was measured until then."""
        return rank_entrants([self._entrant(each, rounds) for each in range(self.truth.targets)])

    def ended(self) -> tuple[int, RunRanking]:
        """Return after how many rounds it ended, and its ranking then."""
        for rounds in self.looks:
            ranking = self.rank(rounds)
            if find_open(ranking, (), PRECISION, rounds) is None:
                break
        return rounds, ranking

    def _entrant(self, target: int, rounds: int) -> Entrant:
        own = {
            (name, number): self._histogram(name, number, target)
            for name in self._shares
            for number in range(rounds)
        }
        every = {
            name: Histogram.merged(own[name, at] for at in range(rounds)) for name in self._shares
        }
        parts = tuple(
            summary_of(number, {name: own[name, number] for name in self._shares}, ROUND_S)
            for number in range(rounds)
        )
        return Entrant(
            label=f"t{target}",
            summary=TargetSummary(
                index=target,
                name=f"t{target}",
                overall=summary_of(None, every, ROUND_S * rounds),
                rounds=parts,
            ),
            latencies=own,
            distributions=dict(self._distributions(target, rounds)),
            draw=Draw(0),
            order="together",
            thinks=True,
            looks=len(self.looks),
        )

    def _times(self, name: str, number: int, target: int) -> np.ndarray:
        times: np.ndarray = SCALES_NS[name] * self._factors[number, target] * BINS
        return times

    def _histogram(self, name: str, number: int, target: int) -> Histogram:
        found = Histogram()
        counts = self._counts[name][number, target].sum(axis=0)
        for time, count in zip(self._times(name, number, target), counts, strict=True):
            if count:
                found.record(int(time), int(count))
        return found

    def _distributions(self, target: int, rounds: int) -> list[tuple[Subject, Distribution]]:
        """In bins of a hundredth of the time, as a log has them."""
        size = ROUND_S // SLOT_S
        begins = np.arange(rounds * size, dtype=np.float64) * SLOT_S
        slots = Slots(
            begins,
            np.full(begins.size, float(SLOT_S)),
            np.full(begins.size, target),
            np.repeat(np.arange(rounds), size),
        )
        found = []
        for name in self._shares:
            places = [
                np.floor(100 * np.log(self._times(name, number, target))).astype(int)
                for number in range(rounds)
            ]
            first = min(each.min() for each in places)
            table = np.zeros((begins.size, max(each.max() for each in places) - first + 1))
            for number, columns in enumerate(places):
                rows = slice(number * size, (number + 1) * size)
                table[rows, columns - first] = self._counts[name][number, target]
            bins_ns = np.exp((first + np.arange(table.shape[1]) + 0.5) / 100)
            subject: Subject = (target, "transaction", name)
            found.append((subject, Distribution(slots, slots.lengths_s, bins_ns, table)))
        return found


def summary_of(number: int | None, times: dict[str, Histogram], measured_s: float) -> RoundSummary:
    nothing = statistics_of(Histogram())
    return RoundSummary(
        number=number,
        measured_s=measured_s,
        errors=0,
        transactions=tuple(
            TransactionSummary(
                name=name,
                count=each.count,
                errors=0,
                cancelled=0,
                rate_per_s=each.count / measured_s,
                throughput_per_s=each.count / measured_s,
                bytes=0,
                bytes_per_s=0.0,
                latency=statistics_of(each),
                service=nothing,
                lag=nothing,
                outcomes=(),
                ops=(),
            )
            for name, each in times.items()
        ),
        ops=(),
    )


def told_apart(ranking: RunRanking) -> set[tuple[str, str]]:
    """Return which figures of all transactions any target differs in, and in which it does."""
    figures = ranking.figures
    return {
        (figure.figure, row.label)
        for figure in figures
        for row in figure.standings
        if figure.kind == figures[0].kind and figure.figure in TOLD and row.claim in DIFFERS
    }


def rate_of(truth: Truth, seeds: range) -> float:
    """Return how many of these runs end with a difference."""
    found = [bool(told_apart(SimulatedRun(truth, seed).ended()[1])) for seed in seeds]
    rate = sum(found) / len(found)
    sys.stdout.write(f"{truth}: {rate:.1%} of {len(found)} runs end with a difference\n")
    return rate


@SEEDS
@pytest.mark.parametrize("noise", [0.03, 0.1])
@pytest.mark.parametrize("targets", [2, 4])
def test_of_equal_targets_at_most_1_run_in_20_ends_with_a_difference(
    targets: int, noise: float, seeds: range
) -> None:
    assert rate_of(Truth(targets, noise), seeds) <= 0.05


@SEEDS
@pytest.mark.parametrize("targets", [2, 4])
def test_a_difference_of_15_percent_is_found_within_the_budget(targets: int, seeds: range) -> None:
    assert rate_of(Truth(targets, 0.03, slower=1.15), seeds) >= 0.9


@pytest.mark.parametrize("truth", [Truth(2, 0.03, transactions=2, slower=1.5)])
def test_a_large_difference_is_decided_after_the_fewest_rounds(truth: Truth) -> None:
    rounds, ranking = SimulatedRun(truth, 1).ended()
    assert rounds == 3
    assert {figure for figure, _ in told_apart(ranking)} == TOLD


def test_the_estimate_of_the_rounds_is_about_what_it_takes() -> None:
    run = SimulatedRun(Truth(2, 0.03), 3)
    ended, ranking = run.ended()
    found = find_open(run.rank(4), (), PRECISION, 4)
    assert found is not None
    assert found.width is not None
    assert found.width > PRECISION
    assert found.rounds is not None
    assert ended / 2 <= found.rounds <= 2 * ended
    assert find_open(ranking, (), PRECISION, ended) is None


@pytest.mark.parametrize(
    ("most", "looks"),
    [(3, (3,)), (4, (3, 4)), (7, (3, 4, 6, 7)), (25, (3, 4, 6, 8, 12, 16, 24, 25))],
)
def test_looks_are_fixed_before_the_start_and_the_last_round_is_one(
    most: int, looks: tuple[int, ...]
) -> None:
    assert plan_looks(most) == looks
    assert plan_looks(1_000)[-3:] == (512, 768, 1_000)


def test_each_look_makes_the_intervals_wider() -> None:
    seen = []
    for looks in ((3,), (3, 4), (3, 4, 6, 8)):
        run = SimulatedRun(Truth(2, 0.03), 5)
        run.looks = looks
        row = run.rank(3).figures[0].standings[1]
        seen.append((row.ratio_high or 0) / (row.ratio_low or 1))
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("sizes", [(3, 3), (3, 4), (4, 4), (4, 6), (6, 6)])
def test_rounds_lie_apart_as_seldom_by_chance_as_is_said(sizes: tuple[int, int]) -> None:
    """Of all orders that equal targets may have: as the table of Mann and Whitney counts them."""
    own, others = sizes
    every = range(own + others)
    found = [
        lie_apart(chosen, [each for each in every if each not in chosen])
        for chosen in combinations(every, own)
    ]
    assert 0 < sum(found) / len(found) <= 0.1


def test_two_rounds_of_each_lie_apart_if_they_do_not_overlap() -> None:
    assert lie_apart([1, 2], [3, 4])
    assert not lie_apart([1, 3], [2, 4])
    assert not lie_apart([1, 2, 3], [3, 4, 5])
    assert lie_apart([*range(30)], [*range(20, 50)])
    assert not lie_apart([*range(30)], [*range(3, 33)])


def ended_run(truth: Truth, rounds: int) -> Run:
    until = UntilDecided(precision=PRECISION, budget_s=300.0, most_rounds=truth.most)
    return make_run(load=make_load(rounds=rounds, until=until))


def test_a_run_says_that_it_stopped_as_it_had_decided() -> None:
    truth = Truth(2, 0.03, slower=1.5)
    rounds, ranking = SimulatedRun(truth, 1).ended()
    run = ended_run(truth, rounds)
    assert say_ended(run, [ranking], proves=True) == "stopped after 3 rounds: decided"
    assert say_ended(run, [ranking], proves=False) == "stopped after 3 rounds"
    interrupted = run.model_copy(update={"status": "interrupted"})
    assert say_ended(interrupted, [ranking], proves=True) is None
    assert say_ended(make_run(), [ranking], proves=True) is None


def test_a_run_whose_budget_is_spent_says_how_well_it_knows_and_which_budget_would_do() -> None:
    truth = Truth(2, 0.1, transactions=2)
    said = say_ended(
        ended_run(truth, truth.most), [SimulatedRun(truth, 1).rank(truth.most)], proves=True
    )
    assert said is not None
    found = re.fullmatch(
        "the budget of 5 min is spent: p(50|95) is known to ±(1[0-9](.[0-9])?) % only; "
        "--budget ([0-9]+)m would do",
        said,
    )
    assert found is not None, said
    assert 5 < int(found[4]) <= 25


def test_the_figure_of_a_limit_is_decided_too_and_others_are_not_waited_for() -> None:
    run = SimulatedRun(Truth(2, 0.03, transactions=2), 3)
    rounds, ranking = run.ended()
    limit = parse_threshold("login.p99 < 1s", "--threshold")
    assert find_open(ranking, (), 0.1, rounds) is None
    tight = find_open(ranking, [limit], 0.001, rounds)
    assert tight is not None
    wide = dict(figure_widths(ranking))
    between = (max(wide["all transactions", name] for name in TOLD) + 1e-9) * 1.0
    found = find_open(ranking, [limit], between, rounds)
    assert (found is not None) == (wide["login", "p99"] > between)


def figure_widths(ranking: RunRanking) -> list[tuple[tuple[str, str], float]]:
    return [
        (
            (each.subject, each.figure),
            max((row.ratio_high or 0) / (row.ratio or 1), (row.ratio or 1) / (row.ratio_low or 1))
            - 1,
        )
        for each in ranking.figures
        for row in each.standings[1:]
    ]
