"""All transactions of a mix together: what is said of them is so."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from replayer._native import Histogram
from replayer.analysis.resampling import Mixture
from replayer.measure.summarise import Of, samples_of
from replayer.report.comparing import compare
from replayer.report.document import Comparison, ComparisonRow
from tests.unit.report.contenders import load
from tests.unit.runs import RunWriter, encode, make_load, make_run, make_target

Mix = Sequence[tuple[str, float, int]]
"""Of each transaction its name, its mean latency in ns and how many a second."""


def write_mix(folder: Path, mixes: Sequence[Mix], rounds: int = 3) -> Path:
    """A run: one target a mix, some seconds in turns."""
    writer, begin = RunWriter(folder), 0
    for number in range(rounds):
        for target, mix in enumerate(mixes):
            for second in range(begin, begin + 8):
                random = np.random.default_rng([number, target, second])
                for name, level, calls in mix:
                    times = [int(each) for each in level * random.lognormal(sigma=0.2, size=calls)]
                    span = (second, second + 1)
                    writer.transaction(name, times, f"{target}/{number}", span)
                    writer.call(name, f"{target}/{number}", span)
            begin += 10
    targets = tuple(make_target(index, f"t{index}") for index in range(len(mixes)))
    return writer.write(make_run(targets=targets, load=make_load(rounds=rounds)))


def together(comparison: Comparison) -> dict[str, tuple[ComparisonRow, ...]]:
    return {
        item.figure: item.standings
        for item in comparison.compared
        if item.kind == "all transactions"
    }


def test_all_transactions_are_pooled(tmp_path: Path) -> None:
    mix = [("look", 1e6, 36), ("save", 30e6, 24)]
    record = load(write_mix(tmp_path / "run", [mix, [(n, 3 * ns, calls) for n, ns, calls in mix]]))
    pooled = [samples_of(record, Of(0, n, "transaction")) for n, _, _ in mix]
    comparison = compare([record])
    for figure, percent in (("p50", 50), ("p95", 95), ("p99", 99)):
        best, other = together(comparison)[figure]
        assert best.value == Histogram.merged(pooled).percentile(percent)
        assert other.claim == "differs"
        assert other.ratio == pytest.approx(3, rel=0.2)
    median, slow = comparison.headline
    assert re.match(r"use t0: transactions take (2\.[5-9]|3\.[0-5])\d* times as long on t1", median)
    assert slow.startswith("the slow ones (p95) take ")
    values = {name: rows[0].value for name, rows in together(comparison).items()}
    assert values["p95"] == pytest.approx(37.6e6, rel=0.05)
    assert values["p50"] < 3e6
    assert any("pooled" in text and "the same share" in text for text in comparison.method)


def test_a_target_is_no_slower_for_having_made_more_of_what_takes_long(tmp_path: Path) -> None:
    mixes = [[("look", 1e6, 54), ("save", 30e6, 6)], [("look", 1e6, 30), ("save", 30e6, 30)]]
    found = together(compare([load(write_mix(tmp_path / "run", mixes))]))
    for figure in ("p50", "p95", "p99"):
        assert found[figure][1].ratio == pytest.approx(1, rel=0.1)
        assert found[figure][1].claim == "no difference shown"


def test_a_mix_of_which_a_target_lacks_a_part_is_that_which_all_have(tmp_path: Path) -> None:
    mixes = [[("look", 1e6, 30), ("save", 9e6, 30)], [("look", 3e6, 30), ("save", 27e6, 30)]]
    mixes[0].append(("sweep", 9e9, 30))
    comparison = compare([load(write_mix(tmp_path / "run", mixes))])
    assert "transactions that all have take" in comparison.headline[0]
    assert together(comparison)["p99"][0].value < 9e8


def test_a_transaction_that_a_round_lacks_leaves_its_share_to_the_others() -> None:
    mixture = Mixture([histogram([5] * 100), histogram([])], [0.5, 0.5])
    assert (mixture.percentile(50), mixture.count) == (5, 100)
    assert Mixture([histogram([])], [1.0]).percentile(50) is None


def histogram(samples: Sequence[int]) -> Histogram:
    return Histogram(encode(samples))


def test_a_mixture_is_that_of_samples_as_often_as_their_share() -> None:
    random = np.random.default_rng(1)
    fast, slow = random.integers(1, 1_000, 400), random.integers(500, 2_000, 100)
    parts = [histogram(fast.tolist()), histogram(slow.tolist())]
    repeated = histogram([*fast.tolist(), *np.repeat(slow, 4).tolist()])
    for percent in (1, 50, 80, 95, 99):
        assert Mixture(parts, [0.5, 0.5]).percentile(percent) == repeated.percentile(percent)
        plain = Mixture(parts, [0.8, 0.2]).percentile(percent)
        assert plain == Histogram.merged(parts).percentile(percent)


def test_few_samples_of_a_large_share_support_no_percentile() -> None:
    mixture = Mixture([histogram([1] * 10_000), histogram([2] * 10)], [0.5, 0.5])
    assert mixture.count == 40
    assert mixture.percentile(95) == 2
    assert mixture.percentile(99) is None
