-- Episodes, and conversations without one.

-- name: untold
SELECT conversation, first, last_at FROM untold WHERE last_at <= :before ORDER BY last_at LIMIT :limit

-- name: untold_in
SELECT conversation, first, last_at FROM untold WHERE conversation = :conversation

-- name: set_untold
INSERT INTO untold (conversation, first, last_at) VALUES (?, ?, ?)
ON CONFLICT (conversation) DO UPDATE SET first = excluded.first, last_at = excluded.last_at

-- name: set_told
DELETE FROM untold WHERE conversation = ?

-- name: episodes_of
WITH found (n, updated) AS MATERIALIZED (
    SELECT m.n, m.updated FROM memory m INDEXED BY memory_episodes
    WHERE m.kind = 'episode' AND m.conversation IN (SELECT value FROM {texts:conversations:each})
)
SELECT {columns} FROM found CROSS JOIN memory m ON m.n = found.n JOIN ledger l ON l.seq = m.seq
WHERE {where} ORDER BY found.updated DESC, found.n DESC LIMIT :limit

-- name: episode_count
SELECT count(*) FROM memory
WHERE kind = 'episode' AND conversation IN (SELECT value FROM {texts:conversations:each})

-- name: episode_rows
SELECT n, text, key, tags, seq, id, turn FROM memory WHERE kind = 'episode' AND conversation = :conversation

-- name: add_cited
INSERT INTO cited (seq, memory) VALUES (?, ?) ON CONFLICT (seq, memory) DO NOTHING

-- name: cited_by
SELECT seq FROM cited WHERE memory = :id ORDER BY seq

-- name: cited_rows
SELECT m.n, m.text, m.key, m.tags, m.seq, m.id, m.turn FROM cited c JOIN memory m ON m.id = c.memory WHERE c.seq = :seq

-- name: drop_cited
DELETE FROM cited WHERE memory = ?
