"""What a baseline was asked to do, as the command line says it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from replayer.report.forms import ReportFiles
from replayer.run.options import DEFAULT_STOP_TIMEOUT_S

__all__ = ["BaselineOrder", "Size"]


@dataclass(frozen=True)
class Size:
    """How large a job's files are made: so many bytes, or a share of the free space.

    Attributes:
        size_bytes: Of each process; None where it is a share.
        share: Of the free space of the fullest target, for all processes of a job together.
    """

    size_bytes: int | None
    share: float | None


@dataclass(frozen=True)
class BaselineOrder:
    """The order.

    Attributes:
        jobs: Names of shipped jobs, or job files.
        targets: ``[NAME=]PATH`` each.
        devices: ``[NAME=]/dev/…`` each.
        expendable: Devices whose data may be overwritten, exactly as in ``devices``.
        size: None is left to the job files.
        runtime_s: Of each job in each round; None is left to the job files.
        stop_timeout_s: How long fio may take to end after it was asked to, before it is killed.
        rounds: Turns of each target; None means one for one target, three for several.
        seed: Where random offsets come from.
        output: The run folder; None means a new one.
        thresholds: Limits to judge.
        results: What is printed at the end.
        files: Where the report goes beside that.
        quiet: Whether progress is left out.
    """

    jobs: tuple[str, ...]
    targets: tuple[str, ...]
    devices: tuple[str, ...] = ()
    expendable: tuple[str, ...] = ()
    size: Size | None = None
    runtime_s: float | None = None
    stop_timeout_s: float = float(DEFAULT_STOP_TIMEOUT_S)
    rounds: int | None = None
    seed: int = 1
    output: Path | None = None
    thresholds: tuple[str, ...] = ()
    results: Literal["tables", "json", "none"] = "tables"
    files: ReportFiles = field(default_factory=ReportFiles)
    quiet: bool = False
