"""YAML is read by the core schema of YAML 1.2, with the line of everything."""

import pytest

from replayer.scenario.document import Origin, parse_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("true", True),
        ("~", None),
        ("on", "on"),
        ("yes", "yes"),
        ("12:30", "12:30"),
        ("0600", "0600"),
        ("0o600", "0o600"),
        ("2026-11-21", "2026-11-21"),
        ("'12'", "12"),
        ("1e3", 1000.0),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    assert parse_document(f"a: {text}", "x").value == {"a": value}


def test_every_value_knows_its_line() -> None:
    document = parse_document("a: 1\nb:\n  - x\n  - c: 2\n    d: 3\n", "x.yaml")
    assert document.origin(("a",)) == Origin("x.yaml", 1)
    assert document.origin(("b",)) == Origin("x.yaml", 2)
    assert document.origin(("b", 1, "d")) == Origin("x.yaml", 5)
    assert document.origin(("b", 1, "unknown")) == Origin("x.yaml", 4)


def test_aliases_are_expanded() -> None:
    assert parse_document("a: &a [1, 2]\nb: *a", "x").value == {"a": [1, 2], "b": [1, 2]}
