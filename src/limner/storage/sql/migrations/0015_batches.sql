-- A batch is a list of tool calls with one budget. `name` is the path of its manifest, or the digest
-- of rows that came without a file. `digest` is that of the manifest as it was loaded last, and
-- `load` counts the times. `caller` is JSON: the folder and the reach of the rows. The ledger knows
-- the batch as the session `id`.
CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('loading', 'open', 'cancelled')),
    digest TEXT NOT NULL,
    load INTEGER NOT NULL,
    lane TEXT NOT NULL DEFAULT 'now',
    budget_nano INTEGER NOT NULL,
    rates TEXT NOT NULL,
    caller TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;

-- One call of a batch. `owner` runs it while it is `running`. `tries` counts the claims. A row is not
-- claimed before `not_before_ms`. `cost_nano` is what was or may have been paid; the ledger decides.
--   waiting -> running -> done | failed      a worker claimed it
--   running -> waiting                       nothing was paid, and another try may help
--   failed  -> waiting                       `resume`, only if nothing was paid
CREATE TABLE batch_rows (
    batch_id TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    row_key TEXT NOT NULL,
    number INTEGER NOT NULL,
    load INTEGER NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    tries INTEGER NOT NULL,
    not_before_ms INTEGER NOT NULL,
    owner TEXT,
    cost_nano INTEGER NOT NULL,
    cost_source TEXT NOT NULL,
    picture TEXT,
    result TEXT,
    error TEXT,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (batch_id, row_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_rows_by_state ON batch_rows (batch_id, state, number);
CREATE INDEX batch_rows_running ON batch_rows (owner) WHERE state = 'running';
CREATE INDEX batch_rows_by_picture ON batch_rows (picture) WHERE picture IS NOT NULL;

-- Names what a call pays for: no two rows of the ledger that count have the same key.
ALTER TABLE ledger ADD COLUMN idempotency_key TEXT;
CREATE UNIQUE INDEX ledger_by_key ON ledger (idempotency_key)
WHERE idempotency_key IS NOT NULL AND state <> 'released';

-- When a provider may be asked next, for each provider, key and model; shared by all processes.
CREATE TABLE rate_buckets (
    name TEXT PRIMARY KEY,
    free_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
