"""Starts SecantusDB, which at each statement of a transaction looks through all sessions that it has ever seen.

After an hour of tests that takes longer than the statement. What it looks for is sessions that were idle for a minute
or more, so once a second is enough.
"""

import runpy
import time

from secantus.sessions import SessionRegistry
from secantus.transactions import TransactionRegistry


def look_once_a_second(registry):
    look = registry._prune_locked

    def look_if_due(self):
        now = time.monotonic()
        if now < getattr(self, "_next_look", 0):
            return 0
        self._next_look = now + 1
        return look(self)

    registry._prune_locked = look_if_due


look_once_a_second(SessionRegistry)
look_once_a_second(TransactionRegistry)
runpy.run_module("secantus", run_name="__main__", alter_sys=True)
