"""The largest load that a target carries while all limits hold: a search by trials.

A trial is a run of its own, with transactions that arrive at one rate. ``goals`` says what a trial
tells of the limits, ``search`` what is believed of the capacity after it and which rate is next,
``flow`` runs the trials, ``table`` shows the result. Nothing here measures.
"""
