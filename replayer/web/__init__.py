"""The web page: Locust's own, with our form, live figures, past runs and traces beside it.

``run_control`` starts and stops runs, one at a time. ``guard`` decides which requests are served.
``pages`` are those beside Locust's. Nothing here names Locust or asks a mount: figures are those
that the engine hands over anyway.
"""
