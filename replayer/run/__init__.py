"""One run from its options to its run folder: targets, their folders, caches, pace, progress.

Nothing here knows Locust. A run is led through its segments whoever makes the load: the engine of
this process, workers elsewhere, or fio.
"""
