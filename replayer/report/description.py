"""What was measured, in words for every form of report: a headline, then lines of label and text.

Targets, machines, load, verification and health. Tables of figures are elsewhere.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from replayer.errors import EXIT_ENVIRONMENT
from replayer.measure.clients import Client, ClientLoss, machines_of, with_kinds
from replayer.measure.cpus import count_cpus, differ_in_cpus
from replayer.measure.duet import Duet
from replayer.measure.facts import MachineFacts, MountFacts
from replayer.measure.health import SHOWN_SHARE, Health
from replayer.measure.pacing import say_unfinished
from replayer.measure.run import CloudMetric, CloudUnit, Target, part_in_words
from replayer.measure.summarise import OUTSIDE
from replayer.measure.summary import TransactionSummary, find_sweeps
from replayer.measure.units import (
    NS_PER_S,
    format_about,
    format_bytes,
    format_count,
    format_many,
    format_number,
    format_ratio,
    format_seconds,
    format_share,
    format_time_ns,
)
from replayer.measure.verification import Verification, WrongBlocks
from replayer.report.claims import claim_notes, say_unranked
from replayer.report.document import Document, Incident
from replayer.report.findings import sentences
from replayer.report.loss import describe_done
from replayer.report.replay import describe_traces
from replayer.verdict.judgement import Judgement


def describe_machines(machines: Sequence[MachineFacts]) -> str:
    """Return in one line what the machines of all processes have, and in what they differ."""
    hosts = len({machine.host for machine in machines})
    several, all_of_them, each = (
        (f"{hosts} machines: ", " in all", " each") if hosts > 1 else ("", "", "")
    )
    kernels = each_once(f"{machine.kernel} {machine.architecture}" for machine in machines)
    cpus = format_many(count_cpus(machines), "CPU")
    memory = each_once(format_bytes(machine.memory_bytes) for machine in machines)
    container = ", in a container" * any(machine.container for machine in machines)
    versions = each_once(machine.replayer for machine in machines)
    return (
        f"{several}{kernels}, {cpus}{all_of_them}, {memory} memory{each}{container}, "
        f"replayer {versions}"
    )


def each_once(words: Iterable[str]) -> str:
    """Return what differs, side by side, in an order that does not depend on who came first."""
    return " or ".join(sorted(set(words)))


def describe_verification(found: Verification) -> str:
    """Return how much was checked, what was wrong and what it cost, in one line."""
    bad = _kinds(found.wrong_blocks)
    price = "" if found.ns_per_byte is None else f", {found.ns_per_byte:.2f} ns a byte"
    mixed = f", {format_bytes(found.mixed_bytes)} written meanwhile" if found.mixed_bytes else ""
    blind = "; names became unclear, and nothing was claimed from then on" if found.blind else ""
    return (
        f"{format_count(found.reads)} reads: {format_bytes(found.verified_bytes)} checked, "
        f"{format_bytes(found.unverified_bytes)} not{mixed}; wrong blocks: {bad}; "
        f"{format_time_ns(found.time_ns)} of all users{price}, in no call's time{blind}"
        f"{_last(found)}"
    )


def _kinds(blocks: WrongBlocks) -> str:
    kinds = blocks.model_dump()
    bad = ", ".join(f"{format_count(count)} {kind}" for kind, count in kinds.items() if count)
    return bad or "none"


def _last(found: Verification) -> str:
    last = found.last
    if last is None:
        return ""
    what = "names of files (those of one name count once)" if found.by_name else "files"
    checked = f"{format_bytes(last.verified_bytes)} checked, {format_bytes(last.unverified_bytes)}"
    cached = f", {format_bytes(last.cached_bytes)} of it from the client's page cache"
    amounts = {
        "of which nothing is certain": last.unclear_files,
        "left unread": last.left_files,
        "not to be read": last.failed_files,
        "whose fsync failed": last.unsynced_files,
    }
    others = "".join(f", {format_count(n)} {what}" for what, n in amounts.items() if n)
    first = next((f"; the first: {each.outcome} {each.path}" for each in last.wrong_files), "")
    return (
        f"; read back at the end: {format_count(last.files)} {what}, {checked} not"
        f"{cached if last.cached_bytes else ''}{others}; wrong blocks: "
        f"{_kinds(last.wrong_blocks)}{first}; {format_time_ns(last.took_s * NS_PER_S)}"
    )


EARLY_SHARE = 0.9  # chosen: what ends a little before its time has ended in time
_SHORT = 12  # hexadecimal digits of a fingerprint that a person compares: chosen


def describe_verdict(document: Document) -> str:
    """Return the verdict in one line."""
    verdict = document.verdict
    held = sum(judgement.outcome == "pass" for judgement in verdict.judgements)
    total = len(verdict.judgements)
    limits = f"{held} of {total} threshold checks hold" if total else "no thresholds were set"
    return f"{verdict.outcome.upper()}  {document.plan.name}: {limits}"


def describe_judgement(judgement: Judgement, targets: int) -> str:
    """Return one judged threshold in one line, naming the target where there are several."""
    named = targets == 1 or judgement.threshold.startswith(f"{judgement.target}:")
    where = "" if named else f" on {judgement.target}"
    return f"{judgement.threshold}{where}: {judgement.says}  ({judgement.source})"


def describe_run(document: Document) -> Iterator[tuple[str, str]]:
    """Yield label and text of everything that a reader must know to compare the figures."""
    for target in document.targets:
        yield from _target(target)
    load = document.load
    yield "cache", f"{document.cache.asked}: {document.cache.procedure}"
    who = with_kinds(format_count(load.users), document.user_kinds)
    yield "users", f"{who}, {load.loop} loop: {load.pace}"
    yield "time", _time(document)
    yield from describe_neighbour(document)
    if document.duet is not None:
        yield "duet", describe_duet(document.duet)
    plan = document.plan
    if document.replay is not None:
        yield from describe_traces(document.replay)
    for part in plan.parts:
        yield "a part only", part_in_words(part)
    yield "plan", f"{plan.scenario}, seed {plan.seed}, fingerprint {plan.fingerprint[:_SHORT]}"
    yield "client", describe_machines(machines_of(document.clients, document.machine))
    yield from describe_clients(document)
    if document.health is not None:
        yield "harness", _harness(document)
    if document.verification is not None:
        yield "verified", describe_verification(document.verification)
    yield from (("credits", describe_metric(each)) for each in document.credits)
    ended = f" to {document.ended}" if document.ended else ""
    yield "run", f"{document.id}, {document.status}, {document.began}{ended}"


def describe_neighbour(document: Document) -> Iterator[tuple[str, str]]:
    """Yield what the neighbour did in each setting in which it ran."""
    neighbour = document.neighbour
    if neighbour is not None:
        names = {target.index: target.name for target in document.targets}
        for done in neighbour.done:
            yield "neighbour", describe_done(neighbour, done, names[done.target])


def describe_metric(found: CloudMetric) -> str:
    """Say in a sentence what a cloud's metric was during a run."""
    whole = f"{format_many(found.points, 'point')} of {found.file}"
    if not found.values:
        spans = f", {found.first} to {found.last}," if found.first else ""
        return f"{found.metric}: none of the {whole}{spans} lies within the run"
    first, last, low, high = (
        show_metric(found.unit, value)
        for value in (found.values[0], found.values[-1], min(found.values), max(found.values))
    )
    return (
        f"{found.metric}: {first} at its begin, {last} at its end, {low} to {high} within it "
        f"({len(found.values)} of the {whole})"
    )


