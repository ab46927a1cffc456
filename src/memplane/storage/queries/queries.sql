-- name: head
SELECT (SELECT max(seq) FROM ledger), digest, position FROM ledger ORDER BY position DESC LIMIT 1

-- name: start
SELECT seq, digest, position, recorded, (SELECT value FROM meta WHERE name = 'cursor'),
       (SELECT value FROM meta WHERE name = 'indexed'), (SELECT max(position) FROM ledger)
FROM ledger ORDER BY seq DESC LIMIT 1

-- name: chained
SELECT 1 FROM ledger WHERE position = :position AND digest = :digest

-- name: chain_end
SELECT digest, position FROM ledger ORDER BY position DESC LIMIT 1

-- name: add_ledger
INSERT INTO ledger (seq, id, op, recorded, actor, door, session, ref, payload_digest, digest, position, origin)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_payload
INSERT INTO payload (position, salt, body) VALUES (?, ?, ?)

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

-- name: decisions
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l JOIN payload p USING (position) WHERE l.op IN ('forget', 'sweep') ORDER BY l.seq

-- name: replacement
SELECT id FROM ledger WHERE ref = :id AND ref IS NOT NULL ORDER BY seq DESC LIMIT 1

-- name: replacements
SELECT id FROM ledger WHERE ref = :id AND ref IS NOT NULL ORDER BY seq

-- name: usage
SELECT count(*) FILTER (WHERE op = 'store'),
       count(*) FILTER (WHERE op = 'store' AND ref IS NOT NULL),
       count(*) FILTER (WHERE op = 'forget')
FROM ledger WHERE session = :session AND session <> '' AND door NOT LIKE 'import:%' AND origin = ''

-- name: note
SELECT value FROM meta WHERE name = :name

-- name: notes
SELECT name, value FROM meta WHERE substr(name, 1, 5) <> 'note:'

-- name: set_note
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: pinned
SELECT text FROM pinned WHERE name = :name

-- name: pin
INSERT INTO pinned (name, at, text) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET at = excluded.at, text = excluded.text WHERE excluded.at >= pinned.at

-- name: drop_old_pins
DELETE FROM pinned WHERE name IN (SELECT name FROM pinned ORDER BY at DESC LIMIT {all} OFFSET ?)

-- name: drop_pins
DELETE FROM pinned

-- name: erasures
SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'erasures'

-- name: count_erasure
UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'erasures'

