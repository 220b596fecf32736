"""A mount looked over: how it is mounted, what its manuals say about that, and a short probe.

Advice comes from the mount's type and options alone and names its source. The probe makes real
calls through the engine, in a folder of its own that is removed again.
"""
