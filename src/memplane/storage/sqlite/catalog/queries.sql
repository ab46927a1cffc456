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
