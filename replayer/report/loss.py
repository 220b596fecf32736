"""What a load loses beside a neighbour, in sentences: by how much its times are longer, how sure.

From rankings of the two settings of each target. Nothing is measured or judged here.
"""

from collections.abc import Iterator, Sequence

from replayer.measure.neighbour import Done, Neighbour
from replayer.measure.units import (
    format_count,
    format_many,
    format_rate,
    format_ratio,
    format_share,
    format_time_ns,
)
from replayer.report.document import ComparedFigure, Unranked
from replayer.report.ranking import FigureName, RunRanking, ratio_between

MOST_SUBJECTS = 3  # chosen: kinds of work that have a sentence each
_TOLD: tuple[FigureName, ...] = ("p50", "p95")
_DIFFERS = frozenset({"differs", "differs, few rounds"})


def say_losses(
    neighbour: Neighbour, rankings: Sequence[RunRanking], names: Sequence[str]
) -> Iterator[str]:
    """Yield what is lost on each target; ``names`` are those of the run's, by their indices."""
    for pair, ranking in zip(neighbour.pairs, rankings, strict=True):
        alone, beside = names[pair.alone], names[pair.beside]
        on = f" on {alone}" if len(neighbour.pairs) > 1 else ""
        yield from _say_loss(ranking, f"beside {neighbour.says}{on}", (beside, alone))


def describe_done(neighbour: Neighbour, done: Done, name: str) -> str:
    """Return what a neighbour did in a setting, in one line."""
    rate = "at no rate that is known" if done.rate_per_s is None else format_rate(done.rate_per_s)
    p95 = "" if done.p95_ns is None else f", p95 {format_time_ns(done.p95_ns)}"
    unbegun = "" if not done.unbegun else f", {format_count(done.unbegun)} never started"
    errors = format_many(done.errors, "error")
    return f"{neighbour.says} on {name}: {rate} done{p95}, {errors}{unbegun}"


def _say_loss(ranking: RunRanking, where: str, settings: tuple[str, str]) -> Iterator[str]:
    ranked = [each for each in ranking.figures if each.kind != "op"]
    pooled = [each for each in ranked if each.kind == "all transactions"]
    subjects = list(dict.fromkeys(each.subject for each in pooled or ranked))
    if not subjects:
        yield f"{where}: {_say_too_little(ranking.unranked)}"
    for subject in subjects[:MOST_SUBJECTS]:
        own = [each for each in ranked if each.subject == subject and each.figure in _TOLD]
        yield _say_one(ranking.mix if pooled else subject, own, where, settings)
    if pooled and not any(map(_differs, pooled)):
        for each in ranked:
            if each.kind == "transaction" and each.figure == "p50" and _differs(each):
                yield f"but {each.subject} p50 is {_times(each, settings)}"


def _say_one(
    subject: str, figures: Sequence[ComparedFigure], where: str, settings: tuple[str, str]
) -> str:
    """Say which figures of a subject are longer; of all others that none is shown to be."""
    told = [each for each in figures if _differs(each)]
    others = [each for each in figures if each not in told]
    if not told:
        return f"{where} no loss of {subject} is shown{_noticed(figures, settings)}"
    first, *more = told
    low_high = _times(first, settings, sure="; 95 %")
    text = f"{subject} {first.figure} is {low_high} {where}"
    for each in more:
        text += f", {each.figure} {_times(each, settings)}"
    for each in others:
        text += f"; of {each.figure} no loss is shown"
    return text


def _differs(figure: ComparedFigure) -> bool:
    return any(row.claim in _DIFFERS for row in figure.standings)


def _times(figure: ComparedFigure, settings: tuple[str, str], sure: str = "") -> str:
    """Return ``2.10 times as long (1.80 to 2.50)``."""
    ratio, low, high = ratio_between(figure, *settings)
    text = f"{format_ratio(ratio or 0)} times"
    text += " as long" if sure else ""
    if low is None or high is None:
        return text
    return f"{text} ({format_ratio(low)} to {format_ratio(high)}{sure})"


def _noticed(figures: Sequence[ComparedFigure], settings: tuple[str, str]) -> str:
    """Say from which size on a loss would have been shown, where that is known."""
    found = [ratio_between(figure, *settings) for figure in figures]
    widths = [
        max(high / ratio, ratio / low) - 1 for ratio, low, high in found if ratio and low and high
    ]
    if len(widths) < len(found) or not widths:
        return ": too few seconds were measured; measure longer (-t)"
    return f": one above {format_share(max(widths))} would have been"


def _say_too_little(unranked: Sequence[Unranked]) -> str:
    lacking = [each.label for unknown in unranked for each in unknown.lacking if not each.samples]
    if lacking:
        return f"nothing has succeeded on {lacking[0]}: no times can be compared"
    return "too little was measured to compare; measure longer (-t)"
