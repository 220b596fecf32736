"""What is said of a load beside a neighbour, from simulated samples: slower, or no loss shown."""

import json
import random
from pathlib import Path

import pytest

from replayer.measure.neighbour import Done, Neighbour, Pair
from replayer.measure.record import load_run
from replayer.report.comparing import compare
from replayer.report.composition import compose
from replayer.report.document import Document
from replayer.report.first_screen import render_first_screen
from tests.unit.runs import RunWriter, make_load, make_run, make_target

SECONDS = 6
ROUNDS = 4
DONE = Done(
    target=1,
    turns=ROUNDS,
    seconds=30.0,
    transactions=590,
    errors=2,
    unbegun=10,
    rate_per_s=19.7,
    p95_ns=42_000_000,
)
NEIGHBOUR = Neighbour(
    name="uploads",
    scenario="uploads.yaml",
    rate_per_s=20.0,
    pairs=(Pair(alone=0, beside=1),),
    done=(DONE,),
)


def composed(
    path: Path,
    *times: float,
    neighbour: Neighbour = NEIGHBOUR,
    names: tuple[str, ...] = ("nfs", "nfs+uploads"),
    seed: int = 1,
) -> Document:
    """Compose a run whose settings take so many times as long, with some noise in each round."""
    generator = random.Random(seed)  # noqa: S311 - no secret
    writer = RunWriter(path)
    for place in range(ROUNDS * len(names)):
        number, target = divmod(place, len(names))
        factor = times[target] * generator.lognormvariate(0, 0.02)
        for second in range(SECONDS):
            begin = float(place * SECONDS + second)
            samples = [int(1e6 * factor * generator.lognormvariate(0, 0.1)) for _ in range(40)]
            writer.transaction("save", samples, f"{target}/{number}", (begin, begin + 1))
            writer.call("save", f"{target}/{number}", (begin, begin + 1))
    targets = tuple(make_target(index, name) for index, name in enumerate(names))
    load = make_load(rounds=ROUNDS)
    writer.write(make_run(targets=targets, neighbour=neighbour, load=load))
    (path / "plan.json").write_text(json.dumps({"name": "pages"}))
    return compose(load_run(path))


def test_a_loss_is_told_by_its_ratio_and_interval(tmp_path: Path) -> None:
    document = composed(tmp_path, 1.0, 2.0)
    (answer,) = document.answer
    start, p50, p95 = "save p50 is ", answer.split(" times")[0], answer.split("p95 ")[1]
    assert float(p50.removeprefix(start)) == pytest.approx(2.0, rel=0.05)
    assert float(p95.split(" ")[0]) == pytest.approx(2.0, rel=0.1)
    assert " times as long beside uploads at 20/s (" not in answer  # the interval comes first
    assert "; 95 %) beside uploads at 20/s, p95 " in answer


def test_a_page_and_a_comparison_say_the_loss_and_recommend_no_setting(tmp_path: Path) -> None:
    document = composed(tmp_path, 1.0, 2.0)
    assert compare([load_run(tmp_path)]).headline == document.answer


def test_what_becomes_quicker_is_told_by_the_same_ratio(tmp_path: Path) -> None:
    (answer,) = composed(tmp_path, 2.0, 1.0).answer
    ratio = float(answer.removeprefix("save p50 is ").split(" times")[0])
    assert ratio == pytest.approx(0.5, rel=0.05)


def test_settings_that_are_alike_show_no_loss(tmp_path: Path) -> None:
    """Of 20 pairs that are equal, at most one says otherwise (95 %)."""
    told = [composed(tmp_path / str(seed), 1.0, 1.0, seed=seed).answer for seed in range(20)]
    quiet = [one for (one,) in told if one.startswith("beside uploads at 20/s no loss of save is")]
    assert len(quiet) >= 19
    assert all("would have been" in one for one in quiet)


def test_each_target_has_a_sentence_of_its_own(tmp_path: Path) -> None:
    pairs = (Pair(alone=0, beside=1), Pair(alone=2, beside=3))
    done = (DONE, DONE.model_copy(update={"target": 3}))
    neighbour = NEIGHBOUR.model_copy(update={"pairs": pairs, "done": done})
    names = ("nfs", "nfs+uploads", "disk", "disk+uploads")
    document = composed(tmp_path, 4.0, 12.0, 1.0, 1.0, neighbour=neighbour, names=names)
    nfs, disk = document.answer
    assert "beside uploads at 20/s on nfs" in nfs
    assert float(nfs.removeprefix("save p50 is ").split(" times")[0]) == pytest.approx(3, rel=0.1)
    assert disk.startswith("beside uploads at 20/s on disk no loss of save is shown")


@pytest.mark.parametrize(
    ("did", "why"),
    [
        ({"errors": 590}, "no transaction of it succeeded"),
        ({"errors": 100}, "100 of its 590 transactions failed"),
        ({"unbegun": 100}, "100 of its 690 arrivals never started"),
        (None, "it had no turn"),
    ],
)
def test_another_neighbour_than_was_asked_for_gives_no_figure(
    tmp_path: Path, did: dict[str, int] | None, why: str
) -> None:
    done = () if did is None else (DONE.model_copy(update=did),)
    document = composed(tmp_path, 1.0, 2.0, neighbour=NEIGHBOUR.model_copy(update={"done": done}))
    assert document.verdict.exit_code == 4
    (answer,) = document.answer
    assert answer.startswith("cannot be decided here: the neighbour of nfs+uploads was not ")
    assert why in answer


def test_the_first_screen_says_what_the_neighbour_did(tmp_path: Path) -> None:
    text = render_first_screen(composed(tmp_path, 1.0, 2.0))
    assert "uploads at 20/s on nfs+uploads: 19.7/s done, p95 42.0 ms, 2 errors, 10 never" in text
