-- name: remote_batch_add
INSERT INTO remote_batches (
    id, batch_id, api, tool, provider, model, state, input_file, word, requests, done, failed,
    owner, created_ms, updated_ms
) VALUES (
    :id, :batch_id, :api, :tool, :provider, :model, 'creating', :input_file, 'creating', :requests,
    0, 0, :owner, :now_ms, :now_ms
);

-- name: remote_job_add
INSERT INTO jobs (
    id, ledger_id, provider, request, created_ms, updated_ms, remote_batch, row_key
) VALUES (
    :id, :ledger_id, :provider, :request, :now_ms, :now_ms, :remote_batch, :row_key
);

-- name: remote_batch_note
UPDATE remote_batches
SET state = 'running', remote_id = :remote_id, word = :word, done = :done, failed = :failed,
    updated_ms = :now_ms
WHERE id = :id AND state <> 'ended';

-- name: remote_batch_end
UPDATE remote_batches SET state = 'ended', owner = NULL, updated_ms = :now_ms WHERE id = :id;

-- name: remote_batches_of
-- The remote batches of a batch, and the process that asks about each.
SELECT
    remote_batches.id, remote_batches.batch_id, remote_batches.api, remote_batches.tool,
    remote_batches.provider, remote_batches.model, remote_batches.state, remote_batches.remote_id,
    remote_batches.word, remote_batches.requests, remote_batches.done, remote_batches.failed,
    remote_batches.created_ms, remote_batches.updated_ms, remote_batches.owner, owners.host,
    owners.boot, owners.namespace, owners.pid, owners.start, owners.beat_ms, owners.beat_up_ms,
    clock_ms() AS now_ms
FROM remote_batches LEFT JOIN owners ON owners.id = remote_batches.owner
WHERE remote_batches.batch_id = :batch_id AND remote_batches.state <> 'ended'
ORDER BY remote_batches.created_ms, remote_batches.id;

-- name: remote_batch_take
UPDATE remote_batches SET owner = :owner, updated_ms = :now_ms
WHERE id = :id AND state <> 'ended' AND coalesce(owner, '') = coalesce(:ended, '');

-- name: remote_rows_take
-- The rows of a remote batch go to the process that asks about it.
UPDATE batch_rows SET owner = :owner, updated_ms = :now_ms
WHERE batch_id = :batch_id AND state = 'running'
    AND row_key IN (SELECT jobs.row_key FROM jobs WHERE jobs.remote_batch = :id);

-- name: remote_batches_let_go
UPDATE remote_batches SET owner = NULL, updated_ms = :now_ms
WHERE batch_id = :batch_id AND owner = :owner AND state <> 'ended';

-- name: remote_rows
-- The requests of a remote batch whose row has not ended.
SELECT jobs.id AS job_id, jobs.row_key, batch_rows.number, batch_rows.tool, batch_rows.arguments,
    batch_rows.tries, ledger.state, jobs.delivered_path
FROM jobs
JOIN ledger ON ledger.id = jobs.ledger_id
JOIN batch_rows ON batch_rows.batch_id = :batch_id AND batch_rows.row_key = jobs.row_key
WHERE jobs.remote_batch = :id AND batch_rows.state = 'running'
ORDER BY batch_rows.number;

-- name: remote_row_keys
-- The rows of a batch whose requests are at a vendor.
SELECT jobs.row_key
FROM remote_batches JOIN jobs ON jobs.remote_batch = remote_batches.id
WHERE remote_batches.batch_id = :batch_id AND remote_batches.state <> 'ended';
