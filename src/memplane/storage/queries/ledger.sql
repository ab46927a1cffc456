-- The ledger: entries, payloads, tombstones.

-- name: head
SELECT (SELECT max(seq) FROM ledger), digest, position FROM ledger ORDER BY position DESC LIMIT 1

-- name: chained
SELECT 1 FROM ledger WHERE position = :position AND digest = :digest

-- name: entry
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l LEFT JOIN payload p USING (position) WHERE l.id = :id

-- name: entries
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l LEFT JOIN payload p USING (position) WHERE l.seq > :after ORDER BY l.seq LIMIT :limit

-- name: entries_at
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l JOIN payload p USING (position) WHERE l.seq IN (SELECT value FROM {numbers:seqs:each}) ORDER BY l.seq

-- name: said
SELECT l.seq FROM ledger l JOIN payload p USING (position)
WHERE l.seq > :after AND l.op IN ('turn', 'history') ORDER BY l.seq LIMIT :limit

-- name: said_between
SELECT l.seq, t.at, l.op FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE t.at > :after AND t.at < :until AND t.n % {turns_per_entry} = 0
  AND (l.op <> 'turn' OR t.at >= :whole) ORDER BY t.at, t.n LIMIT :limit

-- name: ops
SELECT seq, id, op, recorded, actor, door, session, ref, NULL
FROM ledger WHERE recorded >= :since AND recorded < :until ORDER BY recorded DESC, seq DESC LIMIT :limit

-- name: known
SELECT id, seq FROM ledger WHERE id IN (SELECT value FROM {texts:ids:each})

-- name: tombstoned
SELECT id FROM tombstone WHERE id IN (SELECT value FROM {texts:ids:each})

-- name: tombstones
SELECT t.id, t.at, t.reason, t.position, coalesce(l.id, ''), t.cause
FROM tombstone t LEFT JOIN ledger l ON l.position = t.position ORDER BY t.id, t.position

-- name: ledger_rows
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body,
       p.salt, l.payload_digest, l.digest, EXISTS (SELECT 1 FROM tombstone t WHERE t.id = l.id), l.position, l.origin,
       l.chained_id
FROM ledger l LEFT JOIN payload p USING (position) WHERE l.position > :after ORDER BY l.position LIMIT :limit

-- name: forgets
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body,
       p.salt, l.payload_digest, l.digest, 0, l.position, l.origin, l.chained_id
FROM ledger l JOIN payload p USING (position) WHERE l.op = 'forget' ORDER BY l.seq

-- name: replacement
SELECT id FROM ledger WHERE ref = :id AND ref IS NOT NULL ORDER BY seq DESC LIMIT 1

-- name: replacements
SELECT id FROM ledger WHERE ref = :id AND ref IS NOT NULL ORDER BY seq

-- name: usage
SELECT count(*) FILTER (WHERE op = 'store'),
       count(*) FILTER (WHERE op = 'store' AND ref IS NOT NULL),
       count(*) FILTER (WHERE op = 'forget')
FROM ledger WHERE session = :session AND session <> '' AND door NOT LIKE 'import:%' AND origin = ''

-- name: scope_turns
SELECT DISTINCT t.n / {turns_per_entry} FROM turn t WHERE {where}

-- name: scope_memories
SELECT DISTINCT m.seq FROM memory m WHERE {where}

-- name: scope_everything
SELECT l.seq, l.id FROM ledger l JOIN payload p USING (position)
WHERE l.op IN ({erasable}) ORDER BY l.seq

-- name: seq_ids
SELECT l.seq, l.id FROM ledger l JOIN payload p USING (position)
WHERE l.seq IN (SELECT value FROM {numbers:seqs:each}) ORDER BY l.seq

-- name: erasable
SELECT l.seq, l.id FROM ledger l JOIN payload p USING (position)
WHERE l.id IN (SELECT value FROM {texts:ids:each}) AND l.op IN ({erasable}) ORDER BY l.seq

-- name: count_turns
WITH s (first, beyond) AS MATERIALIZED (
    SELECT value * {turns_per_entry}, (value + 1) * {turns_per_entry} FROM {numbers:seqs:each}
)
SELECT count(*) FROM s JOIN turn t ON t.n >= s.first AND t.n < s.beyond

-- name: count_memories
SELECT count(*) FILTER (WHERE m.key IS NULL AND m.kind <> 'episode'),
       count(*) FILTER (WHERE m.key IS NOT NULL AND NOT {reserved}), count(*) FILTER (WHERE {reserved}),
       count(*) FILTER (WHERE m.extractor IS NOT NULL AND m.kind <> 'episode')
       + (SELECT count(*) FROM {numbers:seqs:s} JOIN evidence e ON e.seq = s.value)
