"""How a run on several workers ended: everybody's last word, and the targets put in order."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from replayer.cluster import wire
from replayer.cluster.recorder import MergedRecorder
from replayer.cluster.worker import Worker
from replayer.cluster.worker_pool import WorkerPool
from replayer.errors import ReplayerError
from replayer.measure.clients import Client, ClientLoss, ClientShare, TaskFailure, add_task_failures
from replayer.measure.cpus import busiest_shares, share_of_all
from replayer.measure.facts import MachineFacts
from replayer.measure.health import Health, RunWarning
from replayer.measure.replay import Counted, DivergenceCount, ReplayedTarget, ReplayResults, counted
from replayer.run.prepared_run import Leftovers

CLOSE_S = 60.0  # chosen: ending ten thousand threads and sending what is left, on a busy machine
REMOVE_S = 3600.0  # chosen: millions of files on a slow mount; a sign of life is asked for as ever


NOTHING_LEFT = Leftovers((), ())


@dataclass(frozen=True)
class Outcome:
    """What the workers said at the end."""

    clients: tuple[Client, ...] = ()
    health: Health | None = None
    """Of the client that fared worst; None if none could tell."""
    replay: ReplayResults | None = None
    task_failures: tuple[TaskFailure, ...] = ()
    failure: ReplayerError | None = None
    """Why a worker's results are not whole."""
    warnings: tuple[RunWarning, ...] = ()
    leavings: Leftovers = NOTHING_LEFT


def gather_outcome(pool: WorkerPool, recorder: MergedRecorder) -> Outcome:
    """Have every worker close and tell; then have one remove the folders, or keep them."""
    found: dict[Worker, Mapping[str, Any]] = {}
    failure: ReplayerError | None = None
    # Each for itself: what one cannot do shall not cost the results of the others.
    try:
        found = pool.close_all(CLOSE_S)
    except ReplayerError as error:
        failure = error
    words = {worker.number: word for worker, word in found.items()}
    recorder.finish()
    for worker, said in found.items():
        if failure is None and said.get("error") is not None:
            failure = wire.unpack_error(said["error"], str(worker))
    leavings = _put_away(pool, words, recorder.say)
    clients = tuple(
        _client(worker, words.get(worker.number, {}), recorder) for worker in pool.workers
    )
    return Outcome(
        clients=clients,
        health=_worst(clients),
        replay=add_replays([word["replay"] for word in words.values() if word.get("replay")]),
        task_failures=add_task_failures(
            TaskFailure.model_validate(each)
            for word in words.values()
            for each in word["task_failures"]
        ),
        failure=failure,
        warnings=tuple(_losses(clients)),
        leavings=leavings,
    )


def list_clients(pool: WorkerPool, recorder: MergedRecorder) -> tuple[Client, ...]:
    """Return who works, as it is known when the run begins: a killed master writes no more."""
    found = (_client(worker, {}, recorder) for worker in pool.workers)
    return tuple(client.model_copy(update={"status": "working"}) for client in found)


def _put_away(
    pool: WorkerPool, words: Mapping[int, Mapping[str, Any]], say: Callable[[str], None]
) -> Leftovers:
    hung = any(word.get("hung") for word in words.values())
    hanging = sorted({at for word in words.values() for at in word.get("hanging", ())})
    primary = pool.primary
    if primary is None:
        kept = "replayer: the folders of --reuse are as the lost workers left them"
        return Leftovers(
            (), (kept if pool.creator is None else f"replayer: {pool.creator.leaves}",)
        )
    found: list[Any] = []
    with suppress(ReplayerError):
        told = {"hung": hung, "hanging": hanging}
        found = pool.order_to_put_away(primary, told, say, REMOVE_S)
    if not found:
        return Leftovers((), (f"replayer: {primary.leaves}",))
    return Leftovers(*(tuple(found[0][what]) for what in ("kept", "left", "losses")))


def _client(worker: Worker, word: Mapping[str, Any], recorder: MergedRecorder) -> Client:
    health = word.get("health")
    return Client(
        number=worker.number,
        machine=MachineFacts.model_validate(worker.facts["machine"]),
        pid=worker.hello["pid"],
        users=worker.facts["users"],
        paths=tuple(tuple(paths) for paths in worker.facts["paths"]),
        status="finished" if word else "lost",
        losses=tuple(_loss(worker, place, recorder) for place in range(len(worker.was_lost))),
        clock_within_ns=worker.within_ns,
        shares=tuple(
            ClientShare(target=target, transaction=name, count=count)
            for (target, name), count in sorted(worker.shares.items())
        ),
        health=None if health is None else Health.model_validate(health),
        folder=worker.folder,
    )


