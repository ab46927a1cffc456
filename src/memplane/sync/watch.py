"""Sync continuously: push at intervals, with a growing delay while the remote is unreachable."""

import math
import random
from collections.abc import Callable, Mapping

import msgspec

from memplane.engine import Daily
from memplane.errors import InvalidRequest, RemoteError, SettingsInvalid, StorageBusy
from memplane.space import Space
from memplane.sync.opening import check_local, open_store
from memplane.sync.remote_state import target_of
from memplane.sync.sync import PushReport, Sync

Wait = Callable[[float], bool]
"""Wait that many seconds or until stopped; returns whether it was stopped."""

INTERVAL_S = 60.0
BACK_OFF_S_MAX = 900.0
POLL_INTERVAL = 10
"""Rounds; files that were edited by hand are looked for then."""

_JITTER = 0.2
"""Of the interval, either way: machines that started together do not all come at once."""


class WatchStopped(Exception):
    """The watch was stopped during a push; the next push continues. This is not an error and not an outage."""


class PushRound(msgspec.Struct, frozen=True):
    """How one push went, and when the next one comes."""

    pushed: PushReport | None
    trouble: RemoteError | StorageBusy | None
    next_s: float


class SyncWatcher:
    """Push until stopped. Remote errors are reported and waited out; other errors end it."""

    def __init__(
        self,
        sync: Sync,
        *,
        wait: Wait,
        report: Callable[[PushRound], None],
        interval_s: float = INTERVAL_S,
        rng: random.Random | None = None,
    ) -> None:
        self._sync = sync
        self._wait = wait
        self._report = report
        self._interval_s = interval_s
        self._rng = rng or random.Random()  # noqa: S311 - spreads requests, keeps no secret
        self._failures = 0
        self._rounds = -1

    def run(self) -> None:
        while True:
            try:
                done = self._round()
            except WatchStopped:
                return
            self._report(done)
            if self._wait(done.next_s):
                return

    def _round(self) -> PushRound:
        self._rounds += 1
        try:
            pushed = self._sync.push(look=self._rounds % POLL_INTERVAL == 0)
        except (RemoteError, StorageBusy) as exc:
            self._failures += 1
            return PushRound(None, exc, self._pause())
        self._failures = 0
        return PushRound(pushed, None, self._pause())

    def _pause(self) -> float:
        longest = max(self._interval_s, BACK_OFF_S_MAX)
        length = min(math.ldexp(self._interval_s, min(self._failures, 30)), longest)
        return length * self._rng.uniform(1 - _JITTER, 1 + _JITTER)


# The server's daily push of a synced space: digests reach the remote, and expired raw days are removed from it.


def daily_push(environment: Mapping[str, str]) -> Daily:
    """Push to the remote that the space was last synced with, if any. An unreachable remote does not stop retention
    here: the failure is logged, and the next push makes up for it."""

    def work(space: Space, _day: str) -> None:
        target = target_of(space)
        if target is None:
            return
        space.compact()  # first, so that one push says all of it
        try:
            store = open_store(target, environment)
            if space.settings.keep_memory_local:
                check_local(store)
            Sync(space, store, space.settings.folder, clock=space.now).push()
        except (RemoteError, StorageBusy, SettingsInvalid, InvalidRequest) as exc:
            space.ledger.add_audit("sync", target=target, outcome="failed", detail=exc.code)

    return work
