-- Which spaces have something waiting, for workers on any number of machines. The ledger is the queue, and a space's own
-- marks say how far it is: this only says where to look, and keeps workers from doing the same. It is read across spaces,
-- so it has no row-level security, and holds numbers and codes alone.

-- One clock for all machines.
CREATE FUNCTION work_clock() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- A space that is not here has nothing waiting. What `due` means, the state says:
--   waiting  something is to be done: since when
--   held     a worker is at it: until when it is its own
--   resting  nothing is to be done now: when to look again, by itself or after a failure
--   dead     it failed too often, and waits for a person: since when
CREATE TABLE work (
    tenant       integer NOT NULL,
    owner_number integer NOT NULL,
    state        text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'held', 'resting', 'dead')),
    due          bigint NOT NULL,
    holder       text COLLATE "C",
    attempts     integer NOT NULL DEFAULT 0,
    failures     integer NOT NULL DEFAULT 0,
    error        text COLLATE "C",
    PRIMARY KEY (tenant, owner_number)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
CREATE INDEX work_waiting ON work (tenant, due) WHERE state = 'waiting';
CREATE INDEX work_by_due ON work (due) WHERE state IN ('held', 'resting');
CREATE INDEX work_in_trouble ON work (tenant, owner_number) WHERE attempts > 0 OR state = 'dead';

-- Whoever moves a space's cursor, or has it derived anew, says so in the same transaction, and holds the row of the space
-- meanwhile; so does a worker that says that nothing waits. None can be missed. Most find the space waiting already,
-- and write nothing.
CREATE FUNCTION note_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM memplane.work w
        WHERE w.tenant = NEW.tenant AND w.owner_number = NEW.space AND (w.state <> 'resting' OR w.attempts > 0)
    ) THEN
        INSERT INTO memplane.work AS w (tenant, owner_number, state, due)
        VALUES (NEW.tenant, NEW.space, 'waiting', memplane.work_clock())
        ON CONFLICT (tenant, owner_number) DO UPDATE SET state = 'waiting', due = excluded.due
        WHERE w.state = 'resting' AND w.attempts = 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER work_comes AFTER UPDATE OF value ON meta FOR EACH ROW
    WHEN (NEW.name = 'cursor' AND NEW.value <> OLD.value OR NEW.name = 'derived' AND NEW.value = '0')
    EXECUTE FUNCTION note_work();
CREATE TRIGGER work_is_brought AFTER INSERT ON meta FOR EACH ROW
    WHEN (NEW.name = 'cursor' AND NEW.value <> '0') EXECUTE FUNCTION note_work();

-- How many entries no memories are derived from yet, over all spaces in which something is to be done. It tells a sum and
-- nothing else, so it may look past row-level security.
CREATE FUNCTION work_behind() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = memplane
    RETURN (
        SELECT coalesce(sum(greatest(c.value::bigint - d.value::bigint, 0)), 0)::bigint FROM memplane.work w
        JOIN memplane.meta c ON c.tenant = w.tenant AND c.space = w.owner_number AND c.name = 'cursor'
        JOIN memplane.meta d ON d.tenant = w.tenant AND d.space = w.owner_number AND d.name = 'derived'
        WHERE w.state IN ('waiting', 'held', 'dead') OR w.attempts > 0
    );

-- What is done once for a period by whichever worker comes first; `until` it is that one's.
CREATE TABLE job (
    name     text COLLATE "C" NOT NULL,
    period   text COLLATE "C" NOT NULL,
    holder   text COLLATE "C" NOT NULL,
    until    bigint NOT NULL,
    done     bigint,
    attempts integer NOT NULL DEFAULT 1,
    PRIMARY KEY (name, period)
);

-- Who works, and what each has done; that of those who are long gone is added up under no name.
CREATE TABLE worker (
    holder   text COLLATE "C" PRIMARY KEY,
    began    bigint NOT NULL,
    seen     bigint NOT NULL,
    ended    boolean NOT NULL DEFAULT false,
    taken    bigint NOT NULL DEFAULT 0,
    steps    bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    lost     bigint NOT NULL DEFAULT 0
);

-- Whatever there is already is looked at once.
INSERT INTO work (tenant, owner_number, state, due) SELECT tenant, number, 'waiting', work_clock() FROM space;
