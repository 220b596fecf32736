"""The report as JUnit XML: a test case per threshold and target, and one for the run as a whole.

A replay has one more for each target. A failed threshold and a divergence are failures, what is
inconclusive is an error, so that neither passes a pipeline.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from replayer.report.document import Document
from replayer.report.replay import explain_divergence, first_divergences
from replayer.verdict import Judgement

__all__ = ["render_junit"]

# What XML 1.0 can hold at all (section 2.2); names and paths may hold more.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(document: Document) -> str:
    """Render a run's verdict as JUnit XML, ending with a newline."""
    judgements = document.verdict.judgements
    replays = list(_replays(document))
    failures = sum(found.outcome == "fail" for found in judgements)
    failures += sum(found.count > 0 for found in replays)
    errors = sum(found.outcome == "inconclusive" for found in judgements)
    errors += bool(document.verdict.reasons)
    tests = len(judgements) + len(replays) + 1
    counts = f'tests="{tests}" failures="{failures}" errors="{errors}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="replayer" {counts}>',
        (
            f"  <testsuite name={_quoted(document.plan.name)} id={_quoted(document.id)} {counts}"
            f" timestamp={_quoted(document.began.removesuffix('Z'))}>"
        ),
        *(line for found in judgements for line in _case(found, document.plan.name)),
        *(line for found in replays for line in _replay_case(found, document.plan.name)),
        *_whole(document),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


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