-- name: add_turn
INSERT INTO turn (n, role, text, at, conversation, project, speaker, within, flags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (n) DO NOTHING

-- name: turn_texts
SELECT n, text FROM turn WHERE n >= :first AND n < :beyond

-- name: drop_turns
DELETE FROM turn WHERE n >= ? AND n < ?

-- name: turns
SELECT {turn_columns}
FROM turn t JOIN ledger l ON l.seq = {entry_of:t} WHERE {where}
ORDER BY t.at DESC, t.n DESC LIMIT :limit OFFSET :offset

-- name: conversations
SELECT t.conversation, count(*), min(t.at), max(t.at),
       (SELECT x.project FROM turn x WHERE x.conversation = t.conversation ORDER BY x.at DESC, x.n DESC LIMIT 1)
FROM turn t WHERE t.conversation IS NOT NULL AND (CAST(:project AS TEXT) IS NULL OR t.project = :project)
GROUP BY t.conversation ORDER BY max(t.at) DESC, t.conversation LIMIT :limit OFFSET :offset

-- name: tail
SELECT {turn_columns}
FROM turn t JOIN ledger l ON l.seq = {entry_of:t} WHERE t.n > :indexed AND {where} ORDER BY t.n DESC LIMIT :limit

-- name: tail_texts
SELECT n, text FROM turn WHERE n > :indexed AND n < :beyond ORDER BY n LIMIT :limit

-- name: tail_size
SELECT count(*) FROM turn WHERE n > :indexed

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

-- name: memories
SELECT {columns} FROM memory m JOIN ledger l USING (seq) WHERE {where}
ORDER BY m.updated DESC, m.n DESC LIMIT :limit OFFSET :offset

-- name: brief
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE {live} AND {not_reserved} AND {not_faded} AND {not_quarantined} AND {where}
  AND (m.extractor IS NULL OR (m.role = 'user' AND (m.behavioral <> 0 OR m.tier = 'hot')))
ORDER BY m.behavioral DESC, m.updated DESC, m.n DESC LIMIT :limit

-- name: supersede
UPDATE memory SET state = 'superseded', tier = 'cold', superseded_by = ?, superseded = ? WHERE id = ? RETURNING 1

-- name: superseded_before
SELECT n, text, key, tags, seq, id, turn FROM memory WHERE superseded IS NOT NULL AND superseded < :before

-- name: memory_texts
SELECT n, text, key, tags, seq, id, turn FROM memory WHERE seq = :seq

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
       (SELECT count(DISTINCT id) FROM tombstone),
       (SELECT count(*) FROM audit)

-- name: audit
SELECT seq, at, actor, door, session, action, target, outcome, detail, digest
FROM audit WHERE seq > :after ORDER BY seq LIMIT :limit

-- name: last_audit
SELECT seq, digest FROM audit ORDER BY seq DESC LIMIT 1

-- name: add_audit
INSERT INTO audit (seq, at, actor, door, session, action, target, outcome, detail, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: marks
SELECT (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'generation'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'cursor'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'indexed'),
       (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'derived'),
       coalesce((SELECT max(stamp) FROM turn_vector), 0),
       coalesce((SELECT max(stamp) FROM memory_vector), 0),
       coalesce((SELECT max(n) FROM turn), 0)

-- name: grow_generation
UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'generation'

-- name: models
SELECT id, dimension, n FROM model

-- name: add_model
INSERT INTO model (n, id, dimension) VALUES ((SELECT coalesce(max(n), 0) + 1 FROM model), ?, ?)

-- name: turn_heads
SELECT t.n, t.conversation, t.project, t.role, t.speaker, t.at,
       coalesce(v.words, length(t.text) / 6 + 1), coalesce(v.asks, CASE WHEN rtrim(t.text) LIKE '%?' THEN 1 ELSE 0 END), t.within
FROM turn t LEFT JOIN turn_vector v ON v.n = t.n
WHERE t.n > :after AND t.n <= :until ORDER BY t.n LIMIT :limit

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

-- name: not_indexed
SELECT n, text FROM turn WHERE n > :after AND n <= :until ORDER BY n DESC LIMIT :limit

-- name: turns_at
SELECT {turn_columns}
FROM {numbers:numbers:s} JOIN turn t ON t.n = s.value JOIN ledger l ON l.seq = {entry_of:t} WHERE {where}

-- name: turns_between
SELECT {turn_columns}
FROM turn t JOIN ledger l ON l.seq = {entry_of:t} WHERE t.n >= :first AND t.n <= :last ORDER BY t.n

-- name: memories_of
SELECT {columns} FROM {texts:ids:s} JOIN memory m ON m.id = s.value JOIN ledger l USING (seq) WHERE {where}

-- name: waiting_memories
SELECT {columns} FROM memory m JOIN ledger l USING (seq) WHERE m.embedded IS NULL ORDER BY m.n LIMIT :limit

-- name: waiting_count
SELECT count(*) FROM memory WHERE embedded IS NULL

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

-- name: claimed
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.predicate = :predicate AND m.predicate IS NOT NULL AND {where}
ORDER BY m.updated DESC, m.n DESC LIMIT :limit

-- name: told_between
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.time_from IS NOT NULL AND m.time_from < :time_until AND m.time_until > :time_from AND {where}
ORDER BY m.time_from, m.n LIMIT :limit

-- name: hot
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE m.tier = 'hot' AND {not_quarantined} AND {where} ORDER BY m.updated DESC, m.n DESC LIMIT :limit

-- name: all_conflicts
SELECT a, b FROM conflict ORDER BY a, b

-- name: conflicts
SELECT a, b FROM conflict WHERE a IN (SELECT value FROM {texts:ids:each})
UNION SELECT a, b FROM conflict WHERE b IN (SELECT value FROM {texts:ids:each}) ORDER BY a, b

-- name: evidence
SELECT memory, body FROM evidence WHERE memory IN (SELECT value FROM {texts:ids:each}) ORDER BY memory, seq, id

-- name: memories_from
SELECT {columns}, m.n FROM {numbers:seqs:s} JOIN memory m ON m.seq = s.value JOIN ledger l USING (seq)

-- name: heirs
WITH RECURSIVE chain (start, id, successor, depth) AS (
    SELECT s.value, m.id, m.superseded_by, 0 FROM {texts:ids:s} JOIN memory m ON m.id = s.value
    UNION ALL
    SELECT chain.start, m.id, m.superseded_by, chain.depth + 1 FROM chain JOIN memory m ON m.id = chain.successor
    WHERE chain.depth < 64 AND chain.successor <> chain.id
)
SELECT start, id FROM chain WHERE successor IS NULL AND start <> id

-- name: all_replaced
SELECT m.seq FROM {numbers:seqs:s} JOIN memory m ON m.seq = s.value
GROUP BY m.seq HAVING count(*) FILTER (WHERE m.state <> 'superseded') = 0 ORDER BY m.seq

-- name: replaced_by
SELECT id FROM memory
WHERE superseded_by IS NOT NULL AND superseded_by IN (SELECT value FROM {texts:ids:each}) AND extractor IS NOT NULL

-- name: accesses
SELECT memory, count FROM access WHERE memory IN (SELECT value FROM {texts:ids:each})

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

-- name: untold
SELECT conversation, first, last_at FROM untold WHERE last_at <= :before ORDER BY last_at LIMIT :limit

-- name: untold_in
SELECT conversation, first, last_at FROM untold WHERE conversation = :conversation

-- name: set_untold
INSERT INTO untold (conversation, first, last_at) VALUES (?, ?, ?)
ON CONFLICT (conversation) DO UPDATE SET first = excluded.first, last_at = excluded.last_at

-- name: set_told
DELETE FROM untold WHERE conversation = ?

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

-- name: cited_rows
SELECT m.n, m.text, m.key, m.tags, m.seq, m.id, m.turn FROM cited c JOIN memory m ON m.id = c.memory WHERE c.seq = :seq

-- name: add_cited
INSERT INTO cited (seq, memory) VALUES (?, ?) ON CONFLICT (seq, memory) DO NOTHING

-- name: drop_cited
DELETE FROM cited WHERE memory = ?

-- name: drop_turn_vector
DELETE FROM turn_vector WHERE n = ?

-- name: drop_turn_vectors
DELETE FROM turn_vector WHERE n >= ? AND n < ?

-- name: drop_memory_vector
DELETE FROM memory_vector WHERE id = ?

-- name: drop_lost_vectors
DELETE FROM memory_vector WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_vector.id)

-- name: set_embedded
UPDATE memory SET embedded = ? WHERE id = ?

-- name: forget_embedded
DELETE FROM meta WHERE name LIKE 'embedded:%'

-- name: embed_anew
UPDATE memory SET embedded = NULL WHERE embedded IS NOT NULL

-- name: add_evidence
INSERT INTO evidence (memory, seq, id, body) VALUES (?, ?, ?, ?)
ON CONFLICT (memory, seq, id) DO NOTHING

-- name: drop_evidence
DELETE FROM evidence WHERE memory = ?

-- name: drop_evidence_of_entry
DELETE FROM evidence WHERE seq = ?

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

-- name: entries_of
SELECT l.seq, l.id, l.op, l.recorded, l.actor, l.door, l.session, l.ref, p.body
FROM ledger l LEFT JOIN payload p USING (position) WHERE l.id IN (SELECT value FROM {texts:ids:each}) ORDER BY l.seq

-- name: positions
SELECT id, position FROM ledger WHERE id IN (SELECT value FROM {texts:ids:each})

-- name: recordings
SELECT id, position, recorded FROM ledger WHERE id IN (SELECT value FROM {texts:ids:each})

-- name: buried
SELECT t.id FROM ledger l JOIN tombstone t USING (position) WHERE l.id = :id AND t.cause IS NULL

-- name: stones
SELECT id, position, at, reason FROM tombstone WHERE id IN (SELECT value FROM {texts:ids:each}) ORDER BY id, position DESC

-- name: all_variants
SELECT id, base FROM variant ORDER BY id

-- name: variants
SELECT id, base FROM variant WHERE base IN (SELECT value FROM {texts:bases:each}) ORDER BY id

-- name: note_variant
INSERT INTO variant (id, base) VALUES (?, ?) ON CONFLICT (id) DO NOTHING

-- name: rename
UPDATE ledger SET id = ?1, chained_id = coalesce(chained_id, id) WHERE id = ?2

-- name: misplaced
SELECT position, id FROM (SELECT seq, position, id, row_number() OVER (ORDER BY recorded, id) AS place FROM ledger) AS placed
WHERE seq <> place ORDER BY place LIMIT 1

-- name: beyond_a_gap
SELECT position, id FROM (SELECT seq, position, id, row_number() OVER (ORDER BY seq) AS place FROM ledger) AS placed
WHERE seq <> place ORDER BY place LIMIT 1

-- name: last_entry
SELECT seq, recorded, id FROM ledger ORDER BY seq DESC LIMIT 1

-- name: entry_from_place
SELECT seq, recorded, id FROM ledger WHERE seq >= :seq ORDER BY seq LIMIT 1

-- name: places
SELECT seq, recorded, id FROM ledger WHERE seq >= :first ORDER BY seq

-- name: move_entry
UPDATE ledger SET seq = -(seq + ?1) WHERE seq = ?2 AND ?3 > ?2

-- name: settle_entries
UPDATE ledger SET seq = -seq WHERE seq < 0

-- name: reorder_entry
UPDATE ledger SET seq = ? WHERE position = ?

-- name: rename_entry
UPDATE ledger SET id = ?, chained_id = ? WHERE position = ?

-- name: move_turn_vectors
UPDATE turn_vector SET n = -(n + ?1) WHERE n >= ?2 AND n < ?3

-- name: settle_turn_vectors
UPDATE turn_vector SET n = -n WHERE n < 0

-- name: move_span_vectors
UPDATE span_vector SET n = -(n + ?1) WHERE n >= ?2 AND n < ?3

-- name: settle_span_vectors
UPDATE span_vector SET n = -n WHERE n < 0

-- name: displaced_by
SELECT id, superseded_by FROM memory
WHERE superseded_by IS NOT NULL AND superseded_by IN (SELECT value FROM {texts:ids:each}) AND extractor IS NULL ORDER BY id

-- name: shelved_beside
SELECT EXISTS (
    SELECT 1 FROM {numbers:seqs:v} JOIN shelf_entry e ON e.seq = v.value JOIN ledger l ON l.seq = e.seq
    JOIN shelf_entry o ON o.document IS NOT DISTINCT FROM e.document AND o.collection IS NOT DISTINCT FROM e.collection JOIN ledger k ON k.seq = o.seq
    WHERE l.op IN ('document', 'collect') AND k.op IN ('document', 'collect')
      AND o.seq NOT IN (SELECT value FROM {numbers:seqs:each})
)

-- name: distil_again
UPDATE document SET status = 'processing' WHERE seq = ? AND status = 'ready'

-- name: note_purged
INSERT INTO purged (id, by, seq, entry, at)
SELECT m.id, m.superseded_by, m.seq, l.id, m.superseded FROM memory m JOIN ledger l USING (seq)
WHERE m.superseded IS NOT NULL AND m.superseded < ? AND m.superseded_by IS NOT NULL AND m.extractor IS NOT NULL
ON CONFLICT (by, id) DO NOTHING

-- name: purged_by
SELECT id, by, seq, entry, at FROM purged WHERE by IN (SELECT value FROM {texts:ids:each}) ORDER BY by, id

-- name: drop_purged
DELETE FROM purged WHERE seq = ?

-- name: rated_by
SELECT EXISTS (SELECT 1 FROM {numbers:seqs:s} JOIN ledger l ON l.seq = s.value WHERE l.op = 'feedback')

-- name: note_overruled
INSERT INTO overruled (id, by) VALUES (?, ?) ON CONFLICT (by, id) DO NOTHING

-- name: overruled
SELECT id FROM overruled WHERE by IN (SELECT value FROM {texts:ids:each}) ORDER BY id
