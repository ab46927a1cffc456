-- Turns and conversations.

-- name: conversations
SELECT t.conversation, count(*), min(t.at), max(t.at),
       (SELECT x.project FROM turn x WHERE x.conversation = t.conversation ORDER BY x.at DESC, x.n DESC LIMIT 1)
FROM turn t WHERE t.conversation IS NOT NULL AND (CAST(:project AS TEXT) IS NULL OR t.project = :project)
GROUP BY t.conversation ORDER BY max(t.at) DESC, t.conversation LIMIT :limit OFFSET :offset

-- name: turn_heads
SELECT t.n, t.conversation, t.project, t.role, t.speaker, t.at,
       coalesce(v.words, length(t.text) / 6 + 1), coalesce(v.asks, CASE WHEN rtrim(t.text) LIKE '%?' THEN 1 ELSE 0 END), t.within
FROM turn t LEFT JOIN turn_vector v ON v.n = t.n
WHERE t.n > :after AND t.n <= :until ORDER BY t.n LIMIT :limit

-- name: newest_turns
SELECT n FROM turn ORDER BY at DESC, n DESC LIMIT :limit

-- name: turns_at
SELECT {turn_columns}
FROM {numbers:numbers:s} JOIN turn t ON t.n = s.value JOIN ledger l ON l.seq = {entry_of:t} WHERE {where}

-- name: turns_between
SELECT {turn_columns}
FROM turn t JOIN ledger l ON l.seq = {entry_of:t} WHERE t.n >= :first AND t.n <= :last ORDER BY t.n

-- name: turn_before
SELECT {turn_columns} FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE t.conversation = :conversation AND t.conversation IS NOT NULL AND t.at <= :at AND t.n < :n
ORDER BY t.at DESC, t.n DESC LIMIT 1

-- name: turn_before_outside
SELECT {turn_columns} FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE t.n < :n AND t.n >= :n - {turns_per_entry} * 8 AND t.conversation IS NULL ORDER BY t.n DESC LIMIT 1

-- name: turns_after
SELECT {turn_columns} FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE t.conversation = :conversation AND t.conversation IS NOT NULL AND t.at >= :at AND t.n > :n
ORDER BY t.at, t.n LIMIT :limit OFFSET :offset

-- name: turns_after_outside
SELECT {turn_columns} FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE t.n > :n AND t.n <= :n + {turns_per_entry} * 8 AND t.conversation IS NULL ORDER BY t.n LIMIT :limit OFFSET :offset

-- name: turns_of
SELECT {turn_columns} FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE t.conversation = :conversation AND t.conversation IS NOT NULL AND t.n >= :since ORDER BY t.n

-- name: last_turn_of
SELECT {turn_columns} FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE t.conversation = :conversation AND t.conversation IS NOT NULL AND t.n < :before ORDER BY t.n DESC LIMIT 1

-- name: conversations_of
WITH s (first, beyond) AS MATERIALIZED (
    SELECT value * {turns_per_entry}, (value + 1) * {turns_per_entry} FROM {numbers:seqs:each}
)
SELECT DISTINCT t.conversation FROM s JOIN turn t ON t.n >= s.first AND t.n < s.beyond
WHERE t.conversation IS NOT NULL ORDER BY t.conversation

-- name: turns
SELECT {turn_columns}
FROM turn t JOIN ledger l ON l.seq = {entry_of:t} WHERE {where}
ORDER BY t.at DESC, t.n DESC LIMIT :limit OFFSET :offset

-- name: turn_numbers
SELECT t.n FROM turn t WHERE {where} ORDER BY t.at DESC, t.n DESC LIMIT :limit

-- name: turn_texts
SELECT n, text FROM turn WHERE n >= :first AND n < :beyond

-- name: drop_turns
DELETE FROM turn WHERE n >= ? AND n < ?

-- name: add_turn
INSERT INTO turn (n, role, text, at, conversation, project, speaker, within, flags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (n) DO NOTHING
