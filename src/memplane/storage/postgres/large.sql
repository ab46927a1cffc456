-- Reads of a space that is too large to be loaded.

-- name: large_speakers
WITH RECURSIVE known (speaker) AS (
    (SELECT speaker FROM turn WHERE speaker IS NOT NULL ORDER BY speaker LIMIT 1)
    UNION ALL
    SELECT (SELECT t.speaker FROM turn t WHERE t.speaker > known.speaker ORDER BY t.speaker LIMIT 1)
    FROM known WHERE known.speaker IS NOT NULL
)
SELECT speaker FROM known WHERE speaker IS NOT NULL LIMIT :limit

-- name: large_size
SELECT count(*) FROM turn

-- name: large_last
SELECT coalesce((SELECT max(n) FROM turn), 0), coalesce((SELECT max(n) FROM memory), 0)

-- name: large_sittings
SELECT DISTINCT near.n FROM unnest(:numbers::bigint[]) AS spread (value) CROSS JOIN LATERAL (
    SELECT n, conversation, at FROM turn WHERE n >= spread.value ORDER BY n LIMIT 1
) AS t CROSS JOIN LATERAL (
    (SELECT x.n FROM turn x WHERE x.conversation = t.conversation AND x.at BETWEEN t.at - :pause AND t.at + :pause
     ORDER BY x.at LIMIT :each)
    UNION ALL
    (SELECT x.n FROM turn x WHERE t.conversation IS NULL AND x.n >= t.n AND x.conversation IS NULL ORDER BY x.n LIMIT :each)
) AS near ORDER BY near.n

-- name: large_memories
SELECT DISTINCT m.id FROM unnest(:numbers::bigint[]) AS spread (value) CROSS JOIN LATERAL (
    SELECT id FROM memory WHERE n >= spread.value AND embedded = :model ORDER BY n LIMIT 1
) AS m

-- name: large_holders
WITH hit AS MATERIALIZED (
    SELECT asked.stem, w.numbers, w.times, w.lengths, w.holders,
           ln(1 + (greatest(:turns - w.holders, 0) + 0.5) / (w.holders + 0.5)) * 2.2 AS rarity
    FROM unnest(:stems::text[]) AS asked (stem) CROSS JOIN LATERAL (
        SELECT array_agg(n) AS numbers, array_agg(times) AS times, array_agg(length) AS lengths, count(*) AS holders
        FROM (SELECT n, times, length FROM turn_word WHERE stem = asked.stem ORDER BY n DESC LIMIT :each) AS newest
    ) AS w
), scored AS MATERIALIZED (
    SELECT w.n, array_agg(hit.stem) AS stems, array_agg(w.times) AS times,
           sum(hit.rarity * w.times / (w.times + 1.2 * (0.25 + 0.75 * w.length / :usual))) AS score
    FROM hit CROSS JOIN LATERAL unnest(hit.numbers, hit.times, hit.lengths) AS w (n, times, length)
    WHERE hit.holders < :each GROUP BY w.n
)
(SELECT NULL::bigint AS n, array_agg(stem) AS stems, array_agg(holders::integer) AS times,
        (SELECT sum(score)::float8 FROM scored), (SELECT sum(score * score)::float8 FROM scored) FROM hit)
UNION ALL
(SELECT n, stems, times, score::float8, 0.0 FROM scored ORDER BY score DESC, n DESC LIMIT :best)

-- name: large_around
SELECT DISTINCT near.n FROM unnest(:numbers::bigint[]) AS asked (value)
CROSS JOIN LATERAL (SELECT n, conversation, at FROM turn WHERE n = asked.value LIMIT 1) AS t
CROSS JOIN LATERAL (
    (SELECT x.n FROM turn x WHERE x.conversation = t.conversation AND (x.at, x.n) < (t.at, t.n)
     ORDER BY x.at DESC, x.n DESC LIMIT :reach)
    UNION ALL
    (SELECT x.n FROM turn x WHERE x.conversation = t.conversation AND (x.at, x.n) > (t.at, t.n)
     ORDER BY x.at, x.n LIMIT :reach)
    UNION ALL
    (SELECT x.n FROM turn x WHERE t.conversation IS NULL AND x.conversation IS NULL AND x.n < t.n ORDER BY x.n DESC LIMIT :reach)
    UNION ALL
    (SELECT x.n FROM turn x WHERE t.conversation IS NULL AND x.conversation IS NULL AND x.n > t.n ORDER BY x.n LIMIT :reach)
) AS near

-- name: large_heads
SELECT t.n, t.conversation, t.project, t.role, t.speaker, t.at,
       coalesce(v.words, length(t.text) / 6 + 1), coalesce(v.asks, CASE WHEN rtrim(t.text) LIKE '%?' THEN 1 ELSE 0 END),
       t.within, NULL::float8
FROM unnest(:also::bigint[]) AS w (n)
CROSS JOIN LATERAL (SELECT t.* FROM turn t WHERE t.n = w.n AND {where} LIMIT 1) AS t
LEFT JOIN LATERAL (SELECT v.words, v.asks FROM turn_vector v WHERE v.n = w.n LIMIT 1) AS v ON TRUE
