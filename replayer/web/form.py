"""The forms of runs, ours and Locust's: what they show, and what may be sent. All else is refused.

Scenarios and targets are fixed when the process starts, and are sent by name: no path can be.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from replayer.errors import ReplayerError
from replayer.measure.history import kept_runs
from replayer.measure.runfolder import PARENT
from replayer.report.regression import KeptRun
from replayer.run.options import (
    Beside,
    CacheState,
    Pace,
    ReplaySettings,
    Settings,
    parse_run_time,
)
from replayer.run.targets import parse_targets
from replayer.scenario.model import wrong_users
from replayer.scenario.units import read_duration, wrong_run_time
from replayer.verdict.threshold import parse_threshold
from replayer.web.choices import Choice, read_facts

MOST_DIGITS = 18
"""Chosen: what the kernel counts has no more."""


def whole_number(text: str) -> int | None:
    """Return what was sent as a number; None if it is none that can be meant."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


STATED = "as the scenario says"
CACHES = (STATED, "as-is", "warm", "cold")
AT_ONCE = ("arrivals=null", "users.every=null", "users.think_time=0s")
PACES = {STATED: (), "no think time": AT_ONCE}
LOCUSTS = frozenset({"user_count", "spawn_rate", "run_time", "host", "profile"})
OURS = frozenset({"scenario", "targets", "cache", "pace", "think", "rate", "limits", "baseline"})
NO_BASELINE = "no earlier run"
REPLAYS = frozenset({"trace", "user_count", "run_time", "targets", "cache", "pace", "order"})
CHECKED = "checked"
"""That the order of a replay is checked, and when each call was made is kept."""
SEARCHES = frozenset({"scenario", "targets", "limits", "by", "precision", "budget"})
SEARCH_LOADS = {"arrivals": "arrivals a second", "users": "users that wait and think"}
SEARCH_PRECISIONS = ("5%", "2%", "10%", "20%")
MOST_LIMITS = 20  # chosen: more than a person judges by
REPLAY_CACHES = ("as-is", "warm", "cold")
REPLAY_PACES = {
    "closed": "each event after its recorded pause",
    "asap": "each event directly after the previous one",
    "timed": "at the recorded times",
}
"""Those that need nothing more; open arrivals are for requests, and for the command line."""


class ForeignError(ReplayerError):
    """Something was sent that the form does not show."""


