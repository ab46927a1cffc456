-- What is not one space's. Beside the spaces, without row-level security: it is looked at to find out where somebody may go.
-- Keys. A row is never deleted: a revoked id must stay known as revoked.
CREATE TABLE key (
    id      text COLLATE "C" PRIMARY KEY,
    agent   text COLLATE "C",
    salt    bytea NOT NULL,
    digest  bytea NOT NULL,
    name    text COLLATE "C" NOT NULL,
    tenant  text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    spaces  text COLLATE "C",
    doors   text COLLATE "C",
    rights  text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    expires bigint,
    used    bigint,
    revoked bigint
);
CREATE INDEX key_by_agent ON key (agent) WHERE agent IS NOT NULL;

-- What happens once in the life of an installation, such as making the owner's key.
CREATE TABLE once (
    word text COLLATE "C" PRIMARY KEY
);

-- Who guessed too often, for every process to see. A place is a digest, so that no address stays on the disk.
CREATE TABLE lock (
    place bytea PRIMARY KEY,
    until bigint NOT NULL
);

-- Which space a document, a collection or a receipt lives in. A hint: the space itself is asked before it is believed.
CREATE TABLE place (
    tenant text COLLATE "C" NOT NULL,
    sort   text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    owner  text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    noted  bigint NOT NULL
);
-- Names may be long, and a key has a largest size.
CREATE UNIQUE INDEX place_by_id ON place (tenant, sort, md5(id), owner);
-- Only receipts are listed across spaces.
CREATE INDEX receipts_by_time ON place (tenant, at DESC, id DESC, owner) WHERE sort = 'receipt';

-- Spaces of which everything is in `place` and on the disk, also what is older than that table.
CREATE TABLE complete (
    tenant text COLLATE "C" NOT NULL,
    owner  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, owner)
);

-- What was done on a day, counted from 1970 in UTC, at an endpoint, by its template.
CREATE TABLE usage (
    tenant         text COLLATE "C" NOT NULL,
    day            bigint NOT NULL,
    endpoint       text COLLATE "C" NOT NULL,
    requests       bigint NOT NULL,
    errors         bigint NOT NULL,
    latency_us     bigint NOT NULL,
    request_bytes  bigint NOT NULL,
    response_bytes bigint NOT NULL,
    ingest_events  bigint NOT NULL,
    tokens         bigint NOT NULL,
    work_units     bigint NOT NULL,
    PRIMARY KEY (tenant, day, endpoint)
);
CREATE INDEX usage_by_day ON usage (day);

-- What a tenant used of a quota since the day a billing cycle began.
CREATE TABLE spent (
    tenant text COLLATE "C" NOT NULL,
    what   text COLLATE "C" NOT NULL,
    since  bigint NOT NULL,
    used   bigint NOT NULL,
    PRIMARY KEY (tenant, what, since)
);

-- When each of the last calls under a rate limit was let through; `n` counts them.
CREATE TABLE passed (
    tenant text COLLATE "C" NOT NULL,
    what   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (tenant, what, n)
);

-- A session ends with the key that somebody signed in with, and is in no list of keys.
ALTER TABLE key ADD COLUMN parent text COLLATE "C";
ALTER TABLE key ADD COLUMN passing boolean NOT NULL DEFAULT false;
