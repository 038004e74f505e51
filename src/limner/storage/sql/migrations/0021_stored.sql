-- When the bytes of a known picture were stored again. NULL: not since the row was written.
ALTER TABLE pictures ADD COLUMN stored_ms INTEGER;
