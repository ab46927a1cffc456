-- Statements of PostgreSQL only: words as tables of stems, and vectors.
-- Counting the occurrences of a word stops after 20,000, and only its newest 4,000 are ranked.

-- name: add_turn_words
INSERT INTO turn_word (stem, n, times, length)
SELECT * FROM unnest(?::text[], ?::bigint[], ?::integer[], ?::integer[])
ON CONFLICT (stem, n) DO NOTHING

-- name: clear_turn_words
DELETE FROM turn_word

-- name: drop_turn_words
DELETE FROM turn_word w USING unnest(?::text[], ?::bigint[]) AS gone (stem, n)
WHERE w.stem = gone.stem AND w.n = gone.n

-- name: turn_occurrences_of
SELECT asked.stem, w.numbers, w.times FROM unnest(:stems::text[]) AS asked (stem) CROSS JOIN LATERAL (
    SELECT array_agg(n) AS numbers, array_agg(times) AS times FROM (
        SELECT n, times FROM turn_word WHERE stem = asked.stem ORDER BY n
    ) AS held
) AS w WHERE w.numbers IS NOT NULL

-- name: turn_occurrences_of_prefix
SELECT n, times FROM turn_word WHERE stem >= :stem AND stem <= :last ORDER BY n

-- name: turn_stems_of_prefix
SELECT DISTINCT stem FROM turn_word WHERE stem >= :stem AND stem <= :last LIMIT :limit

-- name: count_turns_up_to
SELECT count(*) FROM (SELECT 1 FROM turn_word WHERE stem = ANY(:match::text[]) LIMIT :limit) AS found

-- name: add_memory_words
INSERT INTO memory_word (stem, n, times, length)
SELECT * FROM unnest(?::text[], ?::bigint[], ?::integer[], ?::integer[])
ON CONFLICT (stem, n) DO NOTHING

-- name: clear_memory_words
DELETE FROM memory_word

-- name: drop_memory_words
DELETE FROM memory_word w USING unnest(?::text[], ?::bigint[]) AS gone (stem, n)
WHERE w.stem = gone.stem AND w.n = gone.n

-- name: memory_stems_of_prefix
SELECT DISTINCT stem FROM memory_word WHERE stem >= :stem AND stem <= :last LIMIT :limit

-- name: add_span_words
INSERT INTO span_word (stem, n, times, length)
SELECT * FROM unnest(?::text[], ?::bigint[], ?::integer[], ?::integer[])
ON CONFLICT (stem, n) DO NOTHING

-- name: clear_span_words
DELETE FROM span_word

-- name: drop_span_words
DELETE FROM span_word w USING unnest(?::text[], ?::bigint[]) AS gone (stem, n)
WHERE w.stem = gone.stem AND w.n = gone.n

-- name: span_occurrences_of
SELECT asked.stem, w.numbers, w.times FROM unnest(:stems::text[]) AS asked (stem) CROSS JOIN LATERAL (
    SELECT array_agg(n) AS numbers, array_agg(times) AS times FROM (
        SELECT n, times FROM span_word WHERE stem = asked.stem ORDER BY n
    ) AS held
) AS w WHERE w.numbers IS NOT NULL

-- name: span_occurrences_of_prefix
SELECT n, times FROM span_word WHERE stem >= :stem AND stem <= :last ORDER BY n

-- name: span_stems_of_prefix
SELECT DISTINCT stem FROM span_word WHERE stem >= :stem AND stem <= :last LIMIT :limit

-- name: count_spans_up_to
SELECT count(*) FROM (SELECT 1 FROM span_word WHERE stem = ANY(:match::text[]) LIMIT :limit) AS found

-- name: turn_frequency
SELECT s.stem, (
    SELECT count(*) FROM (SELECT 1 FROM turn_word w WHERE w.stem = s.stem LIMIT 20001) AS found
) FROM unnest(:stems::text[]) AS s (stem)

-- name: memory_frequency
SELECT s.stem, (
    SELECT count(*) FROM (SELECT 1 FROM memory_word w WHERE w.stem = s.stem LIMIT 20001) AS found
) FROM unnest(:stems::text[]) AS s (stem)

-- The weight of a stem is computed with its rows: a lookup for each row would multiply the time by the number of words.

-- name: match_turns
WITH hit AS MATERIALIZED (
    SELECT w.n, w.times, w.length, ln(1 + (greatest((SELECT max(n) / {turns_per_entry} FROM turn), w.holders) - w.holders + 0.5) / (w.holders + 0.5)) AS weight
    FROM unnest(:match::text[]) AS asked (stem) CROSS JOIN LATERAL (
        SELECT n, times, length, count(*) OVER () AS holders FROM (
            SELECT n, times, length FROM turn_word WHERE stem = asked.stem ORDER BY n DESC LIMIT 4000
        ) AS newest
    ) AS w
), scored AS MATERIALIZED (
    SELECT n, sum(weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / (SELECT avg(length) FROM hit)))) AS score
    FROM hit GROUP BY n
), best AS MATERIALIZED (
    SELECT t.n, s.score FROM scored s JOIN turn t ON t.n = s.n
    WHERE {where} ORDER BY s.score DESC, t.n DESC LIMIT :limit
)
SELECT {turn_columns} FROM best JOIN turn t USING (n) JOIN ledger l ON l.seq = {entry_of:t}
ORDER BY best.score DESC, t.n DESC

