"""The examination of a path: facts, guarantee, advice and probe, and how they are told."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from replayer.doctor.advice import Advice, Service, advise, service_of
from replayer.doctor.probe import Probe, clean_command
from replayer.measure.facts import Frozen, MountFacts, collect_facts
from replayer.measure.guarantee import Guarantee, guarantee_of
from replayer.measure.units import format_bytes, format_count
from replayer.report.figures import show_time
from replayer.report.style import PLAIN, Style, fold
from replayer.run.interruption import Interruption
from replayer.run.watchdog import ask

_OPCACHE = "PHP manual, 'OPcache: Runtime Configuration'"

PHP_ADVICE = (
    Advice(
        weight="consider",
        setting="opcache.validate_timestamps=0",
        says="with 1, the default, PHP stats its scripts every opcache.revalidate_freq seconds "
        "(default 2). With 0 it does not; a deployment must then reset the cache "
        "(opcache_reset() or a reload of PHP)",
        source=_OPCACHE,
    ),
    Advice(
        weight="consider",
        setting="opcache.max_accelerated_files",
        says="the OPcache holds 10,000 scripts by default, too few for a larger site",
        source=_OPCACHE,
    ),
    Advice(
        weight="consider",
        setting="realpath_cache_ttl",
        says="resolved paths are cached for 120 s, in 4096K, by default; after that they are "
        "resolved on the mount again",
        source="PHP source, main/main.c: realpath_cache_size and realpath_cache_ttl",
    ),
)


LOCAL = frozenset({"memory", "device"})


class Examination(Frozen):
    """Everything about one path."""

    mount: MountFacts
    service: Service
    guarantee: Guarantee
    advice: tuple[Advice, ...]
    php: tuple[Advice, ...]
    """For those who run PHP from it; empty for local file systems."""
    probe: Probe | None = None
    """Null: it was not asked for, or could not be made."""


def examine(path: Path, interruption: Interruption) -> Examination:
    """Examine the mount that a folder lies on, with no call but statfs.

    Raises:
        ReplayerError: The path does not exist, its mount does not answer, or it was interrupted.
    """
    mount = ask(path, partial(collect_facts, path), interruption)
    guarantee = guarantee_of(mount)
    return Examination(
        mount=mount,
        service=service_of(mount),
        guarantee=guarantee,
        advice=advise(mount),
        php=() if guarantee.fsync in LOCAL else PHP_ADVICE,
    )


def render_examination(found: Examination, style: Style = PLAIN) -> str:
    """Render an examination as text, ending with a newline."""
    lines = (
        *_facts(found),
        *(_advice("advice", found.advice) if found.advice else ("", _NO_ADVICE)),
        *_advice("if PHP (WordPress) runs from this mount", found.php),
        *_probe(found.probe),
    )
    return style.fit("\n".join((*fold(lines, style), *_left(found.probe)))) + "\n"


def _facts(found: Examination) -> Iterator[str]:
    mount = found.mount
    options = ",".join(mount.all_options)
    kind = mount.filesystem if found.service == "other" else f"{mount.filesystem} ({found.service})"
    yield f"{mount.path}: {kind}"
    yield _row("mounted", f"{mount.source} on {mount.mount_point}")
    yield _row("options", options.replace(",", ", "))
    space = mount.space
    inodes = f", {format_count(space.inodes_free)} inodes free" if space.inodes_total else ""
    free = f"{format_bytes(space.bytes_free)} of {format_bytes(space.bytes_total)} free{inodes}"
    yield _row("space", free + (", read-only" if space.read_only else ""))
    yield _row("writes", f"{found.guarantee.says} [{found.guarantee.source}]")
    if found.guarantee.unseen is not None:
        yield _row("unseen", found.guarantee.unseen)


def _advice(title: str, advice: tuple[Advice, ...]) -> Iterator[str]:
    if not advice:
        return
    yield ""
    yield title
    for item in advice:
        yield _row(item.weight, f"{item.setting}: {item.says} [{item.source}]")


_NO_ADVICE = "advice: none for the options that are visible here"


def _probe(probe: Probe | None) -> Iterator[str]:
    if probe is None:
        return
    yield ""
    if probe.ops:
        yield from _timed(probe)
    else:
        yield "probe: no call was timed; the files took too long to create"
    if probe.slowly:
        yield _row("slow", f"answered late: {', '.join(probe.slowly)}")
    for call in probe.hung:
        yield f"  hung: {call}"


def _left(probe: Probe | None) -> Iterator[str]:
    """Yield a command that is not folded: it is there to be copied."""
    if probe is not None and probe.left is not None:
        yield f"  left behind; remove it with: {clean_command(probe.left)}"


def _timed(probe: Probe) -> Iterator[str]:
    yield f"probe: one user for {probe.seconds:.3g} s; new files, caches as they are"
    yield f"  {'':24}{'count':>9}{'errors':>8}{'p50':>10}{'p95':>10}{'max':>10}"
    for op in probe.ops:
        times = "".join(f"{show_time(time):>10}" for time in (op.p50_ns, op.p95_ns, op.max_ns))
        yield f"  {op.name:24}{format_count(op.count):>9}{format_count(op.errors):>8}{times}"
    for op in probe.ops:
        if op.errors:
            errors = ", ".join(f"{name} {count:,} times" for name, count in op.outcomes.items())
            yield f"  failed: {op.name}: {errors}"


def _row(label: str, text: str) -> str:
    return f"  {label:10}{text}"
