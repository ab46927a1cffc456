-- Figures and changes for people.

-- name: sizes
SELECT (SELECT count(*) FROM ledger),
       (SELECT count(*) FROM ledger) - (SELECT count(*) FROM payload),
       (SELECT count(*) FROM turn),
       (SELECT count(*) FROM memory m WHERE {not_unnoted}),
       (SELECT count(*) FROM memory m WHERE state IN ('active', 'contested')
           AND (expires IS NULL OR expires > :now) AND {not_unnoted}),
       (SELECT count(*) FROM memory WHERE state = 'superseded'),
       (SELECT count(*) FROM memory WHERE state <> 'superseded' AND expires <= :now),
       (SELECT count(*) FROM memory WHERE key IS NOT NULL AND state IN ('active', 'contested')
           AND (expires IS NULL OR expires > :now)),
       (SELECT count(DISTINCT id) FROM tombstone),
       (SELECT count(*) FROM audit)

-- name: activity
WITH RECURSIVE days (day) AS (
    SELECT CAST(:first AS BIGINT) UNION ALL SELECT day + 1 FROM days WHERE day < :last
)
SELECT (SELECT count(*) FROM turn t WHERE t.at >= d.day * :length AND t.at < (d.day + 1) * :length)
     + (SELECT count(*) FROM memory m WHERE m.updated >= d.day * :length AND m.updated < (d.day + 1) * :length)
FROM days d ORDER BY d.day

-- name: current_count
SELECT count(*) FROM memory m WHERE state IN ('active', 'contested') AND {not_unnoted}

-- name: expired_count
SELECT count(*) FROM memory WHERE expires IS NOT NULL AND expires <= :now AND state IN ('active', 'contested')

-- name: conflict_count
SELECT count(*) FROM conflict

-- name: subjects
WITH RECURSIVE found (subject, place) AS (
    SELECT (SELECT min(m.subject) FROM memory m WHERE m.subject IS NOT NULL AND m.subject >= :first), 1
    UNION ALL
    SELECT (SELECT min(m.subject) FROM memory m WHERE m.subject IS NOT NULL AND m.subject > found.subject), place + 1
    FROM found WHERE found.subject IS NOT NULL AND found.place < :limit
)
SELECT subject FROM found WHERE subject IS NOT NULL ORDER BY place

-- name: subjects_lately
SELECT subject FROM (SELECT n, subject FROM memory ORDER BY n DESC LIMIT :limit) AS newest
WHERE subject IS NOT NULL ORDER BY n DESC

-- name: count_about
SELECT count(*) FROM (SELECT 1 FROM memory WHERE subject = :subject AND subject IS NOT NULL LIMIT :limit) AS about

-- name: facts_about
WITH about (n) AS MATERIALIZED (
    SELECT n FROM memory WHERE subject = :subject AND subject IS NOT NULL
), best (n) AS MATERIALIZED (
    SELECT m.n FROM about JOIN memory m ON m.n = about.n
    WHERE m.predicate IS NOT NULL AND {where} ORDER BY m.updated DESC, m.n DESC LIMIT :limit
)
SELECT {columns} FROM best JOIN memory m ON m.n = best.n JOIN ledger l ON l.seq = m.seq ORDER BY m.updated DESC, m.n DESC

-- name: facts_about_lately
WITH newest (n) AS MATERIALIZED (
    SELECT n FROM memory WHERE updated <= :until ORDER BY updated DESC, n DESC LIMIT :window
), best (n) AS MATERIALIZED (
    SELECT m.n FROM newest JOIN memory m ON m.n = newest.n
    WHERE m.subject = :subject AND m.predicate IS NOT NULL AND {where} ORDER BY m.updated DESC, m.n DESC LIMIT :limit
)
SELECT {columns} FROM best JOIN memory m ON m.n = best.n JOIN ledger l ON l.seq = m.seq ORDER BY m.updated DESC, m.n DESC

-- name: learned
WITH best (n) AS MATERIALIZED (
    SELECT m.n FROM memory m
    WHERE m.updated > :begin AND m.updated <= :end AND (m.superseded IS NULL OR m.superseded > :end) AND {not_reserved}
      AND NOT EXISTS (
        WITH RECURSIVE older (id, updated, depth) AS (
            SELECT o.id, o.updated, 1 FROM memory o WHERE o.superseded_by = m.id AND o.superseded_by IS NOT NULL
            UNION ALL
            SELECT o.id, o.updated, older.depth + 1 FROM older JOIN memory o ON o.superseded_by = older.id
            WHERE o.superseded_by IS NOT NULL AND older.updated > :begin AND older.depth < 64
        )
        SELECT 1 FROM older WHERE older.updated <= :begin
      )
    ORDER BY m.updated DESC, m.n DESC LIMIT :limit OFFSET :offset
)
SELECT {columns} FROM best JOIN memory m ON m.n = best.n JOIN ledger l ON l.seq = m.seq ORDER BY m.updated DESC, m.n DESC

-- name: replaced
SELECT {columns} FROM memory m JOIN ledger l ON l.seq = m.seq
WHERE m.superseded IS NOT NULL AND m.superseded > :begin AND m.superseded <= :end AND m.updated <= :begin
  AND {not_reserved}
ORDER BY m.superseded DESC, m.n DESC LIMIT :limit OFFSET :offset

-- name: first_moments
SELECT (SELECT min(at) FROM turn), (SELECT min(updated) FROM memory), (SELECT recorded FROM ledger ORDER BY seq LIMIT 1)

-- name: turn_span
SELECT count(*), min(at), max(at) FROM turn WHERE at >= :since

-- name: behavioral_count
SELECT count(*) FROM memory m WHERE behavioral = 1 AND state IN ('active', 'contested') AND {not_unnoted}
