"""fio as one more client: its job files checked, run in a run's folder, its results recorded.

fio's own processes touch the mount; nothing here does. Results go into the run folder in the forms
that the native engine writes, and from there to every report.
"""
