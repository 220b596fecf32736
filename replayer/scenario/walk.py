"""Every step of a list of steps, however deeply nested, with the key that leads to it."""

from collections.abc import Iterator, Sequence

from replayer.scenario.document import Key
from replayer.scenario.steps import Choose, Each, For, Pipeline, Repeat, StepPart, Until


def walk_steps(steps: Sequence[StepPart], key: Key) -> Iterator[tuple[Key, StepPart]]:
    """Yield each step with its key, those inside a step after it."""
    for index, step in enumerate(steps):
        yield (*key, index), step
        for inner_key, inner in blocks_of(step, (*key, index)):
            yield from walk_steps(inner, inner_key)


def blocks_of(step: StepPart, key: Key) -> list[tuple[Key, Sequence[StepPart]]]:
    """Return the lists of steps inside a step, each with its key."""
    match step:
        case Repeat() | For() | Until():
            return [((*key, step.do, "steps"), step.steps)]
        case Choose():
            return [
                ((*key, "choose", index, "steps"), branch.steps)
                for index, branch in enumerate(step.branches)
            ]
        case Pipeline():
            return [((*key, "pipeline"), step.stages)]
        case Each():
            named = (("file", step.file), ("directory", step.directory), ("link", step.link))
            return [((*key, "each", name), steps) for name, steps in named if steps]
        case _:
            return []
