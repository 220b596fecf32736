"""Advice about a mount: rules in, sentences out, each with where it is written.

A rule looks at facts and says something or nothing. What a client cannot see (the server's export,
a volume's throughput mode) is asked about, never guessed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from replayer.measure import Frozen, MountFacts

__all__ = ["Advice", "Options", "Rule", "Service", "advise", "options_of", "service_of"]

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


Rule = Callable[[Options, Service], Advice | None]


def advise(mount: MountFacts) -> tuple[Advice, ...]:
    """Return all advice about a mount, warnings first."""
    from replayer.doctor.rules import RULES  # noqa: PLC0415 - the rules are made of what is here

    options, service = options_of(mount), service_of(mount)
    found = list(_applied(RULES.get(_family(mount), ()), options, service))
    return tuple(sorted(found, key=lambda item: _ORDER.index(item.weight)))


_ORDER = ("warning", "consider", "ask", "good")


def options_of(mount: MountFacts) -> Options:
    """Return the options of a mount and of its file system together."""
    pairs = (option.partition("=") for option in (*mount.options, *mount.super_options))
    return Options({name: value for name, _, value in pairs})


def service_of(mount: MountFacts) -> Service:
    """Say whose server it is, as far as its name tells."""
    if _family(mount) != "nfs":
        return "other"
    host = mount.source.rpartition(":")[0].lower().rstrip(".")
    if ".efs." in host and ".amazonaws.com" in host:
        return "Amazon EFS"
    if ".fsx." in host and ".amazonaws.com" in host:
        return "Amazon FSx"
    return "NFS"


def _family(mount: MountFacts) -> str:
    if mount.filesystem in {"nfs", "nfs4"}:
        return "nfs"
    if mount.filesystem in {"ext4", "xfs", "btrfs", "ext3", "ext2", "f2fs"}:
        return "disk"
    return mount.filesystem


def _applied(rules: tuple[Rule, ...], options: Options, service: Service) -> Iterator[Advice]:
    for rule in rules:
        advice = rule(options, service)
        if advice is not None:
            yield advice
