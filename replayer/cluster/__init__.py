"""One run on several processes or machines: a master that leads, and workers whose users work.

Locust connects them, deals users and tells who is alive; what each shall do, and what each has
measured, goes through messages of our own. A worker keeps its targets for itself: no path and no
command comes from the master.
"""
