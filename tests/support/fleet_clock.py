"""A database whose work goes by a clock that somebody turns, and planes on it."""

from contextlib import contextmanager

import psycopg

from memplane.clock import SECOND
from memplane.worker.cluster import ClusterWorker

_TURNED = """
CREATE TABLE IF NOT EXISTS public.hand (now bigint NOT NULL);
GRANT SELECT ON public.hand TO memplane_space;
INSERT INTO public.hand VALUES (1000000000);
CREATE OR REPLACE FUNCTION memplane.work_clock() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT now FROM public.hand';
"""


class FleetClock:
    """The time that all workers of one database go by; looks past every policy, too."""

    def __init__(self, connection):
        self._connection = connection
        connection.execute(_TURNED)
        connection.execute("SET search_path = memplane, public")

    def advance(self, seconds):
        self.rows("UPDATE hand SET now = now + %s RETURNING 1", (int(seconds * SECOND),))

    def rows(self, sql, parameters=None):
        cursor = self._connection.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []

    def state(self, owner):
        found = self.rows(
            "SELECT w.state, w.attempts, w.error FROM work w JOIN space s ON (s.tenant, s.number) = "
            "(w.tenant, w.owner_number) WHERE s.owner = %s",
            (owner,),
        )
        return found[0] if found else None

    def forget_work(self):
        for table in ("work", "job", "worker"):
            self.rows(f"DELETE FROM {table}")


@contextmanager
def fleet_database(server):
    """A database of one's own, since its clock is not everybody's."""
    name = server.create()
    try:
        with psycopg.connect(server.url(name), autocommit=True) as connection:
            yield server.url(name), FleetClock(connection)
    finally:
        server.drop(name)


def member(plane, **options):
    """A worker of that plane's that does nothing by itself."""
    parts = plane._parts
    return ClusterWorker(parts.stores, plane.work, parts.worker, plane.clock, **options)


def work_off(*members):
    """Round and round until nothing is to be taken; how often something was."""
    taken = 0
    while found := sum(one.step() for one in members):
        taken += found
        assert taken < 10_000
    return taken
