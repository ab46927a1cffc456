-- What an agent was told and must be told again in the same words, by a digest of where it was told. Whatever is forgotten
-- takes all of it along, and is counted, so that nobody pins afterwards what was made before.
CREATE TABLE pinned (name TEXT PRIMARY KEY, at INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX pinned_at ON pinned (at);
INSERT INTO meta VALUES ('erasures', '0');
