"""What is served of several runs of one process, as a page has them."""

from replayer._native import Histogram, Interval, Row
from replayer.run.ledger import Ledger
from replayer.run.metrics import Meter, render_metrics
from replayer.run.progress import Tick


def measured(target: int, count: int) -> Interval:
    times = Histogram()
    for _ in range(count):
        times.record(1000)
    row = Row(target, 0, "measured", "look", "transaction", "ok", True, 0, times)  # noqa: FBT003
    return Interval(0, 1_000_000_000, 1, (row,))


def test_figures_are_of_their_target_whatever_others_a_run_has() -> None:
    meter = Meter()
    for targets, counts in ((("near", "far"), (3, 5)), (("far",), (7,))):
        meter.see(Tick("measured", 1, None, Ledger(), targets))
        for target, count in enumerate(counts):
            meter.add(measured(target, count))
        meter.see(None)
    text = render_metrics(meter, "")[0].decode()
    served = {
        line.rsplit(" ", 1)[0].split('target="')[1].split('"')[0]: float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith("replayer_transactions_total{")
    }
    assert served == {"near": 3, "far": 12}
