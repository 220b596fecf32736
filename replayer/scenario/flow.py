"""Judges the steps of a transaction in order: names are bound and files open before their use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from replayer.scenario.calls import CopyRange, OfEither, OfFile, OfTwoPaths, Open, StepPart, Symlink
from replayer.scenario.document import Key, nearest_hint
from replayer.scenario.model import Scenario
from replayer.scenario.places import Place, template_parts
from replayer.scenario.references import draws_of, places_of, refuse
from replayer.scenario.steps import (
    Choose,
    Each,
    For,
    Pipeline,
    Repeat,
    Replay,
    Script,
    Until,
    Use,
    blocks_of,
    walk_steps,
)

BUILT_IN = frozenset({"user", "round", "seq", "next", "random"})
"""What a template knows without a step that binds it."""

MAX_NAMES = 16
"""Slots of plan format 1."""

APART = "(to)"
"""What ``to`` is called while a call is made on two paths of one name; no name that a step has."""


@dataclass(frozen=True)
class _State:
    bound: frozenset[str] = frozenset()
    opened: frozenset[str] = frozenset()

    def binding(self, name: str) -> "_State":
        return self if name in self.bound else _State(self.bound | {name}, self.opened)

    def common(self, other: "_State") -> "_State":
        return _State(self.bound & other.bound, self.opened & other.opened)


@dataclass
class _Judge:
    scenario: Scenario
    in_stage: bool = False
    """Whether the steps are those of a stage: its thread has no others to give work to."""
    ends: dict[tuple[str, _State, bool], _State] = field(default_factory=dict)
    """Of sequences that were judged: a script uses a few of them thousands of times."""

    def block(self, steps: Sequence[StepPart], key: Key, state: _State) -> _State:
        for index, step in enumerate(steps):
            state = self.step(step, (*key, index), state)
        return state

    def step(self, step: StepPart, key: Key, state: _State) -> _State:
        match step:
            case Use():
                return self.sequence(step.sequence, state)
            case Script():
                return self.script(step, key, state)
            case Pipeline() | Replay() if self.in_stage:
                raise refuse(self.scenario, key, f"has a {step.do}: step inside a pipeline stage:")
            case Pipeline():
                return self.pipeline(step, key, state)
            case Each() if step.batch != 1:
                message = "works only in stages of a pipeline, and this each: is not one"
                raise refuse(self.scenario, (*key, "each", "batch"), message)
            case Repeat() | Choose() | Each() | For() | Until():
                return self.nested(step, key, state)
            case _:
                return self.call(step, (*key, step.do), state)

    def sequence(self, name: str, state: _State) -> _State:
        judged = (name, state, self.in_stage)
        if judged not in self.ends:
            steps = self.scenario.sequences[name]
            self.ends[judged] = self.block(steps, ("sequences", name), state)
        return self.ends[judged]

    def nested(self, step: StepPart, key: Key, state: _State) -> _State:
        self.draws(step, (*key, step.do), state)
        inside = state.binding(step.as_) if isinstance(step, Each | For) else state
        if isinstance(step, For):
            for index, name in enumerate(step.names):
                self.template(name, (*key, "for", "names", index), state)
        ends = []
        for block_key, steps in blocks_of(step, key):
            end = self.block(steps, block_key, inside)
            if not isinstance(step, Choose) and end != inside:
                end = self.block(steps, block_key, end)  # the second time round
            ends.append(end)
        return _joined(step, state, ends)

    def pipeline(self, step: Pipeline, key: Key, state: _State) -> _State:
        """Judge stages, each of which knows what it binds and opens itself, and nothing else."""
        self.in_stage = True
        for index, stage in enumerate(step.stages):
            self.nested(stage, (*key, "pipeline", index), _State())
        self.in_stage = False
        return state

    def script(self, step: Script, key: Key, state: _State) -> _State:
        for line in step.lines:
            for name in names_in(line.name):
                self.need(name, (*key, "script"), state.bound, "bound")
            state = self.sequence(line.sequence, state.binding(step.as_))
        return state

    def call(self, step: StepPart, key: Key, state: _State) -> _State:
        for place_key, place in places_of(step, key):
            state = self.place(step, place, place_key, state)
        self.draws(step, key, state)
        if isinstance(step, Symlink) and step.target is not None:
            self.template(step.target, (*key, "target"), state)
        return self.files(step, key, state)

    def place(self, step: StepPart, place: Place, key: Key, state: _State) -> _State:
        if isinstance(step, OfEither) and step.file is not None:
            return state
        if place.name is not None:
            self.template(place.name, (*key, "name"), state)
        if place.binds:
            return state.binding(place.slot)
        self.need(place.slot, (*key, "path"), state.bound, "bound")
        return state

    def files(self, step: StepPart, key: Key, state: _State) -> _State:
        if isinstance(step, Open):
            return _State(state.bound, state.opened | {step.slot})
        if isinstance(step, OfFile | OfEither) and step.file is not None:
            self.need(step.file, (*key, "file"), state.opened, "open")
        if isinstance(step, CopyRange):
            self.need(step.to, (*key, "to"), state.opened, "open")
        if isinstance(step, OfFile) and step.do == "close":
            return _State(state.bound, state.opened - {step.file})
        return state

    def draws(self, step: StepPart, key: Key, state: _State) -> None:
        for draw_key, draw in draws_of(step, key):
            if draw.size_of is not None:
                self.need(draw.size_of, (*draw_key, "size_of"), state.bound, "bound")

    def template(self, text: str, key: Key, state: _State) -> None:
        for name in names_in(text):
            self.need(name, key, state.bound, "bound")

    def need(self, name: str, key: Key, have: frozenset[str], what: str) -> None:
        if name in have:
            return
        kind, message = "names", f"uses the name {name}, which no earlier step sets"
        if what == "open":
            kind, message = "open files", f"uses the file {name} before an open step opens it"
        raise refuse(self.scenario, key, message, nearest_hint(name, sorted(have), kind=kind))


def check_flow(scenario: Scenario) -> None:
    """Check the steps of every transaction in order.

    Raises:
        ScenarioError: A name is used before it is bound, a file before it is open, or there are
            too many names.
    """
    judge = _Judge(scenario)
    for name, steps in scenario.transactions.items():
        judge.block(steps, ("transactions", name), _State())
        names = names_of(scenario.sequences, steps)
        if len(names) > MAX_NAMES:
            message = f"must use at most {MAX_NAMES} names, got {len(names)}"
            raise refuse(scenario, ("transactions", name), message, "use a name again")


def names_in(template: str) -> list[str]:
    """Return the names that a template takes from steps, in order."""
    words = [
        text.removesuffix(".name") for kind, text in template_parts(template) if kind == "part"
    ]
    return [word for word in words if word not in BUILT_IN]


def names_of(sequences: Mapping[str, Sequence[StepPart]], steps: Sequence[StepPart]) -> list[str]:
    """Return every name that steps and their sequences bind or open, in order of appearance."""
    found: dict[str, None] = {}
    for _, step in walk_steps(steps, ()):
        if isinstance(step, Use):
            found.update(dict.fromkeys(names_of(sequences, sequences[step.sequence])))
        found.update(dict.fromkeys(_names_of_paths(step)))
        if isinstance(step, Each | For | Script):
            found.setdefault(step.as_)
        if isinstance(step, Script):
            for used in {line.sequence: None for line in step.lines}:
                found.update(dict.fromkeys(names_of(sequences, sequences[used])))
    return list(found)


def _names_of_paths(step: StepPart) -> Iterator[str]:
    if isinstance(step, OfEither) and step.file is not None:
        return
    for _, place in places_of(step, ()):
        yield place.slot
    if isinstance(step, OfTwoPaths) and step.takes_over:
        yield APART


def _joined(step: StepPart, before: _State, ends: list[_State]) -> _State:
    """What surely holds after a step with blocks in it."""
    if isinstance(step, For | Until) or (isinstance(step, Repeat) and (step.times.const or 0) > 0):
        return ends[0]
    if isinstance(step, Choose):
        return reduce(_State.common, ends or [before])
    return reduce(_State.common, ends, before)
