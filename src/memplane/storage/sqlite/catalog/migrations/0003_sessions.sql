-- A session ends with the key that somebody signed in with.
ALTER TABLE key ADD COLUMN parent TEXT;
