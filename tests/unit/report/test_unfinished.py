"""What had not ended when its turn did, in every form of report."""

import csv
import html
import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

from replayer import measure, report
from tests.unit.runs import RunWriter, make_run


def test_every_form_says_that_a_maximum_is_a_bound(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("stream", [10**10] * 200)
    writer.call("stream")
    writer.record("0/0/measured/stream/transaction/cancelled/expected", [40 * 10**9])
    limit = measure.StatedThreshold(text="stream.max < 60s", source="--threshold")
    record = measure.load_run(writer.write(make_run(thresholds=(limit,))))
    document = report.compose(record)
    bound = "\N{GREATER-THAN OR EQUAL TO} 40.0 s"
    said = "1 transaction on local had not ended when its turn did: stream had lasted 40.0 s"
    page = html.unescape(report.render_html([record]))
    for text in (report.render_table(document), report.render_markdown(document), page):
        row = next(line for line in text.splitlines() if "stream" in line and bound in line)
        assert bound in row
        assert said in " ".join(text.split())
    (latency, *_) = csv.DictReader(io.StringIO(report.render_csv(document)))
    assert latency["max_ns"] == latency["unfinished_ns"]
    assert latency["cancelled"] == "1"
    told = json.loads(report.render_json(document))["summary"]["targets"][0]["overall"]
    assert told["transactions"][0]["latency"]["unfinished_ns"] == int(latency["max_ns"])
    suite = ET.fromstring(report.render_junit(document))  # noqa: S314 - our own
    (error,) = suite.iter("error")
    assert error.attrib["message"].startswith(bound)
    assert said in (suite.findtext(".//system-out") or "")
