-- What a service delivered for a job: where the bytes are, what they are, and what they cost. NULL
-- until all of them are on disk. They are there until `ledger.picture` names the picture.
ALTER TABLE jobs ADD COLUMN delivered_path TEXT;
ALTER TABLE jobs ADD COLUMN delivered_sha256 TEXT;
ALTER TABLE jobs ADD COLUMN delivered_bytes INTEGER;
ALTER TABLE jobs ADD COLUMN delivered_nano INTEGER;
ALTER TABLE jobs ADD COLUMN delivered_source TEXT;
