-- A batch at a vendor: many requests under one id, for up to a day. `id` is the tag that the vendor
-- keeps with it. `owner` is the process that asks about it, and not the owner of its payments: those
-- belong to the vendor as long as the batch runs.
--   creating -> running       the vendor's id is known
--   creating -> ended         the vendor never got it: nothing was paid
--   running  -> ended         every result is collected
CREATE TABLE remote_batches (
    id TEXT PRIMARY KEY,
    batch_id TEXT NOT NULL,
    api TEXT NOT NULL,
    tool TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('creating', 'running', 'ended')),
    input_file TEXT NOT NULL,
    remote_id TEXT,
    word TEXT NOT NULL,
    requests INTEGER NOT NULL,
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    owner TEXT,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX remote_batches_open ON remote_batches (batch_id) WHERE state <> 'ended';

-- A request that is a part of a remote batch, and the row of our batch that it is for.
ALTER TABLE jobs ADD COLUMN remote_batch TEXT;
ALTER TABLE jobs ADD COLUMN row_key TEXT;
CREATE INDEX jobs_by_remote_batch ON jobs (remote_batch) WHERE remote_batch IS NOT NULL;