-- name: match_memories
WITH hit AS MATERIALIZED (
    SELECT w.n, w.times, w.length, ln(1 + (greatest((SELECT max(n) FROM memory), w.holders) - w.holders + 0.5) / (w.holders + 0.5)) AS weight
    FROM unnest(:match::text[]) AS asked (stem) CROSS JOIN LATERAL (
        SELECT n, times, length, count(*) OVER () AS holders FROM (
            SELECT n, times, length FROM memory_word WHERE stem = asked.stem ORDER BY n DESC LIMIT 4000
        ) AS newest
    ) AS w
), scored AS MATERIALIZED (
    SELECT n, sum(weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / (SELECT avg(length) FROM hit)))) AS score
    FROM hit GROUP BY n
), best AS MATERIALIZED (
    SELECT m.n, s.score FROM scored s JOIN memory m ON m.n = s.n
    WHERE {where} ORDER BY s.score DESC, m.n DESC LIMIT :limit
)
SELECT {columns} FROM best JOIN memory m USING (n) JOIN ledger l USING (seq) ORDER BY best.score DESC, m.n DESC

-- name: match_newest_turns
SELECT {turn_columns} FROM turn t JOIN ledger l ON l.seq = {entry_of:t}
WHERE EXISTS (SELECT 1 FROM turn_word w WHERE w.stem = ANY(:match::text[]) AND w.n = t.n) AND {where}
ORDER BY t.n DESC LIMIT :limit

-- name: match_newest_memories
SELECT {columns} FROM memory m JOIN ledger l USING (seq)
WHERE EXISTS (SELECT 1 FROM memory_word w WHERE w.stem = ANY(:match::text[]) AND w.n = m.n) AND {where}
ORDER BY m.n DESC LIMIT :limit

-- name: rivals_by_words
WITH newest AS MATERIALIZED (
    SELECT DISTINCT n FROM memory_word WHERE stem = ANY(:match::text[]) ORDER BY n DESC LIMIT 8 * :limit
)
SELECT {columns} FROM newest JOIN memory m USING (n) JOIN ledger l USING (seq)
WHERE m.subject = :subject AND m.claim IS NOT NULL
  AND m.within IS NOT DISTINCT FROM :within AND m.state IN ('active', 'contested') ORDER BY newest.n DESC LIMIT :limit

-- name: add_turn_vector
INSERT INTO turn_vector (n, words, asks, model, digest, vector)
SELECT ?1::bigint, ?2::integer, ?3::smallint, ?4::integer, ?5::bytea, ?6::halfvec
WHERE EXISTS (SELECT 1 FROM turn WHERE n = ?1)

-- name: add_memory_vector
INSERT INTO memory_vector (id, model, digest, vector)
SELECT ?1::text, ?2::integer, ?3::bytea, ?4::halfvec WHERE EXISTS (SELECT 1 FROM memory WHERE id = ?1)

-- name: add_span_vector
INSERT INTO span_vector (n, model, digest, vector)
SELECT ?1::bigint, ?2::integer, ?3::bytea, ?4::halfvec WHERE EXISTS (SELECT 1 FROM span WHERE n = ?1)

-- name: stamp_memory_vector
UPDATE memory_vector SET stamp = nextval('stamp') WHERE id = ?

-- name: stamp_span_vector
UPDATE span_vector SET stamp = nextval('stamp') WHERE n = ?

-- name: add_member
INSERT INTO member (collection, document, seq, position, at)
SELECT seq, ?2::text, ?3::bigint, ?4::bigint, ?5::bigint FROM collection WHERE id = ?1
ON CONFLICT (collection, document) DO UPDATE SET seq = excluded.seq, position = excluded.position

-- name: begin_space
INSERT INTO meta (name, value) VALUES
    ('cursor', '0'), ('indexed', '0'), ('generation', '0'), ('derived', '0'), ('library', '0'), ('ordered', '1'),
    ('merged', '0'), ('erasures', '0')
ON CONFLICT (name) DO NOTHING

-- A conversation may be long, and few of its turns are read: only their entries are looked up, one by one.

-- name: turns_after
WITH following AS MATERIALIZED (
    SELECT * FROM turn WHERE conversation = :conversation AND conversation IS NOT NULL AND at >= :at AND n > :n
    ORDER BY at, n LIMIT :limit OFFSET :offset
)
SELECT {turn_columns} FROM following t CROSS JOIN LATERAL (SELECT e.id FROM ledger e WHERE e.seq = t.seq LIMIT 1) AS l
ORDER BY t.at, t.n

-- name: drop_old_pins
DELETE FROM pinned WHERE name = ANY(ARRAY(SELECT p.name FROM pinned p ORDER BY p.at DESC OFFSET ?))
