"""The bench: the engine beside a tight C program, fio and GNU tar, on file systems of its own.

Nothing here asserts a time: a busy machine would make it lie. It prints figures, ratios and a
verdict line for each target.
"""
