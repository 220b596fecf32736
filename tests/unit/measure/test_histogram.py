import zlib
from math import fsum, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer._native import Histogram
from tests.unit.runs import encode

SAMPLES = st.lists(st.integers(0, 86_400_000_000_000), min_size=1, max_size=300)


@given(SAMPLES)
def test_a_decoded_histogram_holds_every_sample_within_a_thousandth(samples: list[int]) -> None:
    found = Histogram(encode(samples))
    values = [value for value, count in found.buckets() for _ in range(count)]
    assert found.count == len(samples)
    for exact, kept in zip(sorted(samples), values, strict=True):
        assert exact <= kept <= exact + exact / 1000


@given(SAMPLES, st.sampled_from([50.0, 90.0, 95.0, 99.0, 99.9, 100.0]))
def test_percentiles_are_within_a_thousandth_of_the_exact_ones(
    samples: list[int], percent: float
) -> None:
    exact = float(np.percentile(samples, percent, method="inverted_cdf"))
    assert exact <= Histogram(encode(samples)).percentile(percent) <= exact * 1.001


@given(st.lists(SAMPLES, min_size=1, max_size=5))
def test_merging_histograms_is_merging_their_samples(parts: list[list[int]]) -> None:
    merged = Histogram.merged(Histogram(encode(part)) for part in parts)
    whole = Histogram(encode([sample for part in parts for sample in part]))
    assert merged.buckets() == whole.buckets()


@given(SAMPLES, st.integers(0, 2**47))
def test_a_histogram_is_split_between_two_buckets(samples: list[int], at: int) -> None:
    below, above = Histogram(encode(samples)).split(at)
    assert below.max_at_least <= at
    assert not above.count or above.min > at
    assert Histogram.merged([above, below]).buckets() == Histogram(encode(samples)).buckets()


@given(SAMPLES)
def test_mean_and_stdev_are_within_a_thousandth_of_the_range(samples: list[int]) -> None:
    found = Histogram(encode(samples))
    room = max(samples) / 1000 + 1
    assert found.mean == pytest.approx(float(np.mean(samples)), abs=room)
    assert found.stdev == pytest.approx(float(np.std(samples)), abs=room)


@given(SAMPLES)
def test_the_extremes_enclose_the_samples(samples: list[int]) -> None:
    found = Histogram(encode(samples))
    assert found.min <= min(samples)
    assert max(samples) <= found.max <= max(samples) * 1.001


def test_the_999th_of_1000_samples_is_the_99_9th_percentile() -> None:
    found = Histogram(encode([1] * 999 + [2000]))
    assert found.percentile(99.9) == 1
    assert found.percentile(99.91) == 2000


def test_counts_of_billions_stay_exact() -> None:
    one = Histogram(encode([7] * 3))
    merged = one
    for _ in range(40):  # 3 * 2**40
        merged = Histogram.merged([merged, merged])
    assert merged.count == 3 * 2**40


def test_an_empty_histogram_has_no_figures() -> None:
    found = Histogram(encode([]))
    assert (found.count, found.max, found.percentile(99)) == (0, 0, 0)
    assert (found.mean, found.stdev, found.min, found.max_at_least) == (0.0, 0.0, 0, 0)


@given(SAMPLES, st.data())
def test_a_histogram_cut_anywhere_is_refused(samples: list[int], data: st.DataObject) -> None:
    blob = encode(samples)
    cut = data.draw(st.integers(0, len(blob) - 1))
    with pytest.raises(ValueError, match="histogram"):
        Histogram(blob[:cut])


@given(st.binary(max_size=200))
def test_noise_is_refused_and_never_crashes(noise: bytes) -> None:
    with pytest.raises(ValueError, match="histogram"):
        Histogram(noise)


@given(SAMPLES)
def test_mean_and_stdev_are_sums_that_are_rounded_once(samples: list[int]) -> None:
    found = Histogram(encode(samples))
    widths = [(2 ** max(value.bit_length() - 11, 0), count) for value, count in found.buckets()]
    middles = [
        (float(value - width + 1 + width // 2), count)
        for (value, count), (width, _) in zip(found.buckets(), widths, strict=True)
    ]
    mean = fsum(middle * count for middle, count in middles) / len(samples)
    assert found.mean == mean
    squares = fsum((middle - mean) * (middle - mean) * count for middle, count in middles)
    assert found.stdev == sqrt(squares / len(samples))


def test_other_precisions_are_refused() -> None:
    coarse = encode([1, 2, 3])
    head = bytearray(zlib.decompress(coarse[8:]))
    head[15] = 2  # significant digits
    packed = zlib.compress(bytes(head))
    other = coarse[:4] + len(packed).to_bytes(4, "big") + packed
    with pytest.raises(ValueError, match="precision"):
        Histogram(other)
