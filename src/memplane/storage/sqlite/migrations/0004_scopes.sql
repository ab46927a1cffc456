-- The only place where something is told, `project:…` or `conversation:…`; NULL is everywhere.
ALTER TABLE turn ADD COLUMN within TEXT;
ALTER TABLE memory ADD COLUMN within TEXT;

-- What agents made of a memory: how often they used it or passed it over, which way that leans, and how important it
-- was before (NULL: as it is).
ALTER TABLE memory ADD COLUMN chosen INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory ADD COLUMN passed_over INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory ADD COLUMN leaning REAL NOT NULL DEFAULT 0.0;
ALTER TABLE memory ADD COLUMN importance_base REAL;
