-- Memories: reading, matching, lifecycle.

-- name: add_memory
INSERT INTO memory (n, id, kind, behavioral, text, seq, start, "end", state, tier, tags, key, category, created,
                    updated, expires, supersedes, superseded_by, superseded, conversation, project,
                    turn, quote, extractor, subject, predicate, object, claim, importance, confidence, times,
                    time_from, time_until, role, within, flags)
VALUES ((SELECT coalesce(max(n), 0) + 1 FROM memory),
        ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING n

-- name: add_tag
INSERT INTO memory_tag (tag, n) VALUES (?, ?)

-- name: drop_tags
DELETE FROM memory_tag WHERE n = ?

-- name: drop_memory
DELETE FROM memory WHERE n = ?

-- name: memory
SELECT {columns} FROM memory m JOIN ledger l USING (seq) WHERE m.id = :id

-- name: keyed
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.key = :key AND m.key IS NOT NULL AND {live}

-- name: holder
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.key = :key AND m.key IS NOT NULL AND m.state IN ('active', 'contested')

-- name: key_history
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.key = :key AND m.key IS NOT NULL ORDER BY m.updated, m.n

-- name: brief
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE {live} AND {not_reserved} AND {not_faded} AND {not_unnoted} AND {not_quarantined} AND {where}
  AND (m.extractor IS NULL OR (m.role = 'user' AND (m.behavioral <> 0 OR m.tier = 'hot')))
ORDER BY m.behavioral DESC, m.updated DESC, m.n DESC LIMIT :limit

-- name: supersede
UPDATE memory SET state = 'superseded', tier = 'cold', superseded_by = ?, superseded = ? WHERE id = ? RETURNING 1

-- name: superseded_before
SELECT n, text, key, tags, seq, id, turn FROM memory WHERE superseded IS NOT NULL AND superseded < :before

-- name: category_keys
SELECT category, key FROM memory m
WHERE m.category IS NOT NULL AND m.key IS NOT NULL AND {live} AND {not_reserved}
ORDER BY m.category, m.updated DESC, m.n DESC

-- name: memory_count
SELECT count(*) FROM memory

-- name: memories_of
SELECT {columns} FROM {texts:ids:s} JOIN memory m ON m.id = s.value JOIN ledger l USING (seq) WHERE {where}

-- name: claimed
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.predicate = :predicate AND m.predicate IS NOT NULL AND {where}
ORDER BY m.updated DESC, m.n DESC LIMIT :limit

-- name: told_between
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.time_from IS NOT NULL AND m.time_from < :time_until AND m.time_until > :time_from AND {where}
ORDER BY m.time_from DESC, m.n DESC LIMIT :limit

-- name: stated_between
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.time_from IS NULL AND m.updated >= :time_from AND m.updated < :time_until AND m.kind <> 'episode' AND {where}
ORDER BY m.updated DESC, m.n DESC LIMIT :limit

-- name: speaker_names
SELECT text FROM memory WHERE category = 'speaker_names' AND state IN ('active', 'contested') ORDER BY key

-- name: hot
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.tier = 'hot' AND {not_quarantined} AND {where} ORDER BY m.updated DESC, m.n DESC LIMIT :limit

-- name: standing
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.behavioral = 1 AND m.kind = 'instruction' AND {not_quarantined} AND {where}
ORDER BY m.updated DESC, m.n DESC LIMIT :limit

-- name: memories_from
SELECT {columns}, m.n FROM {numbers:seqs:s} JOIN memory m ON m.seq = s.value JOIN ledger l USING (seq)

-- name: heirs
WITH RECURSIVE chain (start, id, successor, depth) AS (
    SELECT s.value, m.id, m.superseded_by, 0 FROM {texts:ids:s} JOIN memory m ON m.id = s.value
    UNION ALL
    SELECT chain.start, m.id, m.superseded_by, chain.depth + 1 FROM chain JOIN memory m ON m.id = chain.successor
    WHERE chain.depth < 64 AND chain.successor <> chain.id
)
SELECT start, id FROM chain WHERE (successor IS NULL OR successor = id) AND start <> id

-- name: disputed
SELECT m.turn, m.id, m.state FROM {numbers:seqs:s} JOIN memory m ON m.seq = s.value
WHERE m.turn IS NOT NULL AND m.state IN ('superseded', 'contested') AND m.kind <> 'episode'
  AND m.superseded_by IS DISTINCT FROM m.id ORDER BY m.n

-- name: disputed_evidence
SELECT e.body, m.id, m.state FROM {numbers:seqs:s} JOIN evidence e ON e.seq = s.value JOIN memory m ON m.id = e.memory
WHERE m.state IN ('superseded', 'contested') AND m.superseded_by IS DISTINCT FROM m.id ORDER BY m.n

-- name: accesses
SELECT memory, count FROM access WHERE memory IN (SELECT value FROM {texts:ids:each})

-- name: rate
UPDATE memory SET chosen = ?2, passed_over = ?3, leaning = ?4,
                  importance_base = coalesce(importance_base, importance), importance = ?5
WHERE id = ?1

-- name: set_tier
UPDATE memory SET tier = ?2 WHERE id = ?1 AND state IN ('active', 'contested')

-- name: add_access
INSERT INTO access (memory, count, last)
SELECT ?1, 1, ?2 WHERE EXISTS (SELECT 1 FROM memory WHERE id = ?1)
ON CONFLICT (memory) DO UPDATE SET count = access.count + 1, last = excluded.last

-- name: drop_access
DELETE FROM access WHERE memory = ?

-- name: note_purged
INSERT INTO purged (id, by, seq, entry, at)
SELECT m.id, m.superseded_by, m.seq, l.id, m.superseded FROM memory m JOIN ledger l USING (seq)
WHERE m.superseded IS NOT NULL AND m.superseded < ? AND m.superseded_by IS NOT NULL AND m.extractor IS NOT NULL
ON CONFLICT (by, id) DO NOTHING

-- name: rated_by
SELECT EXISTS (SELECT 1 FROM {numbers:seqs:s} JOIN ledger l ON l.seq = s.value WHERE l.op = 'feedback')

-- name: predecessors
SELECT {columns} FROM memory m JOIN ledger l ON l.seq = m.seq
WHERE m.superseded_by IS NOT NULL AND m.superseded_by = :id AND m.id <> :id ORDER BY m.updated, m.n LIMIT :limit

-- name: memories
SELECT {columns} FROM memory m JOIN ledger l USING (seq) WHERE {where}
ORDER BY m.updated DESC, m.n DESC LIMIT :limit OFFSET :offset

-- name: memory_ids
SELECT m.id FROM memory m WHERE {where} ORDER BY m.updated DESC, m.n DESC LIMIT :limit

-- name: memory_texts
SELECT n, text, key, tags, seq, id, turn FROM memory WHERE seq = :seq
