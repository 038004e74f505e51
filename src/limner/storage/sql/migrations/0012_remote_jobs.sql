-- A job at a service belongs to one request. `job_note` checks it and needs this index, which is
-- not UNIQUE: an older version may have noted one job twice.
CREATE INDEX jobs_by_remote ON jobs (remote_id) WHERE remote_id IS NOT NULL;
