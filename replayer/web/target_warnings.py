"""Whether a run could begin on the targets of a page: looked at once, when the page opens.

A mount may come later, so that nothing is refused here; each run looks for itself.
"""

import sys
from collections.abc import Sequence

from replayer.errors import ReplayerError
from replayer.measure.health import RunWarning
from replayer.run.prepared_run import check_in_time
from replayer.run.targets import NamedTarget
from replayer.web.run_control import RunControl

__all__ = ["warn_of_targets"]


def warn_of_targets(control: RunControl, targets: Sequence[NamedTarget]) -> None:
    """Say on stderr and on the page which targets would refuse a run now."""
    for target in targets:
        try:
            check_in_time(target)
        except ReplayerError as error:
            message = f"no run can begin on {target.name} as it is: {error}"
            warning = RunWarning(kind="other", message=message, hint=error.hint)
            control.target_warnings = (*control.target_warnings, warning)
            hint = f"\nhint: {error.hint}" if error.hint else ""
            sys.stderr.write(f"replayer: warning: {message}{hint}\n")
