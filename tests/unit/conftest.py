"""Locust without its patches: they would change the standard library for every other test.

Unset again, or the programs that tests start would not be patched either.
"""

import os

os.environ["LOCUST_SKIP_MONKEY_PATCH"] = "1"
import locust

del os.environ["LOCUST_SKIP_MONKEY_PATCH"]

__all__ = ["locust"]
