-- The audit log.

-- name: audit
SELECT seq, at, actor, door, session, action, target, outcome, detail, digest
FROM audit WHERE seq > :after ORDER BY seq LIMIT :limit

-- name: last_audit
SELECT seq, digest FROM audit ORDER BY seq DESC LIMIT 1

-- name: add_audit
INSERT INTO audit (seq, at, actor, door, session, action, target, outcome, detail, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
