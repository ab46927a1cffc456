-- Which space a document, a collection or a receipt lives in. A hint: the space itself is asked before it is believed.
CREATE TABLE place (
    tenant TEXT NOT NULL,
    sort   TEXT NOT NULL,
    id     TEXT NOT NULL,
    owner  TEXT NOT NULL,
    at     INTEGER NOT NULL,
    noted  INTEGER NOT NULL,
    PRIMARY KEY (tenant, sort, id, owner)
) STRICT, WITHOUT ROWID;
-- Only receipts are listed across spaces.
CREATE INDEX receipts_by_time ON place (tenant, at DESC, id DESC, owner) WHERE sort = 'receipt';

-- Spaces of which everything is in `place` and on the disk, also what is older than that table.
CREATE TABLE complete (
    tenant TEXT NOT NULL,
    owner  TEXT NOT NULL,
    PRIMARY KEY (tenant, owner)
) STRICT, WITHOUT ROWID;

-- What was done on a day, counted from 1970 in UTC, at an endpoint, by its template.
CREATE TABLE usage (
    tenant         TEXT NOT NULL,
    day            INTEGER NOT NULL,
    endpoint       TEXT NOT NULL,
    requests       INTEGER NOT NULL,
    errors         INTEGER NOT NULL,
    latency_us     INTEGER NOT NULL,
    request_bytes  INTEGER NOT NULL,
    response_bytes INTEGER NOT NULL,
    ingest_events  INTEGER NOT NULL,
    tokens         INTEGER NOT NULL,
    work_units     INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, endpoint)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_day ON usage (day);

-- What a tenant used of a quota since the day a billing cycle began.
CREATE TABLE spent (
    tenant TEXT NOT NULL,
    what   TEXT NOT NULL,
    since  INTEGER NOT NULL,
    used   INTEGER NOT NULL,
    PRIMARY KEY (tenant, what, since)
) STRICT, WITHOUT ROWID;

-- When each of the last calls under a rate limit was let through; `n` counts them.
CREATE TABLE passed (
    tenant TEXT NOT NULL,
    what   TEXT NOT NULL,
    n      INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, what, n)
) STRICT, WITHOUT ROWID;