FROM {numbers:seqs:s} JOIN memory m ON m.seq = s.value

-- name: hide
INSERT INTO hidden (seq) VALUES (?) ON CONFLICT (seq) DO NOTHING

-- name: unhide
DELETE FROM hidden WHERE seq = ?

-- name: hidden
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM hidden h JOIN ledger l USING (seq) JOIN payload p USING (position) ORDER BY l.seq

-- name: add_tombstone
INSERT INTO tombstone (id, position, at, reason, cause) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id, position) DO NOTHING

-- name: drop_payload
DELETE FROM payload WHERE position = (SELECT position FROM ledger WHERE seq = ?)

-- name: entries_of
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l LEFT JOIN payload p USING (position) WHERE l.id IN (SELECT value FROM {texts:ids:each}) ORDER BY l.seq

-- name: last_entry
SELECT seq, recorded, id FROM ledger ORDER BY seq DESC LIMIT 1

-- name: entry_from_place
SELECT seq, recorded, id FROM ledger WHERE seq >= :seq ORDER BY seq LIMIT 1

-- name: scope_shelf
SELECT seq FROM shelf_entry e WHERE {where}

-- name: count_library
SELECT (SELECT count(*) FROM {numbers:seqs:j} JOIN document d ON d.seq = j.value),
       (SELECT CAST(coalesce(sum(d.spans), 0) AS BIGINT) FROM {numbers:seqs:j} JOIN document d ON d.seq = j.value),
       (SELECT count(*) FROM {numbers:seqs:j} JOIN collection c ON c.seq = j.value)

-- name: payloads_left
SELECT l.id FROM ledger l JOIN payload p USING (position) WHERE l.id IN (SELECT value FROM {texts:ids:each})

-- name: scope_promoted
SELECT p.seq FROM promoted p WHERE {where}

-- name: forgets_between
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body,
       p.salt, l.payload_digest, l.digest, 0, l.position, l.origin, l.chained_id
FROM ledger l JOIN payload p ON p.position = l.position
WHERE l.op = 'forget' AND l.recorded > :begin AND l.recorded <= :end ORDER BY l.seq DESC LIMIT :limit OFFSET :offset

-- name: forget_row
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body,
       p.salt, l.payload_digest, l.digest, 0, l.position, l.origin, l.chained_id
FROM ledger l JOIN payload p ON p.position = l.position WHERE l.id = :id AND l.op = 'forget'

-- name: newest_ops
SELECT seq, id, op, recorded, actor, door, session, ref, NULL FROM ledger ORDER BY seq DESC LIMIT :limit

-- name: entries_before
WITH best (seq) AS MATERIALIZED (
    SELECT l.seq FROM ledger l WHERE l.seq < :before AND l.seq >= :floor AND {where} ORDER BY l.seq DESC LIMIT :limit
)
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM best JOIN ledger l ON l.seq = best.seq LEFT JOIN payload p ON p.position = l.position ORDER BY l.seq DESC

-- name: entries_of_time
WITH said (seq) AS MATERIALIZED (
    SELECT {entry_of:t} FROM turn t WHERE t.at >= :since AND t.at < :until AND t.n < :turns ORDER BY t.at DESC LIMIT :window
), best (seq) AS MATERIALIZED (
    SELECT l.seq FROM ledger l
    WHERE l.seq IN (
        SELECT said.seq FROM said UNION SELECT k.seq FROM ledger k WHERE k.seq >= :first AND k.seq < :last
    ) AND l.seq < :before AND {where} ORDER BY l.seq DESC LIMIT :limit
)
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM best JOIN ledger l ON l.seq = best.seq LEFT JOIN payload p ON p.position = l.position ORDER BY l.seq DESC

-- name: start
SELECT seq, digest, position, recorded, (SELECT value FROM meta WHERE name = 'cursor'),
       (SELECT value FROM meta WHERE name = 'indexed'), (SELECT max(position) FROM ledger)
FROM ledger ORDER BY seq DESC LIMIT 1

-- name: chain_end
SELECT digest, position FROM ledger ORDER BY position DESC LIMIT 1

-- name: add_ledger
INSERT INTO ledger (seq, id, op, recorded, actor, door, session, ref, payload_digest, digest, position, origin)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_payload
INSERT INTO payload (position, salt, body) VALUES (?, ?, ?)
