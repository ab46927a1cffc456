-- Keys. A row is never deleted: a revoked id must stay known as revoked.
CREATE TABLE key (
    id      TEXT PRIMARY KEY,
    agent   TEXT,
    salt    BLOB NOT NULL,
    digest  BLOB NOT NULL,
    name    TEXT NOT NULL,
    tenant  TEXT NOT NULL,
    subject TEXT NOT NULL,
    spaces  TEXT,
    doors   TEXT,
    rights  TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    used    INTEGER,
    revoked INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX key_by_agent ON key (agent) WHERE agent IS NOT NULL;

-- What happens once in the life of an installation, such as making the owner's key.
CREATE TABLE once (
    word TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Who guessed too often, for every process to see. A place is a digest, so that no address stays on the disk.
CREATE TABLE lock (
    place BLOB PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
