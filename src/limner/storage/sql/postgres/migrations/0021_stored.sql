-- As migration 21 of SQLite.
ALTER TABLE pictures ADD COLUMN stored_ms bigint;
