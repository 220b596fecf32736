"""A value of another kind than its key takes is refused with its line, wherever it stands."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.plan.compile import compile_plan
from replayer.scenario.document import Key, parse_document
from replayer.scenario.loading import parse_scenario
from tests.unit.scenario.texts import changed, expect_refusal, message_of

EVERYTHING = """\
name: everything
about: Each kind of value once.
assumptions: [one]
seed: 3
users: {count: 2, ramp_up: 1s, think_time: {uniform: [1ms, 2ms]}}
duration: 2s
iterations: 5
warm_up: 1s
cache: warm
written: {compressible: 50%}
verify: false
datasets:
  files: {files: 10, sizes: {lognormal: {median: 1KiB, p95: 2KiB}}, per_directory: 5, names: "f{n}"}
  work: {directory: true, per: user, content: zeros}
  twin: {copy_of: files, under: twin, layout: false, links: {l: f0}}
mix: {look: 9, make: 1}
roles: {only: {users: 1, mix: {make: 1}}}
sequences:
  pair: [fstat, {read: {until: end, length: entry}}]
transactions:
  look:
    - bind: {from: files, kind: file, match: ["f*"]}
    - open: {from: files, pick: {zipf: 1.1}, expect: [ok, ENOENT]}
    - use: pair
    - pread: {offset: random, align: 4KiB, size: {values: [1KiB, 2KiB]}}
    - close
    - choose:
        - {weight: 2, steps: [{think: 1us}]}
        - {steps: [{stat: {from: files, pick: {hot: 80/20}}}]}
    - await: made
    - until: {since: made, every: 1ms, limit: 1s, steps: [{stat: {in: work, name: n}}], expect: any}
  make:
    - open: {in: work, name: "f{seq}", flags: [create, wronly], mode: 0o600, as: made}
    - write: {file: made, size: {size_of: made}, first: 1KiB, block: 2KiB}
    - chmod: {path: made, mode: entry}
    - chown: {path: made, uid: 1}
    - utimens: {path: made, mtime: 1s}
    - lock: {file: made, kind: shared, wait: false}
    - setxattr: {path: made, attribute: user.a, size: 8B}
    - rename: {path: made, to: {in: work, name: n, as: moved}, existing: exchange}
    - symlink: {in: work, name: l, target: n}
    - repeat: {times: 2, steps: [{mkdir: {in: work, name: "d{random}", mode: entry}}]}
    - each: {of: files, reverse: true, file: [{lstat: entry}], directory: [], link: []}
    - for: {in: work, names: [a, b], steps: [{stat: file}]}
    - signal: made
thresholds: ["look.p95 < 200ms"]
"""
ODD: list[object] = [
    *(None, True, 0, -1, 10**30, 1.5, "", "nan", "inf", "x", "10s"),
    *([], [[]], [{}], ["x"], [None], {}, {"x": 1}, {"x": []}, {"x": {"y": [1]}}),
]


def keys_of(value: object, key: Key = ()) -> Iterator[Key]:
    """Yield where there is a value, from the top down."""
    yield key
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    for part, inner in inside.items() if isinstance(inside, dict) else ():
        yield from keys_of(inner, (*key, part))


def put(value: Any, key: Key, new: object) -> object:  # noqa: ANN401 - plain values
    """Return a document with another value in a place."""
    if not key:
        return new
    twin = dict(value) if isinstance(value, dict) else list(value)
    twin[key[0]] = put(value[key[0]], key[1:], new)  # type: ignore[index]
    return twin


WHOLE = parse_document(EVERYTHING, "s.yaml").value


def test_the_scenario_can_be_run_as_it_stands() -> None:
    compile_plan(parse_scenario(EVERYTHING, "s.yaml"))


@given(key=st.sampled_from([*keys_of(WHOLE)]), odd=st.sampled_from(ODD))
def test_any_value_anywhere_is_taken_or_refused_in_one_line(key: Key, odd: object) -> None:
    message = message_of(json.dumps(put(WHOLE, key, odd)))
    assert message == "" or message.startswith("s.yaml")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mix:", "written: [random]\nmix:", "7: written must be random, zeros or"),
        ("per: user", "content: [zeros]", "6: datasets.work.content must be random, zeros"),
        ("uniform", "own, expect: [[ok]]", "10: transactions.look[0].open.expect a list is"),
        ("uniform", "own, expect: [ok: 1]", "10: transactions.look[0].open.expect a mapping is"),
        ("uniform", "{zipf: nan}", "10: transactions.look[0].open.pick.zipf must be a number"),
    ],
)
def test_lists_in_the_place_of_words_and_words_for_numbers_are_refused(
    old: str, new: str, message: str
) -> None:
    expect_refusal(changed(old, new), f"s.yaml:{message}", "")
