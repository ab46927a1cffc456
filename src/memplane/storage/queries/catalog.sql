-- name: add_key
INSERT INTO key (id, agent, salt, digest, name, tenant, subject, spaces, doors, rights, created, expires, used, revoked,
    parent, passing)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: first_time
INSERT INTO once (word) VALUES (:word) ON CONFLICT DO NOTHING RETURNING word

-- name: key
SELECT id, agent, salt, digest, name, tenant, subject, spaces, doors, rights, created, expires, used, revoked,
    parent, passing
FROM key WHERE id = :id

-- name: keys_of_agent
SELECT id, agent, salt, digest, name, tenant, subject, spaces, doors, rights, created, expires, used, revoked,
    parent, passing
FROM key WHERE agent = :agent ORDER BY id

-- name: keys
SELECT id, agent, salt, digest, name, tenant, subject, spaces, doors, rights, created, expires, used, revoked,
    parent, passing
FROM key ORDER BY created, id

-- name: revoke
UPDATE key SET revoked = :at WHERE id = :id AND revoked IS NULL

-- name: touch
UPDATE key SET used = :at WHERE id = :id AND (used IS NULL OR used < :at)

-- name: forget_locks
DELETE FROM lock WHERE until <= :now

-- name: lock
INSERT INTO lock (place, until) VALUES (:place, :until)
ON CONFLICT (place) DO UPDATE SET until = {larger:lock.until:excluded.until}

-- name: locked_until
SELECT until FROM lock WHERE place = :place

-- name: note_place
INSERT INTO place (tenant, sort, id, owner, at, noted) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, sort, id, owner) DO UPDATE SET noted = {larger:place.noted:excluded.noted}

-- name: forget_place
DELETE FROM place
WHERE tenant = :tenant AND sort = :sort AND id = :id AND owner = :owner AND noted <= :before

-- name: drop_place
DELETE FROM place WHERE tenant = ? AND sort = ? AND id = ? AND owner = ?

-- name: places_of
SELECT id FROM place WHERE tenant = :tenant AND sort = :sort AND owner = :owner

-- name: owners_of
SELECT owner FROM place WHERE tenant = :tenant AND sort = :sort AND id = :id ORDER BY owner

-- name: newest_places
SELECT id, owner FROM place
WHERE tenant = :tenant AND sort = :sort AND (:every OR owner IN (SELECT value FROM {texts:owners:each}))
ORDER BY at DESC, id DESC, owner LIMIT :limit OFFSET :offset

-- name: count_places
SELECT count(*) FROM place
WHERE tenant = :tenant AND sort = :sort AND (:every OR owner IN (SELECT value FROM {texts:owners:each}))

-- name: complete
SELECT owner FROM complete WHERE tenant = :tenant

-- name: set_complete
INSERT INTO complete (tenant, owner) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: is_complete
SELECT 1 FROM complete WHERE tenant = :tenant AND owner = :owner

-- name: unset_complete
DELETE FROM complete WHERE tenant = :tenant AND owner = :owner

-- name: add_usage
INSERT INTO usage (
    tenant, day, endpoint, requests, errors, latency_us, request_bytes, response_bytes, ingest_events, tokens, work_units
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, day, endpoint) DO UPDATE SET
    requests = usage.requests + excluded.requests,
    errors = usage.errors + excluded.errors,
    latency_us = usage.latency_us + excluded.latency_us,
    request_bytes = usage.request_bytes + excluded.request_bytes,
    response_bytes = usage.response_bytes + excluded.response_bytes,
    ingest_events = usage.ingest_events + excluded.ingest_events,
    tokens = usage.tokens + excluded.tokens,
    work_units = usage.work_units + excluded.work_units

-- name: drop_usage
DELETE FROM usage WHERE day < :oldest

-- name: usage
SELECT day, endpoint, requests, errors, latency_us, request_bytes, response_bytes, ingest_events, tokens, work_units
FROM usage WHERE tenant = :tenant AND day BETWEEN :first AND :last ORDER BY day, endpoint

-- name: begin_spent
INSERT INTO spent (tenant, what, since, used)
SELECT :tenant, :what, :since, coalesce(sum(ingest_events), 0) FROM usage WHERE tenant = :tenant AND day >= :since
ON CONFLICT (tenant, what, since) DO UPDATE SET used = {larger:spent.used:excluded.used}

-- name: spend
INSERT INTO spent (tenant, what, since, used) SELECT :tenant, :what, :since, 1 WHERE :limit > 0
ON CONFLICT (tenant, what, since) DO UPDATE SET used = spent.used + 1 WHERE spent.used < :limit
RETURNING used

-- name: give_back
UPDATE spent SET used = used - 1 WHERE tenant = :tenant AND what = :what AND since = :since AND used > 0

-- name: spent
SELECT used FROM spent WHERE tenant = :tenant AND what = :what AND since = :since

-- name: passed
SELECT at FROM passed
WHERE tenant = :tenant AND what = :what AND n =
    (SELECT max(n) FROM passed WHERE tenant = :tenant AND what = :what) - :rate + 1

-- name: pass
INSERT INTO passed (tenant, what, n, at)
SELECT :tenant, :what, coalesce(max(n), 0) + 1, :at FROM passed WHERE tenant = :tenant AND what = :what

-- name: forget_passed
DELETE FROM passed
WHERE tenant = :tenant AND what = :what AND n <=
    (SELECT max(n) FROM passed WHERE tenant = :tenant AND what = :what) - :rate

-- name: alone
SELECT 1 WHERE :number IS NOT NULL
