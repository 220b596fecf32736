"""Stages side by side leave what the reference leaves, which does one after the other."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.observation import (
    Document,
    fresh_folder,
    run_native,
    run_reference,
    seen_by_reference,
)
from tests.unit.engine.drafts import Drafts

Step = dict[str, Any]

ENTRY, MADE, DRAWN = range(3)
USERS = 2
drafts = Drafts()


def bind(slot: int, *parts: object) -> Step:
    return drafts.name(slot, {"user": True}, "-", {"seq": True}, "-", {"path_of": ENTRY}, *parts)


def write(total: Step) -> Step:
    return drafts.call("write", file=MADE, total=total, block=drafts.const(1000))


def make(draw: Step) -> list[Step]:
    """Make a file and one of a drawn name."""
    return [
        bind(MADE),
        drafts.open_new(MADE),
        write(draw),
        drafts.call("close", file=MADE),
        bind(DRAWN, "-", {"hex": 6}),
        drafts.call("mkdir", path=DRAWN, mode=0o755),
    ]


def rewrite(draw: Step) -> list[Step]:
    """Write over the file that the stage before has made, and look at one that a picker knows."""
    return [
        bind(MADE),
        drafts.call("open", path=MADE, flags=0o2, mode=None),
        write(draw),
        {"do": "bind", "slot": DRAWN, "pick": 0},
        drafts.call("access", path=DRAWN, mode=0),
    ]


DRAW = st.one_of(
    st.builds(drafts.const, st.integers(0, 3000)),
    st.just({"uniform": [0, 5000]}),
    st.just({"table": 0}),
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A plan whose users go through a dataset in two to four stages, the first of which makes."""
    makers = [make, *draw(st.lists(st.just(rewrite), min_size=1, max_size=3))]
    stages = [
        {
            "do": "each",
            "dataset": 0,
            "slot": ENTRY,
            "reverse": reverse,
            "f": maker(draw(DRAW)),
            "d": [],
            "l": [],
        }
        for reverse in [draw(st.booleans())]
        for maker in makers
    ]
    pipeline = {"do": "pipeline", "steps": stages}
    drawn_between = [{"do": "bind", "slot": DRAWN, "pick": 0}]
    sequential = {"dataset": 0, "types": "f", "kind": "sequential"}
    document = drafts.document(
        [*drawn_between, pipeline, *drawn_between],
        seed=draw(st.integers(0, 1 << 32)),
        users=USERS,
        tables=[[1, 10, 4000]],
        stop={"duration_ns": None, "transactions": draw(st.integers(1, 3))},
    )
    if draw(st.booleans()):
        document["pickers"] = [sequential]
    return document


@settings(deadline=None)
@given(document=documents(), round_number=st.integers(0, 2))
def test_a_pipeline_does_what_the_reference_does(
    mount: Path, document: Document, round_number: int
) -> None:
    with fresh_folder(mount) as here, fresh_folder(mount) as there:
        run = run_reference(document, there, round_number)
        expected = seen_by_reference(run, there)
        observed = run_native(document, here, round_number)
    assert observed == expected