def show_metric(unit: CloudUnit, value: float) -> str:
    """Return a value of a cloud's metric with its unit."""
    if unit == "bytes":
        return format_bytes(value)
    return f"{format_number(value)} {'%' if unit == 'percent' else unit}"


def describe_duet(duet: Duet) -> str:
    """Say that both targets were measured at the same time, and what that did to each."""
    beside = (
        f"{each.figure} of {each.target} {format_ratio(each.ratio)} times"
        f"{_between(each.low, each.high)}"
        for each in duet.figures
    )
    told = ", ".join(beside) or "too little was measured"
    return f"both targets at the same time; beside the other, compared with alone: {told}"


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({format_ratio(low)} to {format_ratio(high)})"


def describe_incident(incident: Incident) -> str:
    """Return an incident in one line."""
    is_within = incident.transaction not in {None, "", OUTSIDE}
    within = f"{incident.transaction}/" if is_within else ""
    took = None if incident.time_ns is None else format_time_ns(incident.time_ns)
    how = "  ".join(found for found in (incident.outcome, took) if found is not None)
    return (
        f"{incident.at_s:9.3f} s  {incident.target}  {within}{incident.op}  {how}  {incident.path}"
    )


def footnotes(document: Document) -> Iterator[str]:
    """Yield what a reader of the figures has to know about them."""
    yield (
        "times are of what succeeded; a transaction's from its intended start to its end; "
        "\N{EN DASH}: too few samples (p95 needs 20, p99 100, p99.9 1,000) or none"
    )
    if document.finds_ends:
        yield (
            f"{', '.join(document.finds_ends)}: the last call on each file moves nothing, it finds "
            "the end; counts and times hold these calls too"
        )
    yield from client_notes(document)
    yield from unfinished(document)
    yield from say_lost(document)


