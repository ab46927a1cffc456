-- Statements of SQLite only: the word indexes (FTS5), and vectors.

-- name: add_turn_words
INSERT INTO turn_index (rowid, text) VALUES (?, ?)

-- name: drop_turn_words
INSERT INTO turn_index (turn_index, rowid, text) VALUES ('delete', ?, ?)

-- name: match_turns
SELECT {turn_columns}
FROM turn_index i JOIN turn t ON t.n = i.rowid JOIN ledger l ON l.seq = {entry_of:t}
WHERE i.turn_index MATCH :match AND {where} ORDER BY i.rank LIMIT :limit

-- name: match_newest_turns
SELECT {turn_columns}
FROM turn_index i JOIN turn t ON t.n = i.rowid JOIN ledger l ON l.seq = {entry_of:t}
WHERE i.turn_index MATCH :match AND {where} ORDER BY i.rowid DESC LIMIT :limit

-- name: add_memory_words
INSERT INTO memory_index (rowid, text) VALUES (?, ?)

-- name: drop_memory_words
INSERT INTO memory_index (memory_index, rowid, text) VALUES ('delete', ?, ?)

-- name: match_memories
WITH best (n, place) AS MATERIALIZED (
    SELECT m.n, i.rank FROM memory_index i CROSS JOIN memory m ON m.n = i.rowid
    WHERE i.memory_index MATCH :match AND {where} ORDER BY i.rank LIMIT :limit
)
SELECT {columns} FROM best CROSS JOIN memory m USING (n) JOIN ledger l USING (seq) ORDER BY best.place

-- name: match_newest_memories
SELECT {columns} FROM memory_index i JOIN memory m ON m.n = i.rowid JOIN ledger l USING (seq)
WHERE i.memory_index MATCH :match AND {where} ORDER BY i.rowid DESC LIMIT :limit

-- name: turn_frequency
SELECT term, doc FROM turn_vocabulary WHERE term IN (SELECT value FROM {texts:stems:each})

-- name: memory_frequency
SELECT term, doc FROM memory_vocabulary WHERE term IN (SELECT value FROM {texts:stems:each})

-- name: turn_occurrences
SELECT json_group_array(doc) FROM turn_words WHERE term = :stem

-- name: turn_occurrences_of_prefix
SELECT json_group_array(doc) FROM turn_words WHERE term >= :stem AND term <= :last

-- name: count_turns_up_to
SELECT count(*) FROM (SELECT 1 FROM turn_index WHERE turn_index MATCH :match LIMIT :limit)

-- name: rivals_by_words
WITH newest (n) AS MATERIALIZED (
    SELECT rowid FROM memory_index WHERE memory_index MATCH :match ORDER BY rowid DESC LIMIT 8 * :limit
)
SELECT {columns} FROM newest CROSS JOIN memory m USING (n) JOIN ledger l USING (seq)
WHERE m.subject = :subject AND m.claim IS NOT NULL
  AND m.within IS NOT DISTINCT FROM :within AND m.state IN ('active', 'contested') ORDER BY newest.n DESC LIMIT :limit

-- name: add_turn_vector
INSERT INTO turn_vector (n, words, asks, model, digest, vector)
SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM turn WHERE n = ?1)

-- name: add_memory_vector
INSERT INTO memory_vector (id, model, digest, vector)
SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM memory WHERE id = ?1)

-- name: stamp_memory_vector
INSERT OR REPLACE INTO memory_vector (id, model, digest, vector)
SELECT id, model, digest, vector FROM memory_vector WHERE id = ?

-- name: add_span_words
INSERT INTO span_index (rowid, text) VALUES (?, ?)

-- name: drop_span_words
INSERT INTO span_index (span_index, rowid, text) VALUES ('delete', ?, ?)

-- name: span_occurrences
SELECT json_group_array(doc) FROM span_words WHERE term = :stem

-- name: span_occurrences_of_prefix
SELECT json_group_array(doc) FROM span_words WHERE term >= :stem AND term <= :last

-- name: count_spans_up_to
SELECT count(*) FROM (SELECT 1 FROM span_index WHERE span_index MATCH :match LIMIT :limit)

-- name: add_span_vector
INSERT INTO span_vector (n, model, digest, vector)
SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM span WHERE n = ?1)

-- name: stamp_span_vector
INSERT OR REPLACE INTO span_vector (n, model, digest, vector)
SELECT n, model, digest, vector FROM span_vector WHERE n = ?
