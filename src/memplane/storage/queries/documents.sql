-- Documents, sections, spans, collections.

-- name: shelved_beside
SELECT EXISTS (
    SELECT 1 FROM {numbers:seqs:v} JOIN shelf_entry e ON e.seq = v.value JOIN ledger l ON l.seq = e.seq
    JOIN shelf_entry o ON o.document IS NOT DISTINCT FROM e.document AND o.collection IS NOT DISTINCT FROM e.collection JOIN ledger k ON k.seq = o.seq
    WHERE l.op IN ('document', 'collect') AND k.op IN ('document', 'collect')
      AND o.seq NOT IN (SELECT value FROM {numbers:seqs:each})
)

-- name: distil_again
UPDATE document SET status = 'processing' WHERE seq = ? AND status = 'ready'

-- name: library_marks
SELECT (SELECT CAST(value AS BIGINT) FROM meta WHERE name = 'library'),
       coalesce((SELECT max(n) FROM span), 0),
       coalesce((SELECT max(stamp) FROM span_vector), 0)

-- name: grow_library
UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'library'

-- name: document
SELECT {document_columns} FROM document d JOIN ledger l USING (seq) WHERE d.id = :id

-- name: documents_of
SELECT {document_columns}
FROM collection c JOIN member b ON b.collection = c.seq JOIN document d ON d.id = b.document JOIN ledger l ON l.seq = d.seq
WHERE c.id = :collection AND {where}
ORDER BY CASE WHEN c.ordered <> 0 THEN coalesce(b.position, 9223372036854775807) END, b.at, b.seq LIMIT :limit OFFSET :offset

-- name: document_count
SELECT count(*) FROM document d WHERE {where}

-- name: document_count_of
SELECT count(*) FROM collection c JOIN member b ON b.collection = c.seq JOIN document d ON d.id = b.document
WHERE c.id = :collection AND {where}

-- name: document_heads
SELECT seq, id, name, project FROM document ORDER BY seq

-- name: sections
SELECT l.id, {section_columns}
FROM document d JOIN ledger l USING (seq)
JOIN section s ON s.n >= (SELECT seq * {spans_per_document} FROM document WHERE id = :id)
              AND s.n < (SELECT (seq + 1) * {spans_per_document} FROM document WHERE id = :id)
WHERE d.id = :id ORDER BY s.n

-- name: sections_titled
SELECT n FROM section
WHERE title IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {texts:parts:j} WHERE {place_of:lower(j.value):lower(title)} = 0)
ORDER BY n DESC LIMIT :limit

-- name: sections_at
SELECT l.id, {section_columns} FROM {numbers:numbers:j} JOIN section s ON s.n = j.value
JOIN ledger l ON l.seq = {document_of:s} ORDER BY s.n

-- name: spans_at
SELECT {span_columns} FROM {numbers:numbers:j} JOIN span s ON s.n = j.value
JOIN document d ON d.seq = {document_of:s} JOIN ledger l ON l.seq = d.seq ORDER BY s.n

-- name: span_heads
SELECT n, section, words FROM span WHERE n > :after ORDER BY n LIMIT :limit

-- name: span_count
SELECT count(*) FROM span

-- name: undistilled
SELECT {document_columns} FROM document d JOIN ledger l USING (seq) WHERE d.status = 'processing' ORDER BY d.seq LIMIT :limit

-- name: undistilled_count
SELECT count(*) FROM document WHERE status = 'processing'

-- name: collection
SELECT {collection_columns} FROM collection c JOIN ledger l USING (seq) WHERE c.id = :id

-- name: members
SELECT b.document, d.name, b.position, b.at
FROM collection c JOIN member b ON b.collection = c.seq JOIN document d ON d.id = b.document WHERE c.id = :id
ORDER BY CASE WHEN c.ordered <> 0 THEN coalesce(b.position, 9223372036854775807) END, b.at, b.seq

-- name: membership
SELECT l.id FROM collection c JOIN member b ON b.collection = c.seq JOIN ledger l ON l.seq = b.seq
WHERE c.id = :collection AND b.document = :document

-- name: add_document
INSERT INTO document (seq, id, name, project, media_type, bytes, chars, sections, spans, created, updated, status)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_section
INSERT INTO section (n, title, level, path, start, "end") VALUES (?, ?, ?, ?, ?, ?)

-- name: add_span
INSERT INTO span (n, section, start, "end", place, words, lead, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: span_texts
SELECT n, lead, text FROM span WHERE n >= :first AND n < :beyond

-- name: document_seq
SELECT seq FROM document WHERE id = :id

-- name: drop_document
DELETE FROM document WHERE seq = ?

-- name: drop_sections
DELETE FROM section WHERE n >= ? AND n < ?

-- name: drop_spans
DELETE FROM span WHERE n >= ? AND n < ?

-- name: set_distillation
UPDATE document SET distillation = ?, status = 'ready', error = NULL WHERE id = ? AND seq = ? RETURNING 1

-- name: set_section_distillation
UPDATE section SET distillation = ? WHERE n = ?

-- name: fail_document
UPDATE document SET status = 'error', error = ? WHERE id = ? AND seq = ?

-- name: add_collection
INSERT INTO collection (seq, id, name, project, ordered, created) VALUES (?, ?, ?, ?, ?, ?)

-- name: drop_collection
DELETE FROM collection WHERE seq = ?

-- name: drop_members
DELETE FROM member WHERE collection = ?

-- name: add_member
INSERT INTO member (collection, document, seq, position, at)
SELECT seq, ?2, ?3, ?4, ?5 FROM collection WHERE id = ?1
ON CONFLICT (collection, document) DO UPDATE SET seq = excluded.seq, position = excluded.position

-- name: drop_member
DELETE FROM member WHERE seq = ?

-- name: note_upload
INSERT INTO shelf_entry (seq, document, collection, project, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (seq) DO NOTHING

-- name: drop_shelf_entry
DELETE FROM shelf_entry WHERE seq = ?

-- name: shelf_entries
SELECT e.seq FROM {numbers:seqs:j} JOIN shelf_entry e ON e.seq = j.value

-- name: failed_document_count
SELECT count(*) FROM document WHERE status = 'error'

-- name: documents
SELECT {document_columns} FROM document d JOIN ledger l USING (seq) WHERE {where}
ORDER BY d.updated DESC, d.seq DESC LIMIT :limit OFFSET :offset

-- name: spans
SELECT {span_columns} FROM document d JOIN ledger l USING (seq)
JOIN span s ON s.n >= (SELECT seq * {spans_per_document} + :first FROM document WHERE id = :id)
           AND s.n < (SELECT (seq + 1) * {spans_per_document} FROM document WHERE id = :id)
WHERE d.id = :id ORDER BY s.n LIMIT :limit

-- name: collections
SELECT {collection_columns} FROM collection c JOIN ledger l USING (seq)
WHERE CAST(:project AS TEXT) IS NULL OR c.project = :project ORDER BY c.created DESC, c.seq DESC LIMIT :limit OFFSET :offset
