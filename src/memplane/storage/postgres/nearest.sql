-- Searches with the vector index of one space. A partial index serves only a statement that contains its condition, so the numbers
-- of the space and of the model, and the dimension, are written out. Other tables are looked up row by row: LIMIT 1 in LATERAL
-- leaves no other plan.

-- name: nearest_memories
SELECT v.id, m.turn, -(v.vector::halfvec({dimension}) <#> :query::halfvec({dimension}))
FROM memory_vector v CROSS JOIN LATERAL (
    SELECT m.turn FROM memory m WHERE m.id = v.id AND m.embedded = {model} AND {where} LIMIT 1
) AS m
WHERE v.tenant = {tenant} AND v.space = {space} AND v.model = {model}
ORDER BY v.vector::halfvec({dimension}) <#> :query::halfvec({dimension}) LIMIT {limit}

-- name: nearest_turns
WITH near AS MATERIALIZED (
    SELECT v.n FROM turn_vector v CROSS JOIN LATERAL (
        SELECT 1 FROM turn t WHERE t.n = v.n AND {where} LIMIT 1
    ) AS t
    WHERE v.tenant = {tenant} AND v.space = {space} AND v.model = {model}
    ORDER BY v.vector::halfvec({dimension}) <#> :query::halfvec({dimension}) LIMIT {limit}
)
SELECT t.n, t.conversation, t.project, t.role, t.speaker, t.at,
       coalesce(v.words, length(t.text) / 6 + 1), coalesce(v.asks, CASE WHEN rtrim(t.text) LIKE '%?' THEN 1 ELSE 0 END),
       t.within, -(v.vector::halfvec({dimension}) <#> :query::halfvec({dimension}))
FROM (SELECT n FROM near UNION SELECT unnest(:also::bigint[])) AS w
CROSS JOIN LATERAL (SELECT t.* FROM turn t WHERE t.n = w.n AND {where} LIMIT 1) AS t
LEFT JOIN LATERAL (
    SELECT v.words, v.asks, v.vector FROM turn_vector v WHERE v.n = w.n AND v.model = {model} LIMIT 1
) AS v ON TRUE
