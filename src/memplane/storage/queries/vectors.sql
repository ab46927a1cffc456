-- Vectors and the models that made them.

-- name: models
SELECT id, dimension, n FROM model

-- name: add_model
INSERT INTO model (n, id, dimension) VALUES ((SELECT coalesce(max(n), 0) + 1 FROM model), ?, ?)

-- name: turn_vectors
SELECT stamp, n, words, asks, digest, vector FROM turn_vector
WHERE stamp > :after AND model = :model ORDER BY stamp LIMIT :limit

-- name: turn_vectors_at
SELECT v.n, v.vector FROM {numbers:numbers:s} JOIN turn_vector v ON v.n = s.value
WHERE v.model = :model AND v.vector IS NOT NULL

-- name: turn_digests
SELECT v.n, v.digest FROM {numbers:numbers:s} JOIN turn_vector v ON v.n = s.value WHERE v.model = :model

-- name: stale_turns
SELECT n FROM turn_vector WHERE digest = {no_bytes} ORDER BY n LIMIT :limit

-- name: waiting_turns_count
SELECT count(*) FROM turn t WHERE t.n > :after AND t.n <= :until
  AND NOT EXISTS (SELECT 1 FROM turn_vector v WHERE v.n = t.n AND v.model = :model)

-- name: embed_turn_again
UPDATE turn_vector SET digest = {no_bytes}, vector = NULL WHERE n = ?

-- name: memory_vectors
SELECT v.stamp, v.id, v.digest, v.vector, m.turn, m.within FROM memory_vector v JOIN memory m ON m.id = v.id
WHERE v.stamp > :after AND v.model = :model AND m.embedded = :model ORDER BY v.stamp LIMIT :limit

-- name: memory_vectors_of
SELECT v.id, v.vector FROM {texts:ids:s} JOIN memory_vector v ON v.id = s.value
WHERE v.model = :model AND v.vector IS NOT NULL

-- name: memory_digests
SELECT v.id, v.digest FROM {texts:ids:s} JOIN memory_vector v ON v.id = s.value WHERE v.model = :model

-- name: waiting_memories
SELECT {columns} FROM memory m JOIN ledger l USING (seq) WHERE m.embedded IS NULL ORDER BY m.n LIMIT :limit

-- name: waiting_count
SELECT count(*) FROM memory WHERE embedded IS NULL

-- name: drop_turn_vector
DELETE FROM turn_vector WHERE n = ?

-- name: set_embedded
UPDATE memory SET embedded = ? WHERE id = ?

-- name: forget_embedded
DELETE FROM meta WHERE name LIKE 'embedded:%'

-- name: embed_anew
UPDATE memory SET embedded = NULL WHERE embedded IS NOT NULL

-- name: span_vectors
SELECT stamp, n, digest, vector FROM span_vector
WHERE stamp > :after AND model = :model ORDER BY stamp LIMIT :limit

-- name: span_vectors_at
SELECT v.n, v.vector FROM {numbers:numbers:j} JOIN span_vector v ON v.n = j.value
WHERE v.model = :model AND v.vector IS NOT NULL

-- name: spans_waiting
SELECT n, lead || text FROM span WHERE embedded IS NULL ORDER BY n LIMIT :limit

-- name: spans_waiting_count
SELECT count(*) FROM span WHERE embedded IS NULL

-- name: span_digests
SELECT v.n, v.digest FROM {numbers:numbers:j} JOIN span_vector v ON v.n = j.value WHERE v.model = :model

-- name: drop_span_vector
DELETE FROM span_vector WHERE n = ?

-- name: set_span_embedded
UPDATE span SET embedded = ? WHERE n = ?

-- name: embed_spans_anew
UPDATE span SET embedded = NULL WHERE embedded IS NOT NULL

-- name: drop_turn_vectors
DELETE FROM turn_vector WHERE n >= ? AND n < ?

-- name: drop_lost_vectors
DELETE FROM memory_vector WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_vector.id)

-- name: drop_memory_vector
DELETE FROM memory_vector WHERE id = ?

-- name: drop_span_vectors
DELETE FROM span_vector WHERE n >= ? AND n < ?
