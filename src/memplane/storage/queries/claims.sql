-- Evidence, conflicts, and what one memory replaced.

-- name: rivals
WITH best (n, updated, seq, id) AS MATERIALIZED (
    SELECT m.n, m.updated, m.seq, m.id FROM memory m
    WHERE m.subject = :subject AND m.subject IS NOT NULL AND m.predicate = :predicate AND m.claim IS NOT NULL
      AND m.within IS NOT DISTINCT FROM :within AND m.state IN ('active', 'contested') ORDER BY m.updated DESC, m.seq DESC, m.id LIMIT :limit
)
SELECT {columns} FROM best CROSS JOIN memory m ON m.n = best.n JOIN ledger l ON l.seq = m.seq
ORDER BY best.updated DESC, best.seq DESC, best.id

-- name: rivals_by_topic
WITH best (n, updated, seq, id) AS MATERIALIZED (
    SELECT m.n, m.updated, m.seq, m.id FROM memory m
    WHERE m.subject = :subject AND m.subject IS NOT NULL AND m.predicate = :predicate AND m.claim IS NOT NULL
      AND {member:m.claim:topic} = :topic
      AND m.within IS NOT DISTINCT FROM :within AND m.state IN ('active', 'contested') ORDER BY m.updated DESC, m.seq DESC, m.id LIMIT :limit
)
SELECT {columns} FROM best CROSS JOIN memory m ON m.n = best.n JOIN ledger l ON l.seq = m.seq
ORDER BY best.updated DESC, best.seq DESC, best.id

-- name: newest_rivals
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.subject = :subject AND m.subject IS NOT NULL AND m.claim IS NOT NULL
  AND m.within IS NOT DISTINCT FROM :within AND m.state IN ('active', 'contested') ORDER BY m.seq DESC, m.id LIMIT :limit

-- name: all_conflicts
SELECT a, b FROM conflict ORDER BY a, b

-- name: conflicts
SELECT a, b FROM conflict WHERE a IN (SELECT value FROM {texts:ids:each})
UNION SELECT a, b FROM conflict WHERE b IN (SELECT value FROM {texts:ids:each}) ORDER BY a, b

-- name: evidence
SELECT memory, body FROM evidence WHERE memory IN (SELECT value FROM {texts:ids:each}) ORDER BY memory, seq, id

-- name: replaced_by
SELECT id FROM memory
WHERE superseded_by IS NOT NULL AND superseded_by IN (SELECT value FROM {texts:ids:each}) AND extractor IS NOT NULL

-- name: add_evidence
INSERT INTO evidence (memory, seq, id, body) VALUES (?, ?, ?, ?)
ON CONFLICT (memory, seq, id) DO NOTHING

-- name: add_conflict
INSERT INTO conflict (a, b) VALUES (?, ?) ON CONFLICT (a, b) DO NOTHING

-- name: at_odds
SELECT b FROM conflict WHERE a = :id UNION SELECT a FROM conflict WHERE b = :id

-- name: drop_conflicts
DELETE FROM conflict WHERE (a, b) IN (
    SELECT a, b FROM conflict WHERE a = ?1 UNION ALL SELECT a, b FROM conflict WHERE b = ?1
)

-- name: set_state
UPDATE memory SET state = ?2 WHERE id = ?1 AND state IN ('active', 'contested')

-- name: uncontest
UPDATE memory SET state = 'active' WHERE id = ?1 AND state = 'contested'
  AND NOT EXISTS (SELECT 1 FROM conflict WHERE a = ?1) AND NOT EXISTS (SELECT 1 FROM conflict WHERE b = ?1)

-- name: displaced_by
SELECT id, superseded_by FROM memory
WHERE superseded_by IS NOT NULL AND superseded_by IN (SELECT value FROM {texts:ids:each}) AND extractor IS NULL ORDER BY id

-- name: purged_by
SELECT id, by, seq, entry, at FROM purged WHERE by IN (SELECT value FROM {texts:ids:each}) ORDER BY by, id

-- name: note_overruled
INSERT INTO overruled (id, by) VALUES (?, ?) ON CONFLICT (by, id) DO NOTHING

-- name: overruled
SELECT id FROM overruled WHERE by IN (SELECT value FROM {texts:ids:each}) ORDER BY id

-- name: evidence_at
SELECT body FROM evidence WHERE seq IN (SELECT value FROM {numbers:seqs:each}) ORDER BY seq, id

-- name: drop_evidence_of_entry
DELETE FROM evidence WHERE seq = ?

-- name: drop_purged
DELETE FROM purged WHERE seq = ?

-- name: drop_evidence
DELETE FROM evidence WHERE memory = ?
