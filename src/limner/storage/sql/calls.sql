-- name: call_note
INSERT INTO calls (call_id, ledger_id, tool, digest, created_ms)
VALUES (:call_id, :ledger_id, :tool, :digest, :now_ms);

-- name: call_delivered
-- Whoever was told of a failure has no answer yet, while the service can be asked for the picture.
UPDATE calls SET delivered_ms = :now_ms
WHERE call_id = :call_id
    AND delivered_ms IS NULL
    AND NOT EXISTS (
        SELECT 1
        FROM ledger JOIN jobs ON jobs.ledger_id = ledger.id
        WHERE ledger.id = calls.ledger_id
            AND ledger.state = 'unknown'
            AND jobs.remote_id IS NOT NULL
    );

-- name: call_rows
-- What a call did, as far as the ledger knows.
SELECT
    calls.tool, calls.created_ms, ledger.id AS ledger_id, ledger.state, ledger.provider,
    ledger.model, ledger.quoted_nano, ledger.cost_nano, ledger.cost_source, ledger.error_code,
    ledger.picture, ledger.path, jobs.id AS job_id
FROM calls
LEFT JOIN ledger ON ledger.id = calls.ledger_id
LEFT JOIN jobs ON jobs.ledger_id = ledger.id
WHERE calls.call_id = :call_id
ORDER BY calls.rowid;

-- name: call_undelivered
-- The last call of the same kind that spent something, and whose answer nobody has got.
SELECT calls.call_id
FROM calls JOIN ledger ON ledger.id = calls.ledger_id
WHERE calls.digest = :digest
    AND calls.delivered_ms IS NULL
    AND calls.created_ms >= :since_ms
    AND calls.call_id <> :but
    AND (ledger.state = 'unknown' OR ledger.state = 'settled' AND ledger.picture IS NOT NULL)
ORDER BY calls.rowid DESC
LIMIT 1;