@dataclass(frozen=True)
class RunForm:
    """What the forms show."""

    settings: Settings
    """The command line's; a run has these but for what the form says."""
    choices: tuple[Choice, ...]
    words: Mapping[str, str]
    """What --target or --reuse said, by the target's name."""
    runs: Path

    @property
    def baselines(self) -> Mapping[str, Path]:
        """Return the runs that a new one can be held against, by what they are called."""
        given = self.settings.beside.baseline
        found = {} if given is None else {given.name: given.path}
        with suppress(ReplayerError):  # the page Runs says what is wrong with the names
            found |= kept_runs(self.runs)
        return found

    @property
    def host(self) -> str:
        """What stands where Locust shows the host under test: the targets."""
        return ", ".join(self.words)

    def fields(self) -> dict[str, dict[str, Any]]:
        """Return the fields beside Locust's own, in Locust's form."""
        targets = list(self.words)
        several = len(targets) > 1
        return {
            "scenario": _field([choice.name for choice in self.choices], "what the users do"),
            "targets": {
                **_field(targets, "fixed at the start of the program"),
                "is_multiple": several,
                "default_value": targets if several else targets[0],
            },
            "cache": {
                **_field(CACHES, "state of the client's caches before each turn"),
                "default_value": self.settings.cache or STATED,
            },
            "pace": _field(self._paces(), "start of the next transaction"),
        }

    def read(self, sent: Mapping[str, Sequence[str]]) -> Settings:
        """Return the settings of the run that was ordered.

        Raises:
            ForeignError: It is not what the form shows.
            ReplayerError: A number or a time is wrong.
        """
        numbers = [name for name in sent if "." in name]
        _refuse_foreign(sent, LOCUSTS | OURS | {*numbers})
        _refuse_change(sent, "host", self.host)
        _refuse_change(sent, "profile", "")
        return replace(
            self._settings(sent),
            users=_read_users(_one(sent, "user_count")),
            spawn_rate=_read_rate(_one(sent, "spawn_rate")),
            run_time_s=_read_time(_one(sent, "run_time")),
        )

    def read_replay(self, sent: Mapping[str, Sequence[str]], traces: Sequence[str]) -> Settings:
        """Return the settings of the replay that the page of traces ordered.

        Raises:
            ForeignError: It is not what the page shows.
            ReplayerError: A number or a time is wrong.
        """
        _refuse_foreign(sent, REPLAYS)
        users = _read_users(_one(sent, "user_count"))
        cache = _pick(sent, "cache", REPLAY_CACHES)
        pace = cast("Pace", _pick(sent, "pace", list(REPLAY_PACES)))
        checks = _pick(sent, "order", ("", CHECKED)) == CHECKED
        trace = _pick(sent, "trace", traces)
        replay = ReplaySettings(trace=trace, pace=pace, check_order=checks)
        return replace(
            self._common(sent, cast("CacheState", cache)),
            scenario=None,
            replay=replay,
            changes=(),
            users=users,
            spawn_rate=float(users),
            run_time_s=_read_time(_one(sent, "run_time")),
        )

    def read_search(self, sent: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the words of the search for capacities that was ordered.

        Raises:
            ForeignError: It is not what the page shows.
            ReplayerError: A limit or a time is wrong.
        """
        _refuse_foreign(sent, SEARCHES)
        chosen = self._chosen(sent)
        limits = _read_limits(sent)
        if not limits:
            raise ReplayerError("limits: must name at least one")
        budget_s = _read_time(_one(sent, "budget"))
        return [
            "capacity",
            chosen.source or "",
            *(f"--set={change}" for change in chosen.changes),
            *(f"--target={word}" for word in self._targets(sent)),
            *(f"--threshold={limit}" for limit in limits),
            f"--by={_pick(sent, 'by', list(SEARCH_LOADS))}",
            f"--precision={_pick(sent, 'precision', SEARCH_PRECISIONS)}",
            *(() if budget_s is None else (f"--budget={budget_s}s",)),
        ]

    def read_fio(self, sent: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the words of the raw baseline that was ordered.

        Raises:
            ForeignError: It is not what the page shows.
            ReplayerError: It names no target.
        """
        _refuse_foreign(sent, frozenset({"targets"}))
        return ["baseline", *(f"--target={word}" for word in self._targets(sent)), "--yes"]

    def _settings(self, sent: Mapping[str, Sequence[str]]) -> Settings:
        chosen = self._chosen(sent)
        cache = _pick(sent, "cache", CACHES)
        pace = _pick(sent, "pace", self._paces())
        settings = self._common(sent, None if cache == STATED else cast("CacheState", cache))
        changes: tuple[str, ...] = (*PACES[pace], *_read_knobs(sent), *_read_numbers(sent, chosen))
        if chosen.source is None and changes:
            raise ReplayerError("think and rate: are for scenarios, not for a locustfile")
        return replace(
            settings,
            scenario=chosen.source,
            replay=None,
            changes=() if chosen.source is None else (*chosen.changes, *changes),
            thresholds=_read_limits(sent) if "limits" in sent else settings.thresholds,
            beside=self._read_baseline(sent) if "baseline" in sent else settings.beside,
        )

    def _read_baseline(self, sent: Mapping[str, Sequence[str]]) -> Beside:
        beside, runs = self.settings.beside, self.baselines
        name = _pick(sent, "baseline", [NO_BASELINE, *runs])
        if name == NO_BASELINE:
            return replace(beside, baseline=None)
        kept = beside.baseline or KeptRun(name, runs[name])
        return replace(beside, baseline=replace(kept, name=name, path=runs[name].absolute()))

    def _chosen(self, sent: Mapping[str, Sequence[str]]) -> Choice:
        choices = {choice.name: choice for choice in self.choices}
        return choices[_pick(sent, "scenario", list(choices))]

    def _paces(self) -> list[str]:
        """Return what the form offers; tasks of a locustfile alone wait as they say themselves."""
        has_scenarios = any(choice.source is not None for choice in self.choices)
        return list(PACES) if has_scenarios else [STATED]

    def _common(self, sent: Mapping[str, Sequence[str]], cache: CacheState | None) -> Settings:
        chosen = self._targets(sent)
        return replace(
            self.settings,
            cache=cache,
            ends_early=False,
            output=None,
            runs=self.runs,
            targets=chosen if self.settings.targets else (),
            reuse=chosen if self.settings.reuse else (),
        )

    def _targets(self, sent: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        only = list(self.words) if len(self.words) == 1 else []
        names = sent.get("targets", only)
        for name in names:
            if name not in self.words:
                raise ForeignError(
                    f"targets: unknown target {name!r}, must be one of {', '.join(self.words)}"
                )
        if not names:
            raise ReplayerError("targets: must name at least one")
        return tuple(word for name, word in self.words.items() if name in names)


def make_form(settings: Settings, choices: Sequence[Choice], default: str) -> RunForm:
    """Return the form of a process; without a target, it offers the default one.

    Raises:
        ReplayerError: The targets cannot be meant.
    """
    words = settings.reuse or settings.targets or (default,)
    named = {target.name: word for target, word in zip(parse_targets(words), words, strict=True)}
    return RunForm(settings, tuple(choices), named, settings.output or PARENT)


def _field(choices: Sequence[str], about: str) -> dict[str, Any]:
    return {
        "choices": list(choices),
        "default_value": choices[0],
        "help_text": about,
        "is_multiple": False,
        "is_required": False,
        "is_secret": False,
    }


def _one(sent: Mapping[str, Sequence[str]], name: str) -> str:
    return sent[name][0] if sent.get(name) else ""


def _pick(sent: Mapping[str, Sequence[str]], name: str, known: Sequence[str]) -> str:
    value = _one(sent, name) or known[0]
    if value not in known:
        raise ForeignError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return value


def _refuse_foreign(sent: Mapping[str, Sequence[str]], known: frozenset[str]) -> None:
    foreign = sorted(set(sent) - known)
    if foreign:
        raise ForeignError(f"{foreign[0]}: unknown field")
    doubled = sorted(name for name, values in sent.items() if len(values) > 1)
    if doubled and doubled != ["targets"]:
        raise ForeignError(f"{doubled[0]}: given more than once")


def _refuse_change(sent: Mapping[str, Sequence[str]], name: str, fixed: str) -> None:
    if _one(sent, name) not in {"", fixed}:
        raise ForeignError(f"{name}: cannot be set from the page")


def _read_limits(sent: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    found = [line.strip() for line in _one(sent, "limits").splitlines() if line.strip()]
    if len(found) > MOST_LIMITS:
        raise ReplayerError(f"limits: must name at most {MOST_LIMITS}, got {len(found)}")
    for limit in found:
        parse_threshold(limit, "limits")
    return tuple(found)


def _read_knobs(sent: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the changes to a scenario that its usual knobs stand for."""
    think, rate = _one(sent, "think").strip(), _one(sent, "rate").strip()
    if think and rate:
        raise ReplayerError("think and rate exclude each other: users that arrive do not wait")
    if think:
        try:
            wait_ns = read_duration(think)
        except ValueError as error:
            raise ReplayerError(f"think time: {error}") from None
        return ("arrivals=null", "users.every=null", f"users.think_time={wait_ns}ns")
    if rate:
        number = _read_positive(rate, "arrivals must be more than 0 a second")
        waits = ("users.think_time=null", "users.every=null")
        written = f"{number:.6f}".rstrip("0").rstrip(".")
        return (*waits, f"arrivals={{rate: {written}/s, process: poisson}}")
    return ()


def _read_numbers(sent: Mapping[str, Sequence[str]], chosen: Choice) -> Iterator[str]:
    """Yield the changes to a scenario's own numbers. As they are numbers, none names a path."""
    for name, (text, *_) in sent.items():
        if "." not in name or not text.strip():
            continue
        if name not in read_facts(chosen).numbers:
            raise ForeignError(f"{name}: unknown field")
        number = whole_number(text.strip())
        if number is None:
            raise ReplayerError(f"{name} must be a whole number, got {text!r}")
        yield f"{name}={number}"


def _read_users(text: str) -> int:
    digits = text.strip().removeprefix("-")
    count = whole_number(digits)
    if count is None:
        raise ReplayerError(f"users must be a whole number, got {text!r}")
    users = -count if "-" in text else count
    wrong = wrong_users(users)
    if wrong is not None:
        raise ReplayerError(f"users {wrong}")
    return users


def _read_rate(text: str) -> float:
    return _read_positive(text, "ramp-up must be more than 0 users a second")


def _read_positive(text: str, wanted: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise ReplayerError(f"{wanted}, got {text!r}")
    return found


def _read_time(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        seconds = parse_run_time(text)
    except ValueError as error:
        raise ReplayerError(f"run time {error}") from None
    wrong = wrong_run_time(seconds)
    if wrong is not None:
        raise ReplayerError(f"run time {wrong}, got {text!r}")
    return seconds
