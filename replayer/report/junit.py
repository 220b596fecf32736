"""JUnit XML: a test suite for each run; a test case for each threshold and target, and one for all.

A replay has one more for each target, and a property that names pauses of the recorder. A failed
threshold and a divergence are failures. What is inconclusive is an error: neither passes a
pipeline. Transactions that never ended stand on its output.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from replayer.report.description import unfinished
from replayer.report.document import Document
from replayer.report.replay import explain_divergence, first_divergences

# What XML 1.0 can hold at all (section 2.2); names and paths may hold more.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(*documents: Document) -> str:
    """Render the verdicts of runs as JUnit XML, ending with a newline."""
    root = ET.Element("testsuites", name="replayer")
    root.extend(map(_suite, documents))
    for each in (*root, root):
        found = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
        within = ".//" if each is root else ""
        each.attrib |= {name: str(len(each.findall(within + path))) for name, path in found.items()}
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(document: Document) -> ET.Element:
    suite = _element("testsuite", name=document.plan.name, id=document.id)
    suite.set("timestamp", document.began.removesuffix("Z"))
    pauses = [each for each in document.warnings if each.kind == "recorded pauses"]
    if pauses:
        properties = ET.SubElement(suite, "properties")
        properties.extend(_element("property", name=p.kind, value=p.message) for p in pauses)
    for name, result in _cases(document):
        case = _element("testcase", classname=document.plan.name, name=name)
        if result is not None:
            case.append(result)
        suite.append(case)
    if said := [*unfinished(document)]:
        suite.append(_element("system-out", "; ".join(said)))
    return suite


def _cases(document: Document) -> Iterator[tuple[str, ET.Element | None]]:
    """Yield the name of each case, and why it did not pass."""
    for found in document.verdict.judgements:
        kind = "failure" if found.outcome == "fail" else "error"
        result = _element(kind, found.source, message=found.says)
        yield f"{found.target}: {found.threshold}", None if found.outcome == "pass" else result
    for target, diverged, first in _replays(document):
        result = _element("failure", first, message=f"{diverged:,} events diverged")
        yield f"{target}: events come out as recorded", result if diverged else None
    reasons = document.verdict.reasons
    yield (
        "conclusive",
        (_element("error", "; ".join(reasons), message=reasons[0]) if reasons else None),
    )


def _replays(document: Document) -> Iterator[tuple[str, int, str]]:
    """Yield for each target how many events diverged, and the first of them in words."""
    results = document.replay.results if document.replay is not None else None
    if results is None:
        return
    words = {
        target: "; ".join(" ".join(pair).strip() for pair in explain_divergence(target, found))
        for target, found in first_divergences(document)
    }
    for target in document.targets:
        count = sum(each.count for each in results.diverged if each.target == target.index)
        yield target.name, count, words.get(target.name, "")


def _element(tag: str, text: str = "", **attributes: str) -> ET.Element:
    element = ET.Element(tag, {name: _clean(value) for name, value in attributes.items()})
    element.text = _clean(text) or None
    return element


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