def _loss(worker: Worker, place: int, recorder: MergedRecorder) -> ClientLoss:
    at_s, why = worker.was_lost[place]
    back = worker.back_s[place : place + 1]
    since_s = recorder.since_s(at_s)
    return ClientLoss(
        at_s=round(since_s, 3),
        why=why,
        measuring=since_s < recorder.measured_until_s,
        back_s=round(back[0], 3) if back else None,
    )


def _losses(clients: Sequence[Client]) -> Iterator[RunWarning]:
    for client in clients:
        who = f"worker {client.number} ({client.machine.host}, process {client.pid})"
        for loss in client.losses:
            if loss.back_s is None:
                fewer = (
                    f"after that the figures come from at most {len(clients) - 1} of "
                    f"{len(clients)} clients"
                )
                rest = fewer if loss.measuring else "and its last results may be missing"
                message = (
                    f"{who} was lost at {loss.at_s:.1f} s: it {loss.why}; figures include what it "
                    f"had sent, {rest}"
                )
                hint = f"its own records are in {client.folder} on that machine"
            else:
                message = (
                    f"{who} was lost from {loss.at_s:.1f} s to {loss.back_s:.1f} s: {loss.why}"
                )
                hint = "calls in progress took that much longer, and are in the figures"
            yield RunWarning(kind="other", message=message, hint=hint)


def _worst(clients: Iterable[Client]) -> Health | None:
    """Return the health of the client that fared worst: a mean would hide it behind the others.

    Processes of one machine may share its CPUs: those that were used most count, and none of these
    processes is another program. The longest standstill counts. Users that were given up and events
    that were dropped are those of all.
    """
    known = [(each.machine, each.health) for each in clients if each.health is not None]
    if not known:
        return None
    used = [
        (machine, health.client_cpu_share, health.outside_cpu_share) for machine, health in known
    ]
    cpu_share, outside_share = busiest_shares(used)
    healths = [health for _, health in known]
    its, worst = max(known, key=lambda each: (each[1].waiting_share, each[1].own_cpu_share))
    others = worst.others_cpu_share
    if others is not None:  # to each, the clients beside it are other programs
        others = max(others + worst.client_cpu_share - share_of_all(its, used), 0.0)
    return worst.model_copy(
        update={
            "client_cpu_share": cpu_share,
            "outside_cpu_share": outside_share,
            "others_cpu_share": others,
            "stood_still_ns": max(health.stood_still_ns for health in healths),
            "users_given_up": sum(health.users_given_up for health in healths),
            "events_dropped": sum(health.events_dropped for health in healths),
        }
    )


MOST_EXAMPLES = 20  # as one engine keeps


def add_replays(found: Sequence[Mapping[str, Any]]) -> ReplayResults | None:
    """Return the sum of several workers' results; None where nothing was replayed."""
    parts = [ReplayResults.model_validate(each) for each in found]
    if not parts:
        return None
    return ReplayResults(
        performances=sum(part.performances for part in parts),
        events=sum(part.events for part in parts),
        compared=sum(part.compared for part in parts),
        matched=sum(part.matched for part in parts),
        omitted=_counts(part.omitted for part in parts),
        allowed=_counts(part.allowed for part in parts),
        diverged=_diverged(parts),
        examples=tuple(each for part in parts for each in part.examples)[:MOST_EXAMPLES],
        targets=_targets(parts),
    )


def _counts(parts: Iterable[Sequence[Counted]]) -> tuple[Counted, ...]:
    sums: Counter[str] = Counter()
    for part in parts:
        sums.update({each.name: each.count for each in part})
    return counted(sums)


def _diverged(parts: Sequence[ReplayResults]) -> tuple[DivergenceCount, ...]:
    sums: Counter[DivergenceCount] = Counter()
    for part in parts:
        for each in part.diverged:
            sums[each.model_copy(update={"count": 0})] += each.count
    return tuple(
        kind.model_copy(update={"count": count})
        for kind, count in sorted(sums.items(), key=lambda item: -item[1])
    )


def _targets(parts: Sequence[ReplayResults]) -> tuple[ReplayedTarget, ...]:
    found: dict[int, ReplayedTarget] = {}
    for part in parts:
        for each in part.targets:
            known = found.get(each.index)
            found[each.index] = each if known is None else _sum_of(known, each)
    return tuple(found[index] for index in sorted(found))


def _sum_of(one: ReplayedTarget, other: ReplayedTarget) -> ReplayedTarget:
    return ReplayedTarget(
        index=one.index,
        performances=one.performances + other.performances,
        events=one.events + other.events,
        compared=one.compared + other.compared,
        matched=one.matched + other.matched,
        drift_ns=max(one.drift_ns, other.drift_ns),
    )
