"""Whether the two targets of a duet share something: each beside the other and alone.

Two targets that share a disk, a link or a busy client slow each other down, and their ratio is that
of how they share it. So each also works alone in every round, and both times are compared like any
other two figures: over rounds, and blocks of seconds in them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from replayer.analysis.resampling import Draw, Floats, Resampled, ratio_interval, resample_mixture
from replayer.analysis.slots import Distribution, Subject, read_distributions
from replayer.measure.duet import BesideAlone, Duet
from replayer.measure.record import RunRecord
from replayer.report.claims import samples_to_claim

_FIGURES = (("p50", 50.0), ("p95", 95.0))
_TRIES = 2 * len(_FIGURES)  # of two targets


def with_duet(record: RunRecord) -> RunRecord:
    """Return the record of a duet with what it found of itself; any other as it is."""
    if not record.run.load.duet or record.run.duet is not None:
        return record
    found = Duet(figures=tuple(_compare(record)))
    return replace(record, run=record.run.model_copy(update={"duet": found}))


def why_not_compared(record: RunRecord) -> str | None:
    """Say why the targets of a duet must not be compared; None: they may, or it is no duet."""
    run = record.run
    if run.duet is None:
        return None
    return run.duet.why_not(tuple(target.name for target in run.targets), run.health)


def _compare(record: RunRecord) -> Iterator[BesideAlone]:
    beside, alone = read_distributions(record), read_distributions(record, "alone")
    for target in record.run.targets:
        names = [
            name
            for index, kind, name in beside
            if (index, kind) == (target.index, "transaction") and (index, kind, name) in alone
        ]
        if names:
            both = _of(beside, target.index, names), _of(alone, target.index, names)
            yield from _compare_target(target.name, *both)


def _of(
    found: Mapping[Subject, Distribution], target: int, names: Sequence[str]
) -> list[Distribution]:
    return [found[target, "transaction", name] for name in names]


def _compare_target(
    name: str, beside: Sequence[Distribution], alone: Sequence[Distribution]
) -> Iterator[BesideAlone]:
    counts = np.array([_counts(beside), _counts(alone)])
    kept = counts.min(axis=0) > 0
    if not kept.any():
        return
    shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)[kept].tolist()
    least = int(counts.sum(axis=1).min())
    drawn = [
        resample_mixture(
            [part for part, is_kept in zip(parts, kept, strict=True) if is_kept],
            shares,
            [percent for _, percent in _FIGURES],
            Draw(0),
        )
        for parts in (beside, alone)
    ]
    yield from _figures(name, drawn[0], drawn[1], least)


def _counts(parts: Sequence[Distribution]) -> Floats:
    return np.array([part.table.sum() for part in parts])


def _figures(name: str, beside: Resampled, alone: Resampled, least: int) -> Iterator[BesideAlone]:
    for place, (figure, percent) in enumerate(_FIGURES):
        beside_ns, alone_ns = float(beside.plain[place]), float(alone.plain[place])
        if least < samples_to_claim(percent) or not alone_ns > 0:
            continue
        ratio = beside_ns / alone_ns
        interval = ratio_interval(beside, alone, place, ratio, _TRIES)
        yield BesideAlone(
            target=name,
            figure="p50" if figure == "p50" else "p95",
            alone_ns=alone_ns,
            beside_ns=beside_ns,
            ratio=ratio,
            low=None if interval is None else interval.low,
            high=None if interval is None else interval.high,
        )
