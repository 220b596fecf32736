"""The web page: Locust's own, with our form, live figures, past runs and traces beside it.

``run_control`` starts and stops runs, one at a time; ``guard`` decides which requests are served;
``locust_page`` adds to Locust's page without changing its files; ``pages`` has the rest. Nothing
here asks a mount: figures are those that the engine hands over anyway.
"""

from replayer.web.opening import open_run_control
from replayer.web.run_control import RunControl

__all__ = ["RunControl", "open_run_control"]
