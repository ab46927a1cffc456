-- The vectors of all spaces and their indexes, as the owner of the database sees them.

-- name: broken_indexes
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = 'memplane'::regnamespace AND NOT i.indisvalid AND c.relname ~ '_near_[0-9]+_[0-9]+_[0-9]+$'

-- name: idle_indexes
WITH near AS (
    SELECT DISTINCT p[1]::integer AS tenant, p[2]::integer AS space, p[3]::integer AS model
    FROM pg_class c, regexp_match(c.relname, '_vector_near_([0-9]+)_([0-9]+)_([0-9]+)$') AS p
    WHERE c.relnamespace = 'memplane'::regnamespace AND c.relkind = 'i' AND p IS NOT NULL
)
SELECT tenant, space, model FROM near n
WHERE NOT EXISTS (
    SELECT 1 FROM meta d
    WHERE d.tenant = n.tenant AND d.space = n.space AND d.name = 'model' AND d.value = n.model::text
) OR (
    NOT EXISTS (SELECT 1 FROM memory_vector v WHERE v.tenant = n.tenant AND v.space = n.space OFFSET :few LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM turn_vector v WHERE v.tenant = n.tenant AND v.space = n.space OFFSET :few LIMIT 1)
)

-- name: large_spaces
SELECT s.tenant, s.number, m.n, m.dimension FROM space s
JOIN meta c ON c.tenant = s.tenant AND c.space = s.number AND c.name = 'model'
JOIN model m ON m.tenant = s.tenant AND m.space = s.number AND m.n = CAST(c.value AS integer)
WHERE m.dimension BETWEEN 2 AND :dimension AND (
    to_regclass(format('memory_vector_near_%s_%s_%s', s.tenant, s.number, m.n)) IS NULL
    OR to_regclass(format('turn_vector_near_%s_%s_%s', s.tenant, s.number, m.n)) IS NULL
    OR NOT EXISTS (
        SELECT 1 FROM meta d WHERE d.tenant = s.tenant AND d.space = s.number AND d.name = 'searched:' || m.n
    )
) AND (
    EXISTS (SELECT 1 FROM memory_vector v WHERE v.tenant = s.tenant AND v.space = s.number OFFSET :large - 1 LIMIT 1)
    OR EXISTS (SELECT 1 FROM turn_vector v WHERE v.tenant = s.tenant AND v.space = s.number OFFSET :large - 1 LIMIT 1)
)
