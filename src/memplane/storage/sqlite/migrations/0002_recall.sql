-- Who spoke, where a name is known.
ALTER TABLE turn ADD COLUMN speaker TEXT;

-- What was read out of a turn: where in it, what it claims, and the time it speaks of.
ALTER TABLE memory ADD COLUMN turn INTEGER;
ALTER TABLE memory ADD COLUMN quote TEXT;
ALTER TABLE memory ADD COLUMN extractor TEXT;
ALTER TABLE memory ADD COLUMN role TEXT;
ALTER TABLE memory ADD COLUMN subject TEXT;
ALTER TABLE memory ADD COLUMN predicate TEXT;
ALTER TABLE memory ADD COLUMN object TEXT;
ALTER TABLE memory ADD COLUMN claim TEXT;
ALTER TABLE memory ADD COLUMN importance REAL NOT NULL DEFAULT 0.5;
ALTER TABLE memory ADD COLUMN confidence REAL NOT NULL DEFAULT 1.0;
ALTER TABLE memory ADD COLUMN times TEXT NOT NULL DEFAULT '[]';
ALTER TABLE memory ADD COLUMN time_from INTEGER;
ALTER TABLE memory ADD COLUMN time_until INTEGER;
-- The model whose vector it has; NULL while it waits for one.
ALTER TABLE memory ADD COLUMN embedded INTEGER;
CREATE INDEX memory_by_predicate ON memory (predicate, updated) WHERE predicate IS NOT NULL;
CREATE INDEX memory_by_subject ON memory (subject, predicate) WHERE subject IS NOT NULL;
CREATE INDEX memory_by_subject_live ON memory (subject, n) WHERE claim IS NOT NULL AND state IN ('active', 'contested');
CREATE INDEX memory_by_time_told ON memory (time_from) WHERE time_from IS NOT NULL;
CREATE INDEX memory_by_successor ON memory (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memory_hot ON memory (updated) WHERE tier = 'hot';
CREATE INDEX memory_episodes ON memory (conversation, n) WHERE kind = 'episode';
CREATE INDEX memory_not_embedded ON memory (n) WHERE embedded IS NULL;

-- Where else a memory was said. When its first place is forgotten, the next one takes over.
CREATE TABLE evidence (
    memory TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    id     TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (memory, seq, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX evidence_by_seq ON evidence (seq);

-- The entries an episode quotes: when one of them is forgotten, the episode goes.
CREATE TABLE cited (
    seq    INTEGER NOT NULL,
    memory TEXT NOT NULL,
    PRIMARY KEY (seq, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX cited_by_memory ON cited (memory);

-- Conversations with turns that no episode tells yet: from which turn on, and when the last one was.
CREATE TABLE untold (
    conversation TEXT PRIMARY KEY,
    first        INTEGER NOT NULL,
    last_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX untold_by_time ON untold (last_at);

-- Two memories that cannot both be so, while nobody has settled it.
CREATE TABLE conflict (
    a TEXT NOT NULL,
    b TEXT NOT NULL,
    PRIMARY KEY (a, b)
) STRICT, WITHOUT ROWID;
CREATE INDEX conflict_by_b ON conflict (b);

-- Vectors, and what else recall knows about a turn. They are kept over a replay and used again where the text is
-- the same; a new stamp is always larger, so that a cache sees what changed since it looked.
CREATE TABLE model (n INTEGER PRIMARY KEY, id TEXT NOT NULL, dimension INTEGER NOT NULL, UNIQUE (id, dimension)) STRICT;
CREATE TABLE turn_vector (
    stamp  INTEGER PRIMARY KEY AUTOINCREMENT,
    n      INTEGER NOT NULL UNIQUE,
    words  INTEGER NOT NULL,
    asks   INTEGER NOT NULL,
    model  INTEGER NOT NULL,
    digest BLOB NOT NULL,
    vector BLOB
) STRICT;
CREATE INDEX turn_vector_stale ON turn_vector (n) WHERE digest = x'';
CREATE TABLE memory_vector (
    stamp  INTEGER PRIMARY KEY AUTOINCREMENT,
    id     TEXT NOT NULL UNIQUE,
    model  INTEGER NOT NULL,
    digest BLOB NOT NULL,
    vector BLOB
) STRICT;

-- How often a memory was told to an agent. Not derived from the ledger: recalls are not recorded there.
CREATE TABLE access (
    memory TEXT PRIMARY KEY,
    count  INTEGER NOT NULL,
    last   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE turn_words USING fts5vocab (turn_index, instance);
INSERT INTO meta VALUES ('generation', '0'), ('derived', '0');
