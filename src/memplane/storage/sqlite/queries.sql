-- name: head
SELECT seq, digest FROM ledger ORDER BY seq DESC LIMIT 1

-- name: start
SELECT seq, digest, (SELECT value FROM meta WHERE name = 'cursor'), (SELECT value FROM meta WHERE name = 'indexed')
FROM ledger ORDER BY seq DESC LIMIT 1

-- name: add_ledger
INSERT INTO ledger (seq, id, op, recorded, actor, door, session, ref, payload_digest, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_payload
INSERT INTO payload (seq, salt, body) VALUES (?, ?, ?)

-- name: entry
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l LEFT JOIN payload p USING (seq) WHERE l.id = :id

-- name: entries
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l LEFT JOIN payload p USING (seq) WHERE l.seq > :after ORDER BY l.seq LIMIT :limit

-- name: ops
SELECT seq, id, op, recorded, actor, door, session, ref, NULL
FROM ledger WHERE recorded >= :since AND recorded < :until ORDER BY recorded DESC, seq DESC LIMIT :limit

-- name: known
SELECT id, seq FROM ledger WHERE id IN (SELECT value FROM json_each(:ids))

-- name: tombstoned
SELECT id FROM tombstone WHERE id IN (SELECT value FROM json_each(:ids))

-- name: tombstones
SELECT t.id, t.at, t.reason, t.seq, coalesce(l.id, '') FROM tombstone t LEFT JOIN ledger l ON l.seq = t.seq ORDER BY t.id

-- name: ledger_rows
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body,
       p.salt, l.payload_digest, l.digest, EXISTS (SELECT 1 FROM tombstone t WHERE t.id = l.id)
FROM ledger l LEFT JOIN payload p USING (seq) WHERE l.seq > :after ORDER BY l.seq LIMIT :limit

-- name: forgets
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body,
       p.salt, l.payload_digest, l.digest, 0
FROM ledger l JOIN payload p USING (seq) WHERE l.op = 'forget' ORDER BY l.seq

-- name: replacement
SELECT id FROM ledger WHERE ref = :id AND ref IS NOT NULL ORDER BY seq DESC LIMIT 1

-- name: usage
SELECT coalesce(sum(op = 'store'), 0),
       coalesce(sum(op = 'store' AND ref IS NOT NULL), 0),
       coalesce(sum(op = 'forget'), 0)
FROM ledger WHERE session = :session AND session <> '' AND door NOT LIKE 'import:%'

-- name: note
SELECT value FROM meta WHERE name = :name

-- name: set_note
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: add_turn
INSERT INTO turn (n, role, text, at, conversation, project) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (n) DO NOTHING

-- name: add_turn_words
INSERT INTO turn_index (rowid, text) VALUES (?, ?)

-- name: drop_turn_words
INSERT INTO turn_index (turn_index, rowid, text) VALUES ('delete', ?, ?)

-- name: turn_texts
SELECT n, text FROM turn WHERE n >= :first AND n < :beyond

-- name: drop_turns
DELETE FROM turn WHERE n >= ? AND n < ?

-- name: turns
SELECT {turn_columns}
FROM turn t JOIN ledger l ON l.seq = t.n / {turns_per_entry} WHERE {where}
ORDER BY t.at DESC, t.n DESC LIMIT :limit OFFSET :offset

-- name: match_turns
SELECT {turn_columns}
FROM turn_index i JOIN turn t ON t.n = i.rowid JOIN ledger l ON l.seq = t.n / {turns_per_entry}
WHERE i.turn_index MATCH :match AND {where} ORDER BY i.rank LIMIT :limit

-- name: match_newest_turns
SELECT {turn_columns}
FROM turn_index i JOIN turn t ON t.n = i.rowid JOIN ledger l ON l.seq = t.n / {turns_per_entry}
WHERE i.turn_index MATCH :match AND {where} ORDER BY i.rowid DESC LIMIT :limit

-- name: tail
SELECT {turn_columns}
FROM turn t JOIN ledger l ON l.seq = t.n / {turns_per_entry} WHERE t.n > :indexed AND {where} ORDER BY t.n DESC LIMIT :limit

-- name: tail_texts
SELECT n, text FROM turn WHERE n > :indexed AND n < :beyond ORDER BY n LIMIT :limit

-- name: tail_size
SELECT count(*) FROM turn WHERE n > :indexed

-- name: add_memory
INSERT INTO memory (id, kind, behavioral, text, seq, start, "end", state, tier, tags, key, category, created,
                    updated, expires, supersedes, superseded_by, superseded, conversation, project)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING n

-- name: add_memory_words
INSERT INTO memory_index (rowid, text) VALUES (?, ?)

-- name: drop_memory_words
INSERT INTO memory_index (memory_index, rowid, text) VALUES ('delete', ?, ?)

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

-- name: memories
SELECT {columns} FROM memory m JOIN ledger l USING (seq) WHERE {where}
ORDER BY m.updated DESC, m.n DESC LIMIT :limit OFFSET :offset

-- name: match_memories
SELECT {columns} FROM memory_index i JOIN memory m ON m.n = i.rowid JOIN ledger l USING (seq)
WHERE i.memory_index MATCH :match AND {where} ORDER BY i.rank LIMIT :limit

-- name: match_newest_memories
SELECT {columns} FROM memory_index i JOIN memory m ON m.n = i.rowid JOIN ledger l USING (seq)
WHERE i.memory_index MATCH :match AND {where} ORDER BY i.rowid DESC LIMIT :limit

-- name: brief
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE {live} AND {not_reserved}
ORDER BY m.behavioral DESC, m.updated DESC, m.n DESC LIMIT :limit

-- name: supersede
UPDATE memory SET state = 'superseded', tier = 'cold', superseded_by = ?, superseded = ? WHERE id = ?

-- name: superseded_before
SELECT n, text, key, tags, seq FROM memory WHERE superseded IS NOT NULL AND superseded < :before

-- name: memory_texts
SELECT n, text, key, tags, seq FROM memory WHERE seq = :seq

-- name: turn_frequency
SELECT term, doc FROM turn_vocabulary WHERE term IN (SELECT value FROM json_each(:stems))

-- name: memory_frequency
SELECT term, doc FROM memory_vocabulary WHERE term IN (SELECT value FROM json_each(:stems))

-- name: corpus_size
SELECT coalesce((SELECT max(n) / {turns_per_entry} FROM turn), 0) + coalesce((SELECT max(n) FROM memory), 0)

-- name: category_keys
SELECT category, key FROM memory m
WHERE m.category IS NOT NULL AND m.key IS NOT NULL AND {live} AND {not_reserved}
ORDER BY m.category, m.updated DESC, m.n DESC

-- name: scope_turns
SELECT DISTINCT t.n / {turns_per_entry} FROM turn t WHERE {where}

-- name: scope_memories
SELECT DISTINCT m.seq FROM memory m WHERE {where}

-- name: scope_everything
SELECT l.seq, l.id FROM ledger l JOIN payload p USING (seq)
WHERE l.op IN ({erasable}) ORDER BY l.seq

-- name: seq_ids
SELECT l.seq, l.id FROM ledger l JOIN payload p USING (seq)
WHERE l.seq IN (SELECT value FROM json_each(:seqs)) ORDER BY l.seq

-- name: erasable
SELECT l.seq, l.id FROM ledger l JOIN payload p USING (seq)
WHERE l.id IN (SELECT value FROM json_each(:ids)) AND l.op IN ({erasable}) ORDER BY l.seq

-- name: count_turns
SELECT count(*) FROM json_each(:seqs) s JOIN turn t ON t.n >= s.value * {turns_per_entry} AND t.n < (s.value + 1) * {turns_per_entry}

-- name: count_memories
SELECT coalesce(sum(m.key IS NULL), 0), coalesce(sum(m.key IS NOT NULL AND NOT {reserved}), 0),
       coalesce(sum({reserved}), 0)
FROM json_each(:seqs) s JOIN memory m ON m.seq = s.value

-- name: hide
INSERT INTO hidden (seq) VALUES (?) ON CONFLICT (seq) DO NOTHING

-- name: unhide
DELETE FROM hidden WHERE seq = ?

-- name: hidden
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM hidden h JOIN ledger l USING (seq) JOIN payload p USING (seq) ORDER BY l.seq

-- name: add_tombstone
INSERT INTO tombstone (id, seq, at, reason) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING

-- name: drop_payload
DELETE FROM payload WHERE seq = ?

-- name: memory_count
SELECT count(*) FROM memory

-- name: sizes
SELECT (SELECT count(*) FROM ledger),
       (SELECT count(*) FROM ledger) - (SELECT count(*) FROM payload),
       (SELECT count(*) FROM turn),
       (SELECT count(*) FROM memory),
       (SELECT count(*) FROM memory WHERE state IN ('active', 'contested')
           AND (expires IS NULL OR expires > :now)),
       (SELECT count(*) FROM memory WHERE state = 'superseded'),
       (SELECT count(*) FROM memory WHERE state <> 'superseded' AND expires <= :now),
       (SELECT count(*) FROM memory WHERE key IS NOT NULL AND state IN ('active', 'contested')
           AND (expires IS NULL OR expires > :now)),
       (SELECT count(*) FROM tombstone),
       (SELECT count(*) FROM audit)

-- name: audit
SELECT seq, at, actor, door, session, action, target, outcome, detail, digest
FROM audit WHERE seq > :after ORDER BY seq LIMIT :limit

-- name: last_audit
SELECT seq, digest FROM audit ORDER BY seq DESC LIMIT 1

-- name: add_audit
INSERT INTO audit (seq, at, actor, door, session, action, target, outcome, detail, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
