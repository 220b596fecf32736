"""Advice about a mount: what a piece of it is, and how rules of it are made.

A rule looks at options and the service and says something or nothing. Most rules are one of two
kinds: an option is set (``when_set``), or the server is somebody's (``on``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from replayer.measure import Frozen

Weight = Literal["warning", "consider", "good", "ask"]
Service = Literal["Amazon EFS", "Amazon FSx", "NFS", "other"]


class Advice(Frozen):
    """One piece of advice.

    Attributes come in the order in which they are read.
    """

    weight: Weight
    """warning: costs data or much time; consider: may help; good: as it should be; ask: only the
    server knows."""
    setting: str
    says: str
    source: str
    """The manual page or document, and its part."""


@dataclass(frozen=True)
class Options:
    """Mount options by name; those without a value have an empty one."""

    values: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """Return an option's value."""
        return self.values.get(name, default)

    def number(self, name: str) -> int | None:
        """Return an option's value as a number, None if it has none."""
        text = self.values.get(name, "")
        return int(text) if text.isdigit() else None

    def shown(self, name: str) -> str:
        """Return an option as the mount table shows it."""
        return f"{name}={self.values[name]}" if self.values[name] else name


Rule = Callable[[Options, Service], Advice | None]


def always(weight: Weight, setting: str, says: str, source: str) -> Rule:
    """Make a rule that says the same of each mount."""
    advice = Advice(weight=weight, setting=setting, says=says, source=source)
    return lambda _options, _service: advice


def when_set(option: str, weight: Weight, says: str, source: str) -> Rule:
    """Make a rule that speaks where an option (``name`` or ``name=value``) is set."""
    name, _, value = option.partition("=")
    advice = Advice(weight=weight, setting=option, says=says, source=source)
    return when(lambda options: name in options and options.text(name) == value, advice)


def when(condition: Callable[[Options], bool], advice: Advice) -> Rule:
    """Make a rule that gives one piece of advice where a condition holds."""
    return lambda options, _service: advice if condition(options) else None


def on(services: frozenset[Service], rule: Rule) -> Rule:
    """Make a rule that is asked on some services' mounts only."""
    return lambda options, service: rule(options, service) if service in services else None