def say_lost(document: Document) -> Iterator[str]:
    """Yield how many lines of the run folder could not be read, if any."""
    lost = document.lost
    total = lost.histograms + lost.timeline + lost.events
    if total:
        yield f"{format_count(total)} lines of the run folder were cut short and left out"


def unfinished(document: Document) -> Iterator[str]:
    """Yield, for each target, which transactions had not ended when its turn did, and their age."""
    yield from filter(None, map(say_unfinished, document.summary.targets))


def ranking_notes(document: Document) -> Iterator[str]:
    """Yield what is not ranked, and what the claims of the ranking are worth."""
    yield from say_unranked(document.unranked)
    if document.ranking:
        claims = {place.claim for ranked in document.ranking for place in ranked.standings}
        yield from claim_notes(document.load.rounds, claims)
        if document.load.duet:
            yield (
                "both targets were measured at the same time: seconds are resampled in pairs, and "
                "rounds lie apart if they differ the same way (the sign test, all of up to 7)"
            )


def _target(target: Target) -> Iterator[tuple[str, str]]:
    for number, mount in enumerate(target.mounts):
        yield f"target {target.name}" if number == 0 else "  also at", _mount(mount)
    how = {
        "jailed": "one system call per op",
        "guarded": "each path resolved first, two to three system calls per op",
        "fenced": "fio's own calls, which the kernel (Landlock) lets change nothing elsewhere",
        "checked": "fio's own calls, kept here by its checked job file alone",
    }
    yield "  confined", f"{target.confinement}: {how[target.confinement]}"
    promise = target.guarantee
    yield "  writes", f"{promise.says} [{promise.source}]"
    if promise.unseen is not None:
        yield "  unseen", promise.unseen


def _mount(mount: MountFacts) -> str:
    options = ",".join(mount.all_options)
    age = "" if mount.mounted_s is None else f"mounted {format_about(mount.mounted_s)} before, "
    return (
        f"{mount.path}: {mount.filesystem} {mount.source} on {mount.mount_point} ({options}), {age}"
        f"{format_bytes(mount.space.bytes_free)} of {format_bytes(mount.space.bytes_total)} free"
    )


def _time(document: Document) -> str:
    load = document.load
    asked = []
    if load.duration_s is not None:
        asked.append(f"{format_seconds(load.duration_s)} per target")
    if load.transactions_per_user is not None:
        each = load.transactions_per_user
        asked.append(f"{format_many(each, 'transaction')} per user")
    rounds = format_many(load.rounds, "round")
    measured = ", ".join(
        f"{target.name} {format_seconds(target.overall.measured_s)}"
        for target in document.summary.targets
    )
    warm = f", warm-up {format_seconds(load.warm_up_s)}" if load.warm_up_s else ""
    early = ", then the users had made their transactions" if _was_over_early(document) else ""
    why = "" if document.ended_by is None else f"; {document.ended_by}"
    length = " or ".join(asked) or "no end given"
    return f"{length}, {rounds}{warm}; measured: {measured}{early}{why}"


def _was_over_early(document: Document) -> bool:
    """Whether transactions ended a run well before the time that was asked for."""
    load = document.load
    if load.duration_s is None or load.transactions_per_user is None:
        return False
    if document.status != "finished" or (document.health and document.health.users_given_up):
        return False
    least_s = EARLY_SHARE * load.duration_s
    return any(target.overall.measured_s < least_s for target in document.summary.targets)


