"""Figures for Prometheus while a run goes on, and the dashboard that draws them."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from replayer.measure.record import load_run
from tests.behaviour.parts import free_port, wait_for
from tests.behaviour.shell import Shell, make_shell

DASHBOARD = Path(__file__).parents[2] / "scenarios" / "dashboards" / "grafana.json"
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """What a run served as text and as OpenMetrics, shortly before its end, and its folder."""
    shell = make_shell(tmp_path_factory.mktemp("home"))
    shell.target()
    port = free_port()
    process = shell.start(
        *("run", "tiny.yaml", "--target", "here=mount", "-t", "5m", "-o", "out"),
        *("--metrics", str(port)),
    )
    url = f"http://127.0.0.1:{port}/metrics"

    def fetch(**headers: str) -> str:
        return requests.get(url, headers=headers, timeout=10).text

    def counts() -> bool:
        try:
            return "replayer_io_bytes_total{" in fetch()
        except requests.ConnectionError:
            return False

    try:
        wait_for(counts)
        yield fetch(), fetch(**OPENMETRICS), shell.home / "out"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def samples(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }


def test_both_formats_are_what_prometheus_own_parser_takes(scraped: tuple[str, str, Path]) -> None:
    text, openmetrics, _ = scraped
    names = {family.name for family in parse_openmetrics(openmetrics)}
    assert names >= {
        "replayer_users",
        "replayer_transactions",
        "replayer_operation_duration_seconds",
    }
    assert openmetrics.rstrip().endswith("# EOF")
    assert {name for name, _ in samples(text)} >= {"replayer_users", "replayer_io_bytes_total"}


def test_buckets_are_cumulative_and_hold_every_call(scraped: tuple[str, str, Path]) -> None:
    found = samples(scraped[0])
    where = {"target": "here", "transaction": "look", "operation": "read"}
    buckets = {
        float(dict(labels)["le"]): value
        for (name, labels), value in found.items()
        if name == "replayer_operation_duration_seconds_bucket"
        and {key: value for key, value in labels if key != "le"} == where
    }
    ordered = [buckets[bound] for bound in sorted(buckets)]
    assert ordered == sorted(ordered)
    total = sum(
        value
        for (name, labels), value in found.items()
        if name == "replayer_operations_total" and where.items() <= dict(labels).items()
    )
    assert ordered[-1] == total > 0


def test_what_was_served_is_no_more_than_what_the_run_folder_holds(
    scraped: tuple[str, str, Path],
) -> None:
    text, _, folder = scraped
    served = sum(
        value for (name, _), value in samples(text).items() if name == "replayer_operations_total"
    )
    log = load_run(folder).log
    held = sum(
        histogram.count
        for key, histogram in log.histograms.items()
        if key.segment.phase == "measured" and not key.op.startswith("transaction")
    )
    assert 0 < served <= held


def test_the_dashboard_asks_for_metrics_and_labels_that_exist(
    scraped: tuple[str, str, Path],
) -> None:
    found = samples(scraped[0])
    labels_of: dict[str, set[str]] = {}
    for name, labels in found:
        labels_of.setdefault(name, set()).update(dict(labels))
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(queries) >= len(dashboard["panels"]) > 10
    for query in queries:
        asked = set(re.findall(r"replayer_\w+", query))
        assert asked, query
        assert asked <= labels_of.keys(), query
        known = set.intersection(*(labels_of[name] for name in asked))
        grouped = re.findall(r"by \(([^)]*)\)", query)
        matched = re.findall(r'(\w+)=~?"', query)
        wanted = {label.strip() for group in grouped for label in group.split(",")} | set(matched)
        assert wanted <= known, query
        for legend in re.findall(r"{{(\w+)}}", str(dashboard)):
            assert legend in {label for labels in labels_of.values() for label in labels}


def test_a_port_that_is_none_is_refused_with_a_line(shell: Shell) -> None:
    done = shell.run("run", "tiny.yaml", "--metrics", "here:there")
    assert done.code == 2
    assert "the port must be a number" in done.err
