"""The report as JUnit XML: a test suite per run; a test case per threshold and target, one for all.

A replay has one more for each target, and a property that says what of its time the recorder may
have made. A failed threshold and a divergence are failures, what is inconclusive is an error, so
that neither passes a pipeline. What never ended is told on its output.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from replayer.report.description import unfinished
from replayer.report.document import Document
from replayer.report.replay import explain_divergence, first_divergences
from replayer.verdict import Judgement

__all__ = ["render_junit"]

# What XML 1.0 can hold at all (section 2.2); names and paths may hold more.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(*documents: Document) -> str:
    """Render the verdicts of runs as JUnit XML, ending with a newline."""
    counted = [_counted(document) for document in documents]
    total = _Counts(*(sum(column) for column in zip(*counted, strict=True)))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="replayer" {_attributes(total)}>',
        *(
            line
            for document, counts in zip(documents, counted, strict=True)
            for line in _suite(document, counts)
        ),
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


class _Counts(NamedTuple):
    """How many test cases there are, and how many of them failed or could not be judged."""

    tests: int
    failures: int
    errors: int


def _counted(document: Document) -> _Counts:
    judgements = document.verdict.judgements
    replays = list(_replays(document))
    failures = sum(found.outcome == "fail" for found in judgements)
    failures += sum(found.count > 0 for found in replays)
    errors = sum(found.outcome == "inconclusive" for found in judgements)
    errors += bool(document.verdict.reasons)
    return _Counts(len(judgements) + len(replays) + 1, failures, errors)


def _attributes(counts: _Counts) -> str:
    return f'tests="{counts.tests}" failures="{counts.failures}" errors="{counts.errors}"'


def _suite(document: Document, counts: _Counts) -> Iterator[str]:
    name = document.plan.name
    yield (
        f"  <testsuite name={_quoted(name)} id={_quoted(document.id)} {_attributes(counts)}"
        f" timestamp={_quoted(document.began.removesuffix('Z'))}>"
    )
    pauses = [each for each in document.warnings if each.kind == "recorded pauses"]
    if pauses:
        yield "    <properties>"
        yield from (
            f"      <property name={_quoted(each.kind)} value={_quoted(each.message)}/>"
            for each in pauses
        )
        yield "    </properties>"
    for judgement in document.verdict.judgements:
        yield from _case(judgement, name)
    for replay in _replays(document):
        yield from _replay_case(replay, name)
    yield from _whole(document)
    if said := [*unfinished(document)]:
        yield f"    <system-out>{_text('; '.join(said))}</system-out>"
    yield "  </testsuite>"


def _case(found: Judgement, suite: str) -> Iterator[str]:
    name = f"{found.target}: {found.threshold}"
    head = f"    <testcase classname={_quoted(suite)} name={_quoted(name)}"
    if found.outcome == "pass":
        yield f"{head}/>"
        return
    element = "failure" if found.outcome == "fail" else "error"
    yield f"{head}>"
    yield f"      <{element} message={_quoted(found.says)}>{_text(found.source)}</{element}>"
    yield "    </testcase>"


@dataclass(frozen=True)
class _Replayed:
    """The replay on one target: how many events diverged, and the first of them in words."""

    target: str
    count: int
    first: str


def _replays(document: Document) -> Iterator[_Replayed]:
    results = document.replay.results if document.replay is not None else None
    if results is None:
        return
    words = {
        target: "; ".join(" ".join(pair).strip() for pair in explain_divergence(target, found))
        for target, found in first_divergences(document)
    }
    for target in document.targets:
        count = sum(each.count for each in results.diverged if each.target == target.index)
        yield _Replayed(target.name, count, words.get(target.name, ""))


def _replay_case(found: _Replayed, suite: str) -> Iterator[str]:
    name = f"{found.target}: events come out as recorded"
    head = f"    <testcase classname={_quoted(suite)} name={_quoted(name)}"
    if not found.count:
        yield f"{head}/>"
        return
    yield f"{head}>"
    says = f"{found.count:,} events diverged"
    yield f"      <failure message={_quoted(says)}>{_text(found.first)}</failure>"
    yield "    </testcase>"


def _whole(document: Document) -> Iterator[str]:
    head = f"    <testcase classname={_quoted(document.plan.name)} name={_quoted('conclusive')}"
    reasons = document.verdict.reasons
    if not reasons:
        yield f"{head}/>"
        return
    yield f"{head}>"
    yield f"      <error message={_quoted(reasons[0])}>{_text('; '.join(reasons))}</error>"
    yield "    </testcase>"


def _quoted(text: str) -> str:
    return quoteattr(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text))


def _text(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text))
