"""Counting what tenants do, at next to no cost for those who wait for an answer.

Counts are collected in memory and written every few seconds, when usage is read, and in the end. A process that is
killed loses what it counted since it last wrote, and nothing else.
"""

import logging
import threading
from contextlib import suppress

from memplane.clock import DAY, SECOND, Clock
from memplane.errors import StorageError
from memplane.storage.accounts import Account, Accounts, Tally

KEPT_DAYS = 400
"""How long usage is on record: a year, and the month one compares it with."""

_WRITE_EVERY_S = 5.0
_TOKENS_PER_UNIT = 1_000

_log = logging.getLogger("memplane.metering")


class Meter:
    """Safe to use from many threads. The thread that writes begins with the first count."""

    def __init__(self, accounts: Accounts, clock: Clock, *, write_every_s: float = _WRITE_EVERY_S) -> None:
        self._accounts = accounts
        self._clock = clock
        self._write_every_s = write_every_s
        self._counted: dict[Account, Tally] = {}
        self._counting = threading.Lock()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def count(
        self,
        tenant: str,
        endpoint: str,
        *,
        failed: bool = False,
        seconds: float = 0.0,
        request_bytes: int = 0,
        response_bytes: int = 0,
        ingest_events: int = 0,
        tokens: int = 0,
    ) -> None:
        """One request. `endpoint` is a template, never a path: what stands in a path is somebody's. A work unit is a request
        that succeeded, and one more for every thousand tokens of it."""
        account = Account(tenant, self._clock() // DAY, endpoint)
        with self._counting:
            tally = self._counted.get(account)
            if tally is None:
                tally = self._counted[account] = Tally()
                self._begin()
            tally.requests += 1
            tally.latency_us += int(seconds * SECOND)
            tally.request_bytes += request_bytes
            tally.response_bytes += response_bytes
            if failed:
                tally.errors += 1
            else:
                tally.work_units += 1 + tokens // _TOKENS_PER_UNIT
            tally.ingest_events += ingest_events
            tally.tokens += tokens

    def write(self) -> None:
        """Write what was counted. What cannot be written now is kept for the next time."""
        with self._writing:
            with self._counting:
                counted, self._counted = self._counted, {}
            if not counted:
                return
            try:
                self._accounts.add(counted, oldest=self._clock() // DAY - KEPT_DAYS)
            except BaseException:
                self._keep(counted)
                raise

    def close(self) -> None:
        """Write the rest and stop; whether that succeeds, nobody is there to hear."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(StorageError):
            self.write()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="memplane-meter", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closing.wait(self._write_every_s):
            try:
                self.write()
            except StorageError:
                pass  # it is kept for the next time
            except Exception:  # noqa: BLE001 - a thread's edge: nothing would be written until somebody asks
                _log.exception("usage cannot be written")

    def _keep(self, counted: dict[Account, Tally]) -> None:
        with self._counting:
            for account, tally in counted.items():
                self._counted.setdefault(account, Tally()).add(tally)