def _harness(document: Document) -> str:
    health = document.health
    if health is None:
        return ""
    own = "" if health.overhead_ns is None else f", {health.overhead_ns:.0f} ns own cost an op"
    pauses = f" ({format_share(health.outside_cpu_share)} outside of calls, as planned)"
    paused = pauses if health.outside_ns else ""
    worked = "working" if health.outside_ns else "call"
    waited = f"{format_share(health.waiting_share)} of {worked} time waiting for a CPU"
    if health.run_queue_delay_ns is None:
        calls = format_time_ns(health.in_call_ns)
        waited = f"{calls} in calls, too short to tell the time waiting for a CPU"
    beside = _beside(health)
    return (
        f"{format_share(health.client_cpu_share)} of the CPUs used{paused}{beside}, {waited}{own}"
    )


def _beside(health: Health) -> str:
    """Say how much of the CPUs others used, if it was enough to delay users."""
    shares = (("other programs", health.others_cpu_share), ("steal", health.stolen_cpu_share))
    return "".join(
        f", {who} {format_share(share)}"
        for who, share in shares
        if share is not None and share >= SHOWN_SHARE
    )


def say_verdict(document: Document) -> str:
    """Say in a sentence what the run proves."""
    verdict = document.verdict
    judged = verdict.judgements
    if verdict.exit_code == EXIT_ENVIRONMENT:
        return f"Do not decide by this run: {verdict.reasons[0]}"
    if verdict.outcome == "fail":
        missed = [found for found in judged if found.outcome == "fail"]
        first = describe_judgement(missed[0], len(document.targets))
        return f"Not good enough: {len(missed)} of {len(judged)} thresholds failed, first {first}"
    if verdict.outcome == "inconclusive":
        open_ones = [found.says for found in judged if found.outcome == "inconclusive"]
        why = next(iter((*verdict.reasons, *open_ones)), "too little was measured")
        return f"Do not decide by this run: {why}"
    kept = f"{len(judged)} of {len(judged)} thresholds hold"
    alarm = next(say_alarms(document), None)
    if alarm is not None:
        limits = kept if judged else "no thresholds were set"
        return f"Look closer before you decide: {limits}, but there was a {alarm}"
    if not judged:
        return "No problem was found; no thresholds were set"
    return f"Good enough: {kept}"


def say_figures(document: Document) -> Iterator[str]:
    """Say in a sentence each what users of a target wait.

    For what they do most; where that is one size of several, for the smallest and the largest.
    """
    for target in document.summary.targets:
        found = {item.name: item for item in target.overall.transactions}
        most = max(found.values(), key=lambda item: item.count, default=None)
        if most is None:
            continue
        sweep = next((each for each in find_sweeps([*found]) if most.name in each.sizes), None)
        ends = [most]
        if sweep is not None:
            smallest, *_, largest = sweep.sizes
            ends = [found[smallest], found[largest]]
        waits = "; ".join(filter(None, map(_wait, ends)))
        if waits:
            yield f"{target.name}: {waits}"


def _wait(transaction: TransactionSummary) -> str | None:
    half, slow = transaction.latency.p50_ns, transaction.latency.p95_ns
    if half is None:
        return None
    tail = f", p95: {format_time_ns(slow)}" if slow is not None else ""
    return f"{transaction.name} p50: {format_time_ns(half)}{tail}"


def say_alarms(document: Document) -> Iterator[str]:
    """Say in a sentence what makes the figures as a whole misleading, if anything: the worst."""
    alarms = (found for found in sentences(document.analysis) if found.weight == "alarm")
    yield from (f"{found.label}: {found.short or found.text}" for found in islice(alarms, 1))


UNKNOWN = "{} clients began; how much came from each is written at the end, and none is there"
Figure = tuple[int, str]
"""A target and a transaction."""


