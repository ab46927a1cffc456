-- The only place where something is told, `project:…` or `conversation:…`; NULL is everywhere.
ALTER TABLE turn ADD COLUMN within TEXT;
ALTER TABLE memory ADD COLUMN within TEXT;
