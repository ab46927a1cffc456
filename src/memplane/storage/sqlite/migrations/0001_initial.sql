-- The ledger: what came in, in order. Rows never change; the triggers see to it. REPLACE deletes without asking a
-- delete trigger, so inserts are watched too.
CREATE TABLE ledger (
    seq            INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    op             TEXT NOT NULL,
    recorded       INTEGER NOT NULL,
    actor          TEXT NOT NULL,
    door           TEXT NOT NULL,
    session        TEXT NOT NULL,
    ref            TEXT,
    payload_digest BLOB NOT NULL,
    digest         BLOB NOT NULL
) STRICT;
CREATE INDEX ledger_by_session ON ledger (session, op) WHERE session <> '';
CREATE INDEX ledger_by_op ON ledger (op) WHERE op = 'forget';
CREATE INDEX ledger_by_ref ON ledger (ref) WHERE ref IS NOT NULL;
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger
WHEN EXISTS (SELECT 1 FROM ledger WHERE seq = NEW.seq) OR EXISTS (SELECT 1 FROM ledger WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: this entry is there already'); END;

-- What an entry carries. It can be erased, but only for an id that has a tombstone, and never altered.
CREATE TABLE payload (
    seq  INTEGER PRIMARY KEY REFERENCES ledger (seq),
    salt BLOB NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE tombstone (
    id     TEXT PRIMARY KEY,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER payload_no_update BEFORE UPDATE ON payload
BEGIN SELECT RAISE(ABORT, 'a payload is never altered'); END;
CREATE TRIGGER payload_no_replace BEFORE INSERT ON payload
WHEN EXISTS (SELECT 1 FROM payload WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'a payload is never altered'); END;
CREATE TRIGGER payload_delete_needs_tombstone BEFORE DELETE ON payload
WHEN NOT EXISTS (SELECT 1 FROM tombstone t JOIN ledger l ON l.id = t.id WHERE l.seq = OLD.seq)
BEGIN SELECT RAISE(ABORT, 'only what is forgotten is erased'); END;
CREATE TRIGGER tombstone_no_update BEFORE UPDATE ON tombstone
BEGIN SELECT RAISE(ABORT, 'a tombstone stays'); END;
CREATE TRIGGER tombstone_no_delete BEFORE DELETE ON tombstone
BEGIN SELECT RAISE(ABORT, 'a tombstone stays'); END;
CREATE TRIGGER tombstone_no_replace BEFORE INSERT ON tombstone
WHEN EXISTS (SELECT 1 FROM tombstone WHERE id = NEW.id)
BEGIN SELECT RAISE(IGNORE); END;

-- What happened that is not in the ledger: refusals, exports, replays.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    door    TEXT NOT NULL,
    session TEXT NOT NULL,
    action  TEXT NOT NULL,
    target  TEXT,
    outcome TEXT NOT NULL,
    detail  TEXT NOT NULL,
    digest  BLOB NOT NULL
) STRICT;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('cursor', '0'), ('indexed', '0');

-- The projection: everything below is derived from the ledger and can be dropped and rebuilt.
-- A turn's row number is its entry's seq * 256 + ordinal.
CREATE TABLE turn (
    n            INTEGER PRIMARY KEY,
    role         TEXT NOT NULL,
    text         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    conversation TEXT,
    project      TEXT
) STRICT;
CREATE INDEX turn_by_time ON turn (at);
CREATE INDEX turn_by_conversation ON turn (conversation, at) WHERE conversation IS NOT NULL;
CREATE INDEX turn_by_project ON turn (project, at) WHERE project IS NOT NULL;

CREATE TABLE memory (
    n             INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    kind          TEXT NOT NULL,
    behavioral    INTEGER NOT NULL,
    text          TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    start         INTEGER NOT NULL,
    "end"         INTEGER NOT NULL,
    state         TEXT NOT NULL,
    tier          TEXT NOT NULL,
    tags          TEXT NOT NULL,
    key           TEXT,
    category      TEXT,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    expires       INTEGER,
    supersedes    TEXT,
    superseded_by TEXT,
    superseded    INTEGER,
    conversation  TEXT,
    project       TEXT
) STRICT;
CREATE INDEX memory_by_seq ON memory (seq);
CREATE INDEX memory_by_time ON memory (updated);
CREATE INDEX memory_by_brief ON memory (behavioral, updated, n) WHERE state IN ('active', 'contested');
CREATE UNIQUE INDEX memory_by_key ON memory (key)
    WHERE key IS NOT NULL AND state IN ('active', 'contested');
CREATE INDEX memory_by_key_history ON memory (key, updated) WHERE key IS NOT NULL;
CREATE INDEX memory_by_category ON memory (category, updated) WHERE category IS NOT NULL;
CREATE INDEX memory_by_expiry ON memory (expires) WHERE expires IS NOT NULL;
CREATE INDEX memory_by_supersession ON memory (superseded) WHERE superseded IS NOT NULL;
CREATE INDEX memory_by_conversation ON memory (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX memory_by_project ON memory (project) WHERE project IS NOT NULL;

-- Entries that have a payload but show nothing: unreadable, empty once cleaned, or purged. A forget finds them here.
CREATE TABLE hidden (seq INTEGER PRIMARY KEY) STRICT;

CREATE TABLE memory_tag (tag TEXT, n INTEGER, PRIMARY KEY (tag, n)) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tag_by_memory ON memory_tag (n);

CREATE VIRTUAL TABLE turn_index USING fts5 (
    text, content = '', tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* M* Co So'"
);
CREATE VIRTUAL TABLE memory_index USING fts5 (
    text, content = '', tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* M* Co So'"
);
INSERT INTO turn_index (turn_index, rank) VALUES ('secure-delete', 1);
INSERT INTO memory_index (memory_index, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE turn_vocabulary USING fts5vocab (turn_index, row);
CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab (memory_index, row);