def describe_clients(document: Document) -> Iterator[tuple[str, str]]:
    """Yield who measured, and how much of the figures is whose."""
    if not document.clients:
        return
    left = sum(client.status == "finished" for client in document.clients)
    end = f"{left} of {len(document.clients)} to the end"
    yield "clients", UNKNOWN.format(len(document.clients)) if _is_open(document) else end
    names = _names(document)
    for client in document.clients:
        shares = ", ".join(
            f"{names[target, name]} {format_count(count)}"
            for (target, name), count in _shares(client).items()
            if (target, name) in names
        )
        paths = ", ".join(path for paths in client.paths for path in paths)
        users = format_many(client.users, "user")
        who = f"{_process(document, client)}, {users} on {paths}"
        losses = "".join(f"; {text}" for text in _losses(client))
        told = shares or ("not told yet" if _is_open(document) else "nothing")
        yield f"  worker {client.number}", f"{who}: {told}{losses}"


def client_notes(document: Document) -> Iterator[str]:
    """Yield from how many clients the figures come, and which of them come from fewer."""
    total = len(document.clients)
    if not total:
        return
    if _is_open(document):
        yield UNKNOWN.format(total)
        return
    by_count: dict[int, list[str]] = {}
    for figure, name in _names(document).items():
        sources = sum(_shares(client).get(figure, 0) > 0 for client in document.clients)
        by_count.setdefault(sources, []).append(name)
    if set(by_count) <= {total} and any(map(_lacks_some, document.clients)):
        yield f"figures come from {total} of {total} clients, not from all of them all the time"
    elif set(by_count) <= {total}:
        yield f"every figure comes from {total} of {total} clients"
    else:
        parts = (f"{', '.join(by_count[n])} from {n}" for n in sorted(by_count, reverse=True))
        yield f"of {total} clients the figures come from: {'; '.join(parts)}"
    for client in document.clients:
        for loss, text in zip(client.losses, _losses(client), strict=True):
            yield f"worker {client.number} was {text}: {_missing(loss, total)}"


def _lacks_some(client: Client) -> bool:
    """Whether some of a client's figures may be missing."""
    return client.status == "lost" or any(loss.measuring for loss in client.losses)


def _missing(loss: ClientLoss, total: int) -> str:
    """Say which figures are not those of all clients."""
    if loss.measuring:
        when = "from then on" if loss.back_s is None else "of that time"
        return f"figures {when} come from {total - 1} of {total} clients or fewer"
    if loss.back_s is None:
        return "its last figures may be missing"
    return "nothing was measured meanwhile"


def client_titles(document: Document) -> tuple[str, ...]:
    """Return the titles of a table of the clients."""
    return ("client", "machine", "users", *_names(document).values(), "to the end")


def client_rows(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield a row for each client: how many transactions of each figure are its own."""
    if _is_open(document):
        return
    for client in document.clients:
        shares = _shares(client)
        counts = (format_count(shares.get(figure, 0)) for figure in _names(document))
        end = "; ".join(_losses(client)) or ("yes" if client.status == "finished" else "lost")
        machine = _process(document, client)
        yield (f"worker {client.number}", machine, format_count(client.users), *counts, end)


def _process(document: Document, client: Client) -> str:
    """Say which process it is, and on which CPUs where that is not the same for all."""
    machine = client.machine
    who = f"{machine.host}, process {client.pid}"
    if not differ_in_cpus(machines_of(document.clients, document.machine)):
        return who
    which = "" if machine.cpu_list is None else f" ({machine.cpu_list})"
    return f"{who}, {format_many(machine.cpus, 'CPU')}{which}"


def _is_open(document: Document) -> bool:
    """Whether the run goes on, or its master was killed."""
    return any(client.status == "working" for client in document.clients)


def _names(document: Document) -> dict[Figure, str]:
    """Return the figures, and what each is called here."""
    several = len(document.targets) > 1
    return {
        (target.index, found.name): f"{target.name}/{found.name}" if several else found.name
        for target in document.summary.targets
        for found in target.overall.transactions
    }


def _shares(client: Client) -> dict[Figure, int]:
    return {(share.target, share.transaction): share.count for share in client.shares}


def _losses(client: Client) -> Iterator[str]:
    for loss in client.losses:
        back = "" if loss.back_s is None else f", back at {loss.back_s:.1f} s"
        yield f"lost at {loss.at_s:.1f} s ({loss.why}){back}"
