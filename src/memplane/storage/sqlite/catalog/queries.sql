-- name: add_key
INSERT INTO key (id, agent, salt, digest, name, tenant, subject, spaces, doors, rights, created, expires, used, revoked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: first_time
INSERT OR IGNORE INTO once (word) VALUES (:word) RETURNING word

-- name: key
SELECT id, agent, salt, digest, name, tenant, subject, spaces, doors, rights, created, expires, used, revoked
FROM key WHERE id = :id

-- name: keys_of_agent
SELECT id, agent, salt, digest, name, tenant, subject, spaces, doors, rights, created, expires, used, revoked
FROM key WHERE agent = :agent ORDER BY id

-- name: keys
SELECT id, agent, salt, digest, name, tenant, subject, spaces, doors, rights, created, expires, used, revoked
FROM key ORDER BY created, id

-- name: revoke
UPDATE key SET revoked = :at WHERE id = :id AND revoked IS NULL

-- name: touch
UPDATE key SET used = :at WHERE id = :id AND (used IS NULL OR used < :at)

-- name: forget_locks
DELETE FROM lock WHERE until <= :now

-- name: lock
INSERT INTO lock (place, until) VALUES (:place, :until)
ON CONFLICT (place) DO UPDATE SET until = max(until, excluded.until)

-- name: locked_until
SELECT until FROM lock WHERE place = :place

-- name: note_place
INSERT INTO place (tenant, sort, id, owner, at, noted) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET noted = max(noted, excluded.noted)

-- name: forget_place
DELETE FROM place
WHERE tenant = :tenant AND sort = :sort AND id = :id AND owner = :owner AND noted <= :before

-- name: owners_of
SELECT owner FROM place WHERE tenant = :tenant AND sort = :sort AND id = :id ORDER BY owner

-- name: newest_places
SELECT id, owner FROM place
WHERE tenant = :tenant AND sort = :sort AND (:owners IS NULL OR owner IN (SELECT value FROM json_each(:owners)))
ORDER BY at DESC, id DESC, owner LIMIT :limit OFFSET :offset

-- name: count_places
SELECT count(*) FROM place
WHERE tenant = :tenant AND sort = :sort AND (:owners IS NULL OR owner IN (SELECT value FROM json_each(:owners)))

-- name: complete
SELECT owner FROM complete WHERE tenant = :tenant

-- name: set_complete
INSERT OR IGNORE INTO complete (tenant, owner) VALUES (?, ?)

-- name: is_complete
SELECT 1 FROM complete WHERE tenant = :tenant AND owner = :owner

-- name: unset_complete
DELETE FROM complete WHERE tenant = :tenant AND owner = :owner
