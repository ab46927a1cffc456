-- The state of a space: notes, marks, pins.

-- name: start
SELECT seq, digest, position, recorded, (SELECT value FROM meta WHERE name = 'cursor'),
       (SELECT value FROM meta WHERE name = 'indexed'), (SELECT max(position) FROM ledger)
FROM ledger ORDER BY seq DESC LIMIT 1

-- name: chain_end
SELECT digest, position FROM ledger ORDER BY position DESC LIMIT 1

-- name: add_ledger
INSERT INTO ledger (seq, id, op, recorded, actor, door, session, ref, payload_digest, digest, position, origin)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_payload
INSERT INTO payload (position, salt, body) VALUES (?, ?, ?)

-- name: note
SELECT value FROM meta WHERE name = :name

-- name: notes
SELECT name, value FROM meta WHERE substr(name, 1, 5) <> 'note:'

-- name: pinned
SELECT text FROM pinned WHERE name = :name

-- name: pin
INSERT INTO pinned (name, at, text) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET at = excluded.at, text = excluded.text WHERE excluded.at >= pinned.at

-- name: drop_old_pins
DELETE FROM pinned WHERE name IN (SELECT name FROM pinned ORDER BY at DESC LIMIT {all} OFFSET ?)

-- name: drop_pins
DELETE FROM pinned

-- name: erasures
SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'erasures'

-- name: count_erasure
UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'erasures'

-- name: add_turn
INSERT INTO turn (n, role, text, at, conversation, project, speaker, within, flags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (n) DO NOTHING

-- name: marks
SELECT (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'generation'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'cursor'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'indexed'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'derived'),
       coalesce((SELECT max(stamp) FROM turn_vector), 0),
       coalesce((SELECT max(stamp) FROM memory_vector), 0),
       coalesce((SELECT max(n) FROM turn), 0)
