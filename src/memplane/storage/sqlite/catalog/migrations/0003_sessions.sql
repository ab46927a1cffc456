-- A session ends with the key that somebody signed in with, and is in no list of keys.
ALTER TABLE key ADD COLUMN parent TEXT;
ALTER TABLE key ADD COLUMN passing INTEGER NOT NULL DEFAULT 0;
