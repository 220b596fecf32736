"""Published studies, run again on the user's targets and shown beside what was published.

A study is data (``scenarios/studies``): its steps are baselines and scenarios, its tables name
figures of their run folders. Steps run as commands of their own; nothing here measures.
"""
