"""The web page: new runs, the run that goes on, past runs and traces; Locust's own stands beside.

``run_control`` starts and stops runs, one at a time. ``guard`` decides which requests are served.
``pages`` holds what all pages have, ``start``, ``live``, ``library`` and ``capacity`` one each.
Nothing here names Locust. Only ``start`` asks a mount, for its facts; figures are those that the
engine hands over anyway, and what the run folder has.
"""
