"""What a run's figures hide: steps, drift, silences, groups, outliers, and what is to blame.

Reads records of runs and judges nothing: a finding is neither a pass nor a failure. Reports print
what is found.
"""
