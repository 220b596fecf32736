"""Whether a run measured the file system or the client, and what to do about it.

Health is filled by the command that runs; the warnings are worked out here, so that a report of an
old run and a new one say the same. Warnings are values with a kind; their hints depend on what the
user asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from replayer.measure.cpus import count_cpus
from replayer.measure.facts import Frozen, MachineFacts
from replayer.measure.units import format_factor, format_time_ns

BUSY_CPU_SHARE = 0.9  # chosen: Locust's own limit for 'CPU usage above 90%'
WAITING_SHARE = (
    0.1  # chosen: a tenth of the time in calls spent waiting for a CPU shifts a p95 visibly
)
BOTTLENECK_SHARE = 0.25  # chosen: beyond a quarter, ranks between mounts may be those of the client
LONGER = 1.05  # above, the digits of a factor say more than per cents: chosen
SLOW_ENGINE_NS = 1_000  # chosen: ten times the engine's own promise of 100 ns an op
SLOW_CLOCK_NS = 500  # chosen, as the engine does: ten times a clock that is read in user space
SHOWN_SHARE = 0.05  # chosen: less of the CPUs than this explains no waiting
OWN_SHARE = 0.05  # chosen: half of what users may wait for a CPU before it is said

IDLE_SHARE = 0.25  # chosen: who used less of the CPUs than this kept nobody waiting for long

Blamed = Literal["client", "others", "stolen", "nobody"]
Kind = Literal[
    "stood still",
    "client busy",
    "waited for a cpu",
    "too short",
    "engine slow",
    "clock slow",
    "users given up",
    "events dropped",
    "schedule missed",
    "recorded pauses",
    "arrivals missed",
    "begun late",
    "measured longer",
    "no calls",
    "ends in a cliff",
    "other",
]


Loop = Literal["closed", "paced", "open"]
LOOPS: Mapping[str, Loop] = {"closed": "closed", "every": "paced", "arrivals": "open"}
"""By the kind of pace that a plan has."""


class UntilDecided(Frozen):
    """When a run of several targets ends that no time was given for."""

    precision: float
    """By what share the ratio of a figure may be off that is not told apart."""
    budget_s: float
    """Measured time of all targets together, at most."""
    most_rounds: int
    """How many rounds fit into it."""


class LoadFacts(Frozen):
    """How the users worked."""

    users: int
    loop: Loop
    """closed: next after completion and think time; paced: one a period; open: arrivals."""
    pace: str
    """The same in words, with its numbers."""
    rounds: int
    duration_s: float | None
    """Measured time per target, all rounds together; null: until the transactions are done."""
    transactions_per_user: int | None
    warm_up_s: float
    ramp_up_s: float
    order: Literal["together", "in turn"] = "together"
    """Whether the transactions ran side by side, or one after the other, each in its own time."""
    looks: int = 1
    """How often the run could have ended by what was measured until then; 1: at its end alone.
    Intervals are so much wider that those of all looks hold together."""
    until: UntilDecided | None = None
    """Null: its length was fixed before the start."""
    duet: bool = False
    """Whether both targets were measured at the same time, each by its own users."""

    @property
    def users_at_once(self) -> int:
        """How many users were at work at the same time, of both targets of a duet."""
        return self.users * (2 if self.duet else 1)


class Health(Frozen):
    """What the harness itself cost and suffered."""

    client_cpu_share: float
    """CPU time of our process / (wall time x CPUs it may use), over the measured phases; 0 to 1."""
    others_cpu_share: float | None = None
    """What other programs, and the kernel itself, used of the same CPUs; null: not known."""
    stolen_cpu_share: float | None = None
    """What the hypervisor gave to other machines of these CPUs (steal); null: not known."""
    run_queue_delay_ns: int | None
    """Time that users were ready to run but had no CPU; null: they were in calls for too short a
    time for what was seen of it to mean anything."""
    in_call_ns: int
    """Time that users spent in calls."""
    outside_ns: int = 0
    """Time that users worked outside of calls as planned: computing, in pauses of replays, on the
    files of replays."""
    outside_cpu_share: float = 0.0
    """The part of ``client_cpu_share`` that this was, at most: load that was asked for."""
    stood_still_ns: int = 0
    """Time of the measured phases for which the client stood still as a whole: stopped, frozen, or
    asleep with its machine."""
    overhead_ns: float | None
    """Own mean cost of an op on a null target; null: not measured."""
    clock_ns: float | None = None
    """What a look at the clock costs the engine; null: not measured."""
    calls: int = 0
    """Calls that users made in the measured phases; 0: not counted."""
    users_given_up: int
    """Users whose call never came back from the kernel."""
    events_dropped: int = 0
    """Transactions that Locust's listeners did not hear of; the histograms hold them all."""

    @property
    def waiting_share(self) -> float:
        """Time waiting for a CPU as a share of time in calls and of work outside of them.

        0 when there were none, or when it is not known.
        """
        working_ns = self.in_call_ns + self.outside_ns
        return (self.run_queue_delay_ns or 0) / working_ns if working_ns > 0 else 0.0

    @property
    def own_share(self) -> float:
        """The engine's own cost of all calls as a share of the time in them; 0 when not known."""
        own_ns = (self.overhead_ns or 0.0) * self.calls
        return own_ns / self.in_call_ns if self.in_call_ns > 0 else 0.0

    @property
    def has_slow_clock(self) -> bool:
        """Whether looking at the clock takes a system call: then it is most of the own cost."""
        return self.clock_ns is not None and self.clock_ns > SLOW_CLOCK_NS

    @property
    def own_cpu_share(self) -> float:
        """CPU time of our process without that of planned work outside of calls, as a share."""
        return max(self.client_cpu_share - self.outside_cpu_share, 0.0)

    @property
    def blamed(self) -> Blamed:
        """Who used the most of the CPUs that users waited for."""
        shares: dict[Blamed, float] = {
            "client": self.client_cpu_share,
            "others": self.others_cpu_share or 0.0,
            "stolen": self.stolen_cpu_share or 0.0,
        }
        most = max(shares, key=lambda who: shares[who])
        known = self.others_cpu_share is not None
        return "nobody" if known and shares[most] < IDLE_SHARE else most

    @property
    def worked_in(self) -> str:
        """What ``waiting_share`` is a share of, in words."""
        return "calls and other work" if self.outside_ns else "calls"


