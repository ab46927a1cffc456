-- Review decisions and the quarantine.

-- name: rule
INSERT INTO ruling (id, released, pinned) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET released = excluded.released, pinned = excluded.pinned

-- name: ruling
SELECT released, pinned FROM ruling WHERE id = :id

-- name: quarantined_seqs
SELECT DISTINCT seq FROM (
    SELECT m.seq AS seq FROM memory m WHERE {quarantined} AND {live}
    UNION ALL
    SELECT t.n / {turns_per_entry} AS seq FROM turn t WHERE {turn_quarantined}
) AS suspect ORDER BY seq DESC LIMIT :limit OFFSET :offset

-- name: quarantine_size
SELECT count(DISTINCT seq) FROM (
    SELECT m.seq AS seq FROM memory m WHERE {quarantined} AND {live}
    UNION ALL
    SELECT t.n / {turns_per_entry} AS seq FROM turn t WHERE {turn_quarantined}
) AS suspect

-- name: quarantined_turns
SELECT t.n FROM turn t WHERE {turn_quarantined} ORDER BY t.n DESC LIMIT :limit

-- name: flagged_size
SELECT count(*) FROM (SELECT 1 FROM memory WHERE flags <> '' LIMIT :limit) AS flagged

-- name: quarantined_among
SELECT m.id FROM {texts:ids:s} JOIN memory m ON m.id = s.value WHERE {quarantined}

-- name: ruled
SELECT EXISTS (SELECT 1 FROM ruling)

-- name: pinned_memories
SELECT {columns} FROM ruling p CROSS JOIN memory m ON m.id = p.id JOIN ledger l USING (seq)
WHERE p.pinned = 1 AND {where} ORDER BY m.updated DESC, m.n DESC LIMIT :limit

-- name: pinned_brief
SELECT {columns} FROM ruling p CROSS JOIN memory m ON m.id = p.id JOIN ledger l USING (seq)
WHERE p.pinned = 1 AND {live} AND {not_reserved} AND {not_quarantined} AND {where}
ORDER BY m.behavioral DESC, m.updated DESC, m.n DESC LIMIT :limit
