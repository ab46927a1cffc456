-- Merging with other replicas: the order of entries.

-- name: decisions
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l JOIN payload p USING (position) WHERE l.op IN ('forget', 'sweep') ORDER BY l.seq

-- name: positions
SELECT id, position FROM ledger WHERE id IN (SELECT value FROM {texts:ids:each})

-- name: recordings
SELECT id, position, recorded FROM ledger WHERE id IN (SELECT value FROM {texts:ids:each})

-- name: buried
SELECT t.id FROM ledger l JOIN tombstone t USING (position) WHERE l.id = :id AND t.cause IS NULL

-- name: stones
SELECT id, position, at, reason FROM tombstone WHERE id IN (SELECT value FROM {texts:ids:each}) ORDER BY id, position DESC

-- name: all_variants
SELECT id, base FROM variant ORDER BY id

-- name: variants
SELECT id, base FROM variant WHERE base IN (SELECT value FROM {texts:bases:each}) ORDER BY id

-- name: note_variant
INSERT INTO variant (id, base) VALUES (?, ?) ON CONFLICT (id) DO NOTHING

-- name: rename
UPDATE ledger SET id = ?1, chained_id = coalesce(chained_id, id) WHERE id = ?2

-- name: misplaced
SELECT position, id FROM (SELECT seq, position, id, row_number() OVER (ORDER BY recorded, id) AS place FROM ledger) AS placed
WHERE seq <> place ORDER BY place LIMIT 1

-- name: beyond_a_gap
SELECT position, id FROM (SELECT seq, position, id, row_number() OVER (ORDER BY seq) AS place FROM ledger) AS placed
WHERE seq <> place ORDER BY place LIMIT 1

-- name: places
SELECT seq, recorded, id FROM ledger WHERE seq >= :first ORDER BY seq

-- name: move_entry
UPDATE ledger SET seq = -(seq + ?1) WHERE seq = ?2 AND ?3 > ?2

-- name: settle_entries
UPDATE ledger SET seq = -seq WHERE seq < 0

-- name: reorder_entry
UPDATE ledger SET seq = ? WHERE position = ?

-- name: rename_entry
UPDATE ledger SET id = ?, chained_id = ? WHERE position = ?

-- name: move_turn_vectors
UPDATE turn_vector SET n = -(n + ?1) WHERE n >= ?2 AND n < ?3

-- name: settle_turn_vectors
UPDATE turn_vector SET n = -n WHERE n < 0

-- name: move_span_vectors
UPDATE span_vector SET n = -(n + ?1) WHERE n >= ?2 AND n < ?3

-- name: settle_span_vectors
UPDATE span_vector SET n = -n WHERE n < 0