class RunWarning(Frozen):
    """Something a reader of the figures must know."""

    kind: Kind
    message: str
    hint: str


def saturated(health: Health) -> bool:
    """Whether the client, not the file system, set the pace."""
    looked = health.has_slow_clock and health.own_share > BOTTLENECK_SHARE
    return (
        looked or health.own_cpu_share > BUSY_CPU_SHARE or health.waiting_share > BOTTLENECK_SHARE
    )


def say_saturated(health: Health) -> str:
    """Say that the client was saturated, and by whom, where that was not its own doing."""
    waited = health.waiting_share > BOTTLENECK_SHARE
    by = _BY.get(health.blamed, "") if waited else ""
    return f"the client was saturated{by}: figures may show the client, not the file system"


_BY: Mapping[Blamed, str] = {
    "others": " by other programs",
    "stolen": " by other machines of its host",
}


def is_of_the_client(health: Health) -> bool:
    """Whether a time or a rate may be the client's, not the file system's."""
    return saturated(health) or health.stood_still_ns > 0


def health_warnings(
    health: Health, load: LoadFacts, *machines: MachineFacts
) -> tuple[RunWarning, ...]:
    """Return what was wrong with the harness, worst first; the machines are those with users."""
    return tuple(_warnings(health, load, machines))


def _warnings(
    health: Health, load: LoadFacts, machines: Sequence[MachineFacts]
) -> Iterator[RunWarning]:
    cpus = count_cpus(machines)
    if health.users_given_up:
        yield RunWarning(
            kind="users given up",
            message=f"{health.users_given_up} of {load.users_at_once} users hung in a call and "
            "were abandoned",
            hint=f"{_NAMED.get(load.order, '')}check whether the mount still answers",
        )
    if health.stood_still_ns:
        yield RunWarning(
            kind="stood still",
            message=f"this client stood still for {format_time_ns(health.stood_still_ns)} during "
            "the measurement: calls in progress took that much longer",
            hint="it was stopped (Ctrl-Z, SIGSTOP) or frozen, or its machine slept; events.jsonl "
            "has the time (kind standstill). Repeat the run",
        )
    if health.own_cpu_share > BUSY_CPU_SHARE:
        yield RunWarning(
            kind="client busy",
            message=f"{_whose_cpus(health, cpus, len(machines))}: above {BUSY_CPU_SHARE:.0%} the "
            "figures may show the client",
            hint=_relief(load, cpus),
        )
    if health.waiting_share > WAITING_SHARE:
        yield RunWarning(
            kind="waited for a cpu",
            message=f"users waited for a CPU for {_how_long(health)} {health.worked_in}: above "
            f"{WAITING_SHARE:.0%} the highest percentiles are partly the client's, above "
            f"{BOTTLENECK_SHARE:.0%} all latencies{_who_used(health, len(machines))}",
            hint=_RELIEF.get(health.blamed) or _relief(load, cpus),
        )
    if health.run_queue_delay_ns is None:
        yield RunWarning(
            kind="too short",
            message=f"users were in calls for {format_time_ns(health.in_call_ns)} in total: too "
            "short to measure this client's own share",
            hint="run longer, or with more data",
        )
    yield from _own_cost(health)
    if health.events_dropped:
        yield RunWarning(
            kind="events dropped",
            message=f"{health.events_dropped} transactions did not reach Locust's listeners, which "
            "were too slow",
            hint="figures here include them; only Locust's own statistics and exporters lack them",
        )


