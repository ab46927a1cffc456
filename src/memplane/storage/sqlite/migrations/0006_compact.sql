-- What compaction kept of raw days: learnings, and lines of weekly digests. All of it is derived from the ledger.
CREATE TABLE promoted (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    layer        TEXT NOT NULL,
    day          TEXT NOT NULL,
    kind         TEXT NOT NULL,
    text         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    sources      TEXT NOT NULL,
    quote        TEXT NOT NULL,
    conversation TEXT,
    project      TEXT,
    within       TEXT,
    recorded     INTEGER NOT NULL
) STRICT;
CREATE INDEX promoted_by_day ON promoted (layer, day, at, id);
CREATE INDEX promoted_by_time ON promoted (at);
CREATE TABLE promoted_from (
    source TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (source, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX promoted_from_by_line ON promoted_from (seq);

-- What was decided about raw entries and about learnings, in ids alone.
CREATE TABLE judgement (
    entry   TEXT NOT NULL,
    item    TEXT NOT NULL,
    day     TEXT NOT NULL,
    outcome TEXT NOT NULL,
    line    TEXT NOT NULL,
    reason  TEXT NOT NULL,
    PRIMARY KEY (entry, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX judgement_by_day ON judgement (day, entry, item);
CREATE TABLE verdict (
    learning  TEXT PRIMARY KEY,
    confirmed INTEGER NOT NULL,
    decider   TEXT NOT NULL,
    at        INTEGER NOT NULL,
    memory    TEXT
) STRICT, WITHOUT ROWID;
