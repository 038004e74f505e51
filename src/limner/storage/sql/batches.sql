-- name: batch_add
INSERT INTO batches (
    id, name, state, digest, load, lane, budget_nano, rates, caller, created_ms, updated_ms
) VALUES (
    :id, :name, 'loading', :digest, 1, :lane, :budget_nano, :rates, :caller, :now_ms, :now_ms
);

-- name: batch_find
SELECT id, name, state, digest, load, lane, budget_nano, rates, caller, created_ms
FROM batches
WHERE id = :name OR name = :name;

-- name: batches_open
-- The batches that have rows to run, oldest first.
SELECT id, name, state, digest, load, lane, budget_nano, rates, caller, created_ms
FROM batches
WHERE state = 'open'
    AND EXISTS (
        SELECT 1 FROM batch_rows
        WHERE batch_rows.batch_id = batches.id AND batch_rows.state IN ('waiting', 'running')
    )
ORDER BY created_ms, id;

-- name: batches_recent
SELECT id, name, state, digest, load, lane, budget_nano, rates, caller, created_ms
FROM batches
ORDER BY created_ms DESC, id
LIMIT :count;

-- name: batch_reload
UPDATE batches SET state = 'loading', digest = :digest, load = load + 1, updated_ms = :now_ms
WHERE id = :id;

-- name: batch_state
UPDATE batches SET state = :state, updated_ms = :now_ms WHERE id = :id;

-- name: batch_terms
UPDATE batches
SET lane = :lane, budget_nano = :budget_nano, rates = :rates, updated_ms = :now_ms
WHERE id = :id;

-- name: batch_row_get
SELECT load, tool, arguments, state, cost_nano
FROM batch_rows
WHERE batch_id = :batch_id AND row_key = :row_key;

-- name: batch_row_put
-- A new row, or one that changed and was not paid for.
INSERT INTO batch_rows (
    batch_id, row_key, number, load, tool, arguments, state, tries, not_before_ms, cost_nano,
    cost_source, updated_ms
) VALUES (
    :batch_id, :row_key, :number, :load, :tool, :arguments, 'waiting', 0, 0, 0, 'table', :now_ms
)
ON CONFLICT (batch_id, row_key) DO UPDATE SET
    number = excluded.number, load = excluded.load, tool = excluded.tool,
    arguments = excluded.arguments, state = 'waiting', tries = 0, not_before_ms = 0,
    picture = NULL, result = NULL, error = NULL, updated_ms = excluded.updated_ms;

-- name: batch_row_keep
UPDATE batch_rows SET number = :number, load = :load
WHERE batch_id = :batch_id AND row_key = :row_key;

-- name: batch_rows_drop
-- The rows that are in the manifest no more, and were not paid for.
DELETE FROM batch_rows
WHERE batch_id = :batch_id AND load <> :load AND state IN ('waiting', 'failed') AND cost_nano = 0;

-- name: batch_claim
-- The next rows; if there are keys, only of these.
UPDATE batch_rows
SET state = 'running', owner = :owner, tries = tries + 1, updated_ms = :now_ms
WHERE batch_id = :batch_id
    AND row_key IN (
        SELECT next.row_key FROM batch_rows AS next
        WHERE next.batch_id = :batch_id AND next.state = 'waiting'
            AND next.not_before_ms <= :now_ms
            AND (
                CAST(:keys AS TEXT) IS NULL
                OR next.row_key IN (SELECT value FROM json_each(:keys))
            )
        ORDER BY next.number
        LIMIT :count
    )
    AND EXISTS (SELECT 1 FROM batches WHERE batches.id = :batch_id AND batches.state = 'open')
RETURNING row_key, number, tool, arguments, tries;

-- name: batch_row_held
SELECT 1 FROM batch_rows
WHERE batch_id = :batch_id AND row_key = :row_key AND state = 'running' AND owner = :owner;

-- name: batch_row_end
UPDATE batch_rows
SET state = :state, result = :result, error = :error, cost_nano = :cost_nano,
    cost_source = :cost_source, picture = :picture, not_before_ms = :not_before_ms, owner = NULL,
    updated_ms = :now_ms
