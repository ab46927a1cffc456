-- What compaction kept and decided.

-- name: raw_between
SELECT l.seq, l.id, min(t.at) FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE t.at >= :since AND t.at < :until GROUP BY 1, 2 ORDER BY 3, 1

-- name: first_raw
SELECT min(at) FROM turn WHERE at >= :since

-- name: judged
SELECT day, entry, item, outcome, line, reason FROM judgement
WHERE entry IN (SELECT value FROM {texts:ids:each}) ORDER BY entry, item

-- name: judged_on
SELECT day, entry, item, outcome, line, reason FROM judgement
WHERE CAST(:day AS TEXT) IS NULL OR day = :day ORDER BY day DESC, entry, item LIMIT :limit OFFSET :offset

-- name: lines
SELECT {line_columns} FROM promoted p WHERE p.layer = :layer AND p.day BETWEEN :first AND :last ORDER BY p.day, p.at, p.id

-- name: lines_at
SELECT {line_columns} FROM promoted p WHERE p.id IN (SELECT value FROM {texts:ids:each}) ORDER BY p.seq

-- name: lines_from
SELECT {line_columns} FROM promoted p WHERE p.seq IN (
    SELECT f.seq FROM promoted_from f WHERE f.source IN (SELECT value FROM {texts:ids:each})
) ORDER BY p.seq

-- name: verdicts
SELECT learning, confirmed, decider, at, memory FROM verdict

-- name: forgotten_by_someone
SELECT id FROM tombstone WHERE id IN (SELECT value FROM {texts:ids:each}) AND reason <> :retention

-- name: add_line
INSERT INTO promoted (seq, id, layer, day, kind, text, at, sources, quote, conversation, project, within, recorded)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: add_line_source
INSERT INTO promoted_from (source, seq) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: drop_line
DELETE FROM promoted WHERE seq = ?

-- name: drop_line_sources
DELETE FROM promoted_from WHERE seq = ?

-- name: add_judged
INSERT INTO judgement (day, entry, item, outcome, line, reason) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: add_verdict
INSERT INTO verdict (learning, confirmed, decider, at, memory) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (learning) DO UPDATE SET confirmed = 1, decider = excluded.decider, at = excluded.at, memory = excluded.memory
WHERE excluded.confirmed <> 0 AND verdict.confirmed = 0
