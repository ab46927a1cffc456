-- What a turn or a memory is flagged for, names with spaces between; '' is nothing, NULL was kept before there were flags
-- and is looked at when it is told.
ALTER TABLE turn ADD COLUMN flags TEXT;
ALTER TABLE memory ADD COLUMN flags TEXT;
CREATE INDEX turn_flagged ON turn (n) WHERE flags <> '';
CREATE INDEX memory_flagged ON memory (n) WHERE flags <> '';

-- What a person ruled about a memory or an entry: that it is told in spite of its flags, that it is always told. Derived from
-- the ledger, and apart from what it is about: that may be derived later, or be gone.
CREATE TABLE ruling (
    id       TEXT PRIMARY KEY,
    released INTEGER NOT NULL,
    pinned   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ruling_pinned ON ruling (id) WHERE pinned = 1;
