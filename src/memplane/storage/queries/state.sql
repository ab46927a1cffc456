-- The state of a space: notes, marks, pins.

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

-- name: marks
SELECT (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'generation'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'cursor'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'indexed'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'derived'),
       coalesce((SELECT max(stamp) FROM turn_vector), 0),
       coalesce((SELECT max(stamp) FROM memory_vector), 0),
       coalesce((SELECT max(n) FROM turn), 0)

-- name: grow_generation
UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'generation'

-- name: set_note
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