WHERE batch_id = :batch_id AND row_key = :row_key AND state = 'running' AND owner = :owner;

-- name: batch_rows_let_go
-- Claimed rows that this process will not run.
UPDATE batch_rows SET state = 'waiting', owner = NULL, tries = tries - 1, updated_ms = :now_ms
WHERE batch_id = :batch_id AND row_key = :row_key AND state = 'running' AND owner = :owner;

-- name: batch_rows_held
-- The rows that are running, and the process that runs each.
SELECT
    batch_rows.row_key, batch_rows.number, batch_rows.tool, batch_rows.arguments,
    batch_rows.tries, batch_rows.owner, owners.host, owners.boot, owners.namespace, owners.pid,
    owners.start, owners.beat_ms, owners.beat_up_ms,
    clock_ms() AS now_ms
FROM batch_rows LEFT JOIN owners ON owners.id = batch_rows.owner
WHERE batch_rows.batch_id = :batch_id AND batch_rows.state = 'running'
ORDER BY batch_rows.number;

-- name: batch_row_take
-- Have a row whose owner has ended.
UPDATE batch_rows SET owner = :owner, updated_ms = :now_ms
WHERE batch_id = :batch_id AND row_key = :row_key AND state = 'running' AND owner = :ended;

-- name: batch_rows_retry
-- Failed rows that cost nothing wait again.
UPDATE batch_rows SET state = 'waiting', tries = 0, not_before_ms = 0, updated_ms = :now_ms
WHERE batch_id = :batch_id AND state = 'failed' AND cost_nano = 0
    AND (CAST(:keys AS TEXT) IS NULL OR row_key IN (SELECT value FROM json_each(:keys)));

-- name: batch_rows_reopen
-- Failed rows whose payment is uncertain: their results may be there by now. And those whose bytes
-- were delivered and could not be stored: they are kept on the host that paid.
UPDATE batch_rows SET state = 'running', owner = :owner, updated_ms = :now_ms
WHERE batch_id = :batch_id AND state = 'failed' AND cost_nano > 0
    AND (
        cost_source = 'unknown'
        OR json_extract(error, '$.code') IN ('BLOBS_UNREACHABLE', 'BLOBS_DENIED', 'NO_BUCKET')
    )
    AND (CAST(:keys AS TEXT) IS NULL OR row_key IN (SELECT value FROM json_each(:keys)))
RETURNING row_key, number, tool, arguments, tries;

-- name: batch_counts
-- Triggers keep them (migration 22).
SELECT waiting, running, done, failed FROM batch_counts WHERE batch_id = :batch_id;

-- name: batch_counts_clear
DELETE FROM batch_counts;

-- name: batch_counts_rebuild
-- All counts anew, for a repair.
INSERT INTO batch_counts
SELECT
    batch_id, sum(state = 'waiting'), sum(state = 'running'), sum(state = 'done'),
    sum(state = 'failed')
FROM batch_rows
GROUP BY batch_id;

-- name: batch_rows_named
SELECT
    row_key, number, tool, arguments, state, tries, cost_nano, cost_source, picture, result, error
FROM batch_rows
WHERE batch_id = :batch_id AND row_key IN (SELECT value FROM json_each(:keys));

-- name: batch_next_ms
-- When the next waiting row may be claimed; NULL if none waits.
SELECT min(not_before_ms) AS ms FROM batch_rows
WHERE batch_id = :batch_id AND state = 'waiting'
    AND (CAST(:keys AS TEXT) IS NULL OR row_key IN (SELECT value FROM json_each(:keys)));

-- name: batch_rows_page
SELECT
    row_key, number, tool, arguments, state, tries, cost_nano, cost_source, picture, result, error
FROM batch_rows
WHERE batch_id = :batch_id AND (CAST(:state AS TEXT) IS NULL OR state = :state)
    AND (number, row_key) > (:after, :after_key)
ORDER BY number, row_key
LIMIT :count;

-- name: rate_free
SELECT free_us FROM rate_buckets WHERE name = :name;

-- name: rate_set
INSERT INTO rate_buckets (name, free_us) VALUES (:name, :free_us)
ON CONFLICT (name) DO UPDATE SET free_us = excluded.free_us;
