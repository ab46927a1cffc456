-- Replicas of a space merge. `position` is an entry's place in this replica's chain: the order in which it came in here.
-- `seq` is its place in the order that all replicas agree on, by `recorded` and then by id. It moves when an entry comes
-- in that was recorded earlier elsewhere; nothing else of a row ever changes, except that a body which came under an id
-- that another body has is renamed, and `chained_id` says what the chain covers. `origin` is the replica it came from;
-- '' is this one.
DROP TRIGGER ledger_no_update;
DROP TRIGGER ledger_no_replace;
DROP TRIGGER payload_no_update;
DROP TRIGGER payload_no_replace;
DROP TRIGGER payload_delete_needs_tombstone;
ALTER TABLE ledger ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN chained_id TEXT;
ALTER TABLE ledger ADD COLUMN origin TEXT NOT NULL DEFAULT '';
UPDATE ledger SET position = seq;
CREATE UNIQUE INDEX ledger_by_position ON ledger (position);
CREATE INDEX ledger_decisions ON ledger (seq) WHERE op IN ('forget', 'sweep');
CREATE TRIGGER ledger_no_update BEFORE UPDATE OF op, recorded, actor, door, session, ref, payload_digest, digest, position, origin
ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_moves_into_free_places BEFORE UPDATE OF seq ON ledger
WHEN NEW.seq <> OLD.seq AND EXISTS (SELECT 1 FROM ledger WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: this place is taken'); END;
CREATE TRIGGER ledger_renames_variants BEFORE UPDATE OF id, chained_id ON ledger
WHEN NEW.chained_id IS NOT coalesce(OLD.chained_id, OLD.id) OR substr(NEW.id, 1, length(OLD.id) + 1) <> OLD.id || '~'
  OR EXISTS (SELECT 1 FROM ledger WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger
WHEN EXISTS (SELECT 1 FROM ledger WHERE seq = NEW.seq) OR EXISTS (SELECT 1 FROM ledger WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM ledger WHERE position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: this entry is there already'); END;

-- Payloads and tombstones go by position, so that they never move. Two replicas may each have forgotten the same entry,
-- and each forget keeps its tombstones. `cause` is NULL for what a forget named; otherwise the id whose forgetting takes
-- this one along: what a model read out of it, or another body under the same id.
ALTER TABLE payload RENAME COLUMN seq TO position;
ALTER TABLE tombstone RENAME TO tombstone_before;
CREATE TABLE tombstone (
    id       TEXT NOT NULL,
    position INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    cause    TEXT,
    PRIMARY KEY (id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO tombstone (id, position, at, reason) SELECT id, seq, at, reason FROM tombstone_before;
DROP TABLE tombstone_before;
CREATE TRIGGER payload_no_update BEFORE UPDATE ON payload
BEGIN SELECT RAISE(ABORT, 'a payload is never altered'); END;
CREATE TRIGGER payload_no_replace BEFORE INSERT ON payload
WHEN EXISTS (SELECT 1 FROM payload WHERE position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'a payload is never altered'); END;
CREATE TRIGGER payload_delete_needs_tombstone BEFORE DELETE ON payload
WHEN NOT EXISTS (SELECT 1 FROM tombstone t JOIN ledger l ON l.id = t.id WHERE l.position = OLD.position)
BEGIN SELECT RAISE(ABORT, 'only what is forgotten is erased'); END;
CREATE TRIGGER tombstone_no_update BEFORE UPDATE ON tombstone
BEGIN SELECT RAISE(ABORT, 'a tombstone stays'); END;
CREATE TRIGGER tombstone_no_delete BEFORE DELETE ON tombstone
BEGIN SELECT RAISE(ABORT, 'a tombstone stays'); END;
CREATE TRIGGER tombstone_no_replace BEFORE INSERT ON tombstone
WHEN EXISTS (SELECT 1 FROM tombstone WHERE id = NEW.id AND position = NEW.position)
BEGIN SELECT RAISE(IGNORE); END;

-- Bodies that came under an id which another body has: `id` is what they are kept under, `base` what they came under.
CREATE TABLE variant (id TEXT PRIMARY KEY, base TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX variant_by_base ON variant (base);

-- What a forget has to know about what is not to be seen any more: claims that were passed over because of another
-- memory, and memories that were purged after another had replaced them. Derived, like the memories.
CREATE TABLE overruled (id TEXT NOT NULL, by TEXT NOT NULL, PRIMARY KEY (by, id)) STRICT, WITHOUT ROWID;
CREATE TABLE purged (
    id    TEXT NOT NULL,
    by    TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    entry TEXT NOT NULL,
    at    INTEGER NOT NULL,
    PRIMARY KEY (by, id)
) STRICT, WITHOUT ROWID;

-- Who is weighed against whom must not depend on when a row was written: a replay writes them in another order.
DROP INDEX memory_by_subject_live;
CREATE INDEX memory_by_subject_live ON memory (subject, seq DESC, id)
    WHERE claim IS NOT NULL AND state IN ('active', 'contested');

-- Whether places are in the order that replicas agree on. A ledger from before may have taken in others' entries late;
-- it is put in order with its first merge.
INSERT INTO meta SELECT 'ordered', CAST(NOT EXISTS (
    SELECT 1 FROM (
        SELECT recorded, id, lag(recorded) OVER (ORDER BY seq) AS recorded_before, lag(id) OVER (ORDER BY seq) AS id_before
        FROM ledger
    ) WHERE (recorded, id) < (recorded_before, id_before)
) AS TEXT);
INSERT INTO meta VALUES ('merged', '0');
