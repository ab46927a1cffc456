-- Documents: derived from the ledger like turns and memories. A document's row number is its entry's seq; a span's and a
-- section's is that times 1,048,576 plus its ordinal, so that what belongs to one document stands together.
CREATE TABLE document (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    project      TEXT,
    media_type   TEXT NOT NULL,
    bytes        INTEGER NOT NULL,
    chars        INTEGER NOT NULL,
    sections     INTEGER NOT NULL,
    spans        INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    status       TEXT NOT NULL,
    error        TEXT,
    distillation TEXT
) STRICT;
CREATE INDEX document_by_project ON document (project, updated) WHERE project IS NOT NULL;
CREATE INDEX document_by_time ON document (updated);
CREATE INDEX document_undistilled ON document (seq) WHERE status = 'processing';

CREATE TABLE section (
    n            INTEGER PRIMARY KEY,
    title        TEXT,
    level        INTEGER NOT NULL,
    path         TEXT NOT NULL,
    start        INTEGER NOT NULL,
    "end"        INTEGER NOT NULL,
    distillation TEXT
) STRICT;

CREATE TABLE span (
    n       INTEGER PRIMARY KEY,
    section INTEGER NOT NULL,
    start   INTEGER NOT NULL,
    "end"   INTEGER NOT NULL,
    place   INTEGER,
    words   INTEGER NOT NULL,
    lead    TEXT NOT NULL,
    text    TEXT NOT NULL,
    -- The model whose vector it has; NULL while it waits for one.
    embedded INTEGER
) STRICT;
CREATE INDEX span_not_embedded ON span (n) WHERE embedded IS NULL;

CREATE VIRTUAL TABLE span_index USING fts5 (
    text, content = '', tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* M* Co So'"
);
INSERT INTO span_index (span_index, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE span_words USING fts5vocab (span_index, instance);

CREATE TABLE span_vector (
    stamp  INTEGER PRIMARY KEY AUTOINCREMENT,
    n      INTEGER NOT NULL UNIQUE,
    model  INTEGER NOT NULL,
    digest BLOB NOT NULL,
    vector BLOB
) STRICT;

CREATE TABLE collection (
    seq     INTEGER PRIMARY KEY,
    id      TEXT NOT NULL UNIQUE,
    name    TEXT NOT NULL,
    project TEXT,
    ordered INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;

-- A document is meant by its id, whichever upload is under it; a collection is the one that was made, and another one
-- under the same id begins empty.
CREATE TABLE member (
    collection INTEGER NOT NULL,
    document   TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    position   INTEGER,
    at         INTEGER NOT NULL,
    PRIMARY KEY (collection, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_by_document ON member (document);
CREATE INDEX member_by_seq ON member (seq);

-- What an entry is about, also where a later one took its place: a forget finds it here.
CREATE TABLE shelf_entry (
    seq        INTEGER PRIMARY KEY,
    document   TEXT,
    collection TEXT,
    project    TEXT,
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX shelf_entry_by_document ON shelf_entry (document) WHERE document IS NOT NULL;
INSERT INTO meta VALUES ('library', '0');