_NAMED = {"together": "events.jsonl names the calls and paths (kind stall); "}
"""What fio waits for nobody knows."""


def _own_cost(health: Health) -> Iterator[RunWarning]:
    """Say what the engine's own cost is: of a slow clock in proportion to the calls."""
    if health.overhead_ns is None:
        return
    if health.has_slow_clock and health.calls:
        if health.own_share > OWN_SHARE:
            yield RunWarning(
                kind="clock slow",
                message=f"one clock reading costs {format_time_ns(health.clock_ns or 0)}, and the "
                f"engine {format_time_ns(health.overhead_ns)} an op with it: "
                f"{health.own_share:.0%} of the users' time in calls; above "
                f"{BOTTLENECK_SHARE:.0%} figures show the client",
                hint="this kernel reads the clock by a system call: see "
                "/sys/devices/system/clocksource/clocksource0/current_clocksource. Choose "
                "tsc if available, or subtract the cost from each op",
            )
    elif health.overhead_ns > SLOW_ENGINE_NS:
        yield RunWarning(
            kind="engine slow",
            message=f"the engine itself took {health.overhead_ns:.0f} ns an op, more than "
            f"{SLOW_ENGINE_NS} ns",
            hint="another program keeps this machine busy, or its clock is read by a system call: "
            "see /sys/devices/system/clocksource/clocksource0/current_clocksource",
        )


def _how_long(health: Health) -> str:
    share = health.waiting_share
    many = share >= LONGER
    return f"{format_factor(share) if many else f'{share:.0%} of'} their time in"


def _whose_cpus(health: Health, cpus: int, clients: int) -> str:
    if clients == 1:
        return f"this client used {health.own_cpu_share:.0%} of its {cpus} CPUs"
    return (
        f"the busiest of {clients} clients, with those on its CPUs, used {health.own_cpu_share:.0%}"
        " of them"
    )


def _who_used(health: Health, clients: int) -> str:
    """Say who used the CPUs that users waited for, where that is known."""
    if health.others_cpu_share is None:
        return ""
    stolen = health.stolen_cpu_share or 0.0
    gone = f", other machines (steal) {stolen:.0%}" if stolen >= SHOWN_SHARE else ""
    return (
        f"; of these CPUs {'this client' if clients == 1 else 'the clients'} used "
        f"{health.client_cpu_share:.0%}, other programs {health.others_cpu_share:.0%}{gone}"
    )


_RELIEF: Mapping[Blamed, str] = {
    "others": "stop the other programs, or use a machine with more CPUs",
    "stolen": (
        "run when other machines of the host are idle, or use a machine with dedicated CPUs"
    ),
    "nobody": (
        "the CPUs were idle most of the time: check whether a quota limits this client (cpu.max "
        "of its cgroup), or whether all its users start at once"
    ),
}
"""By who kept users from a CPU: what helps, unless it was the client itself."""


def relief_from_others(health: Health | None) -> str | None:
    """Say what helps where others used the CPUs; None: they did not, or it is not known."""
    others = health is not None and health.blamed in {"others", "stolen"}
    return _RELIEF[health.blamed] if health is not None and others else None


def _relief(load: LoadFacts, cpus: int) -> str:
    """Say what helps, given what the user asked for."""
    if load.loop == "open":
        return "lower the arrival rate, or spread it over several client machines"
    if load.order == "in turn":  # fio
        return f"{cpus} CPUs serve these jobs: use fewer (numjobs) or a larger client"
    if load.users_at_once > cpus and load.loop == "closed":
        return (
            f"{load.users_at_once} users share {cpus} CPUs: use fewer (-u), give them think time, "
            "or spread them over several client machines"
        )
    return "stop other programs on this machine, or use one with more CPUs"
