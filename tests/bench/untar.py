"""The scenario kernel-untar beside GNU tar unpacking the same tree."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from tests.bench import arena

LIMIT = 1.15
SCENARIO = "kernel-untar"


@dataclass(frozen=True)
class Untar:
    """Times of the same tree unpacked by both.

    Attributes:
        engine_s: Median latency of the scenario's transaction.
        tar_s: Median wall time of GNU tar.
        ratio: Median over the turns of engine / tar.
    """

    engine_s: float
    tar_s: float
    ratio: float

    def passes(self) -> bool:
        return self.ratio <= LIMIT

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}
