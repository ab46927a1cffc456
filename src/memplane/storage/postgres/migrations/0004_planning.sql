-- A plan is made once and serves spaces of ten rows and of ten million. What the planner counts is the mean of all, and
-- for a mean of a hundred it reads whole spaces and joins them row by row. So it is told that there is one space: plans are
-- made for the largest, which the share of its most frequent value still bounds. It counts from the next ANALYZE on.

DO $$
DECLARE
    place record;
BEGIN
    FOR place IN
        SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'memplane'::regnamespace AND c.relkind = 'r' AND a.attname IN ('tenant', 'space')
          AND 2 = (SELECT count(*) FROM pg_attribute b WHERE b.attrelid = c.oid AND b.attname IN ('tenant', 'space'))
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET (n_distinct = 1)', place.relname, place.attname);
    END LOOP;
END $$;
