"""The web page: Locust's own, with our form, live figures, past runs and traces beside it.

``desk`` starts and stops runs, one at a time; ``guard`` decides which requests are served at all;
``locust_page`` adds to Locust's page without changing its files; ``pages`` has the rest. Nothing
here asks a mount: figures are those that the engine hands over anyway.
"""

from replayer.load.web.desk import Desk
from replayer.load.web.opening import open_desk

__all__ = ["Desk", "open_desk"]
