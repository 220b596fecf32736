"""Made-up datasets have exactly the files, bytes and shape asked for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from replayer.plan.compile import compile_entries, compile_plan
from replayer.scenario.loading import parse_scenario
from replayer.scenario.manifests import Entry


def entries_of(**dataset: Any) -> tuple[Entry, ...]:  # noqa: ANN401 - keys of a dataset
    words = ", ".join(f"{key}: {value}" for key, value in dataset.items())
    text = (
        f"name: x\nduration: 1s\ndatasets:\n  d: {{{words}}}\nmix: {{t: 1}}\n"
        "transactions:\n  t:\n    - stat: {in: d}\n"
    )
    return compile_entries(parse_scenario(text, "x.yaml"), seed=7)["d"]


@given(
    st.integers(1, 300),
    st.integers(0, 10**7),
    st.integers(1, 40),
    st.integers(0, 4),
    st.sampled_from(["", "{uniform: [0B, 9KiB]}", "{lognormal: {median: 1KiB, p95: 9KiB}}"]),
)
def test_files_and_bytes_are_exact(
    files: int, size: int, per_directory: int, depth: int, sizes: str
) -> None:
    shape = {"files": files, "bytes": f"{size}B", "per_directory": per_directory, "depth": depth}
    entries = entries_of(**shape, **({"sizes": sizes} if sizes else {}))
    made = [entry for entry in entries if entry.type == "f"]
    assert len(made) == files
    assert sum(entry.size for entry in made) == size
    homes = [entry.path.rpartition("/")[0] for entry in made]
    assert all(home.count("/") == depth - 1 for home in homes if depth)
    assert max(map(homes.count, set(homes))) <= (per_directory if depth else files)


@given(st.integers(1, 200), st.integers(1, 20), st.integers(0, 3))
def test_parents_come_before_children(files: int, per_directory: int, depth: int) -> None:
    seen = {""}
    for entry in entries_of(files=files, per_directory=per_directory, depth=depth):
        assert entry.path.rpartition("/")[0] in seen
        if entry.type == "d":
            seen.add(entry.path)


def test_sizes_alone_are_drawn_and_names_are_templates() -> None:
    entries = entries_of(files=3, sizes="{values: [5B]}", names='"img-{n}.jpg"')
    assert [(entry.path, entry.size) for entry in entries] == [
        ("img-0.jpg", 5),
        ("img-1.jpg", 5),
        ("img-2.jpg", 5),
    ]


def test_a_copy_is_the_same_tree_where_it_is_told_to_be() -> None:
    text = """
name: x
duration: 1s
datasets:
  one: {files: 4, sizes: {uniform: [1B, 9KiB]}}
  two: {copy_of: one, under: a/b, links: {now: a/b}}
mix: {t: 1}
transactions: {t: [stat: {in: one}]}
"""
    entries = compile_entries(parse_scenario(text, "x.yaml"), seed=7)
    moved = [Entry(f"a/b/{e.path}", e.type, e.size, e.mode) for e in entries["one"]]
    assert list(entries["two"][2:-1]) == moved
    assert [e.path for e in entries["two"][:2]] == ["a", "a/b"]
    assert entries["two"][-1] == Entry("now", "l", 0, 0o777, "a/b")
    compile_plan(parse_scenario(text, "x.yaml"))
