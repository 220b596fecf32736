"""What had not ended when its turn did, in every form of report."""

import csv
import html
import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

from replayer.measure.record import load_run
from replayer.measure.run import StatedThreshold
from replayer.report.composition import compose
from replayer.report.forms import render_csv
from replayer.report.html import render_html
from replayer.report.json_form import render_json
from replayer.report.junit import render_junit
from replayer.report.markdown import render_markdown
from replayer.report.table import render_table
from tests.unit.runs import RunWriter, make_run


def test_every_form_says_that_a_maximum_is_a_bound(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("stream", [10**10] * 200)
    writer.call("stream")
    writer.record("0/0/measured/stream/transaction/cancelled/expected", [40 * 10**9])
    limit = StatedThreshold(text="stream.max < 60s", source="--threshold")
    record = load_run(writer.write(make_run(thresholds=(limit,))))
    document = compose(record)
    bound = "\N{GREATER-THAN OR EQUAL TO} 40.0 s"
    said = "1 transaction on local had not ended when its turn did: stream had lasted 40.0 s"
    page = html.unescape(render_html([record]))
    for text in (render_table(document), render_markdown(document), page):
        row = next(line for line in text.splitlines() if "stream" in line and bound in line)
        assert bound in row
        assert said in " ".join(text.split())
    (latency, *_) = csv.DictReader(io.StringIO(render_csv(document)))
    assert latency["max_ns"] == latency["unfinished_ns"]
    assert latency["cancelled"] == "1"
    told = json.loads(render_json(document))["summary"]["targets"][0]["overall"]
    assert told["transactions"][0]["latency"]["unfinished_ns"] == int(latency["max_ns"])
    suite = ET.fromstring(render_junit(document))  # noqa: S314 - our own
    (error,) = suite.iter("error")
    assert error.attrib["message"].startswith(bound)
    assert said in (suite.findtext(".//system-out") or "")
