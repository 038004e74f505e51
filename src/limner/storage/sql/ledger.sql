-- Every change of state names the states it may come from. A row in another state is not changed, and
-- the caller sees that no row was changed.

-- name: ledger_reserve
INSERT INTO ledger (
    session_id, tool, provider, model, state, quoted_nano, cost_nano, cost_source, day,
    created_ms, updated_ms, owner, owner_pid, owner_start, owner_boot, program, scope,
    idempotency_key
) VALUES (
    :session_id, :tool, :provider, :model, 'reserved', :quoted_nano, :quoted_nano, 'unknown', :day,
    :now_ms, :now_ms, :owner, :owner_pid, :owner_start, :owner_boot, :program, :scope,
    :idempotency_key
)
RETURNING id;

-- name: ledger_of_key
-- The row that counts for what the key names. Released rows do not count.
SELECT ledger.id, ledger.state, ledger.cost_nano, ledger.cost_source, ledger.picture, ledger.path,
    ledger.error_code, jobs.id AS job_id
FROM ledger LEFT JOIN jobs ON jobs.ledger_id = ledger.id
WHERE ledger.idempotency_key = :key AND ledger.state <> 'released';

-- name: ledger_sent
UPDATE ledger SET state = 'sent', updated_ms = :now_ms
WHERE id = :id AND state = 'reserved';

-- The picture of a row that was settled without one may come later: its bytes were kept.
-- name: ledger_settled
UPDATE ledger
SET state = 'settled', cost_nano = :cost_nano, cost_source = :cost_source, picture = :picture,
    error_code = :error_code, updated_ms = :now_ms
WHERE id = :id
    AND (
        state IN ('sent', 'unknown')
        OR (state = 'settled' AND picture IS NULL AND CAST(:picture AS TEXT) IS NOT NULL)
    );

-- name: ledger_released
UPDATE ledger
SET state = 'released', cost_nano = 0, cost_source = 'table', error_code = :error_code,
    updated_ms = :now_ms
WHERE id = :id AND state IN ('reserved', 'sent', 'unknown');

-- A recovery that gets no result leaves an unknown row unknown.
-- name: ledger_unknown
UPDATE ledger
SET state = 'unknown', cost_source = 'unknown', error_code = :error_code, updated_ms = :now_ms
WHERE id = :id AND state IN ('sent', 'unknown');

-- name: ledger_placed
UPDATE ledger SET path = :path, updated_ms = :now_ms
WHERE id = :id AND state = 'settled';

-- name: ledger_state
SELECT state, error_code FROM ledger WHERE id = :id;

-- name: ledger_unfinished
SELECT
    ledger.id, ledger.state, ledger.quoted_nano, ledger.owner, ledger.owner_pid AS pid,
    ledger.owner_start AS start, ledger.owner_boot AS boot, owners.host, owners.namespace,
    owners.beat_ms, owners.beat_up_ms,
    clock_ms() AS now_ms
FROM ledger LEFT JOIN owners ON owners.id = ledger.owner
-- What was sent in a batch of the vendor belongs to the vendor, whichever process has ended.
WHERE ledger.state IN ('reserved', 'sent')
    AND NOT EXISTS (
        SELECT 1 FROM jobs WHERE jobs.ledger_id = ledger.id AND jobs.remote_batch IS NOT NULL
    )
ORDER BY ledger.id;

-- name: ledger_recent
SELECT
    id, created_ms, session_id, tool, provider, model, state, quoted_nano, cost_nano, cost_source,
    error_code, picture, path
FROM ledger
ORDER BY id DESC
LIMIT :count;

-- name: ledger_of_picture
SELECT
    id, created_ms, session_id, tool, provider, model, state, quoted_nano, cost_nano, cost_source,
    error_code, picture, path
FROM ledger
WHERE picture = :picture
ORDER BY id DESC
LIMIT :count;

-- name: ledger_usage
SELECT
    ledger.id, ledger.day, ledger.created_ms, ledger.provider, ledger.state, ledger.quoted_nano,
    ledger.cost_nano, jobs.id AS job_id, jobs.remote_id
FROM ledger LEFT JOIN jobs ON jobs.ledger_id = ledger.id
WHERE ledger.day BETWEEN :first_day AND :last_day
    AND ledger.state IN ('settled', 'unknown', 'released')
ORDER BY ledger.id;

-- name: ledger_ids_go_on
-- After rows were copied with their ids, the next row gets a larger one. SQLite does it by itself.
SELECT max(id) AS last_id FROM ledger;
