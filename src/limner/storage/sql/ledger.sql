-- Every change of state names the states it may come from. A row in another state is not changed, and
-- the caller sees that no row was changed.

-- name: ledger_counted
SELECT
    (SELECT coalesce(sum(cost_nano), 0) FROM ledger WHERE session_id = :session_id) AS session_nano,
    (SELECT coalesce(sum(cost_nano), 0) FROM ledger WHERE day = :day) AS day_nano;

-- name: ledger_reserve
INSERT INTO ledger (
    session_id, tool, provider, model, state, quoted_nano, cost_nano, cost_source, day,
    created_ms, updated_ms, owner_pid, owner_start, owner_boot
) VALUES (
    :session_id, :tool, :provider, :model, 'reserved', :quoted_nano, :quoted_nano, 'unknown', :day,
    :now_ms, :now_ms, :owner_pid, :owner_start, :owner_boot
);

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
        OR (state = 'settled' AND picture IS NULL AND :picture IS NOT NULL)
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
SELECT state FROM ledger WHERE id = :id;

-- name: ledger_unfinished
SELECT id, state, quoted_nano, owner_pid AS pid, owner_start AS start, owner_boot AS boot
FROM ledger
WHERE state IN ('reserved', 'sent')
ORDER BY id;

-- name: ledger_by_state
SELECT
    coalesce(sum(cost_nano) FILTER (WHERE state = 'settled'), 0) AS settled_nano,
    coalesce(sum(cost_nano) FILTER (WHERE state = 'unknown'), 0) AS unknown_nano,
    coalesce(sum(cost_nano) FILTER (WHERE state IN ('reserved', 'sent')), 0) AS in_flight_nano
FROM ledger;

-- name: ledger_spent
SELECT coalesce(sum(cost_nano), 0) AS nano
FROM ledger
WHERE state IN ('settled', 'unknown') AND (:day IS NULL OR day = :day);

-- name: ledger_spent_in_session
-- Runs several times in every turn: it must not read the rows of other sessions.
SELECT coalesce(sum(cost_nano), 0) AS nano
FROM ledger
WHERE state IN ('settled', 'unknown')
    AND session_id = :session_id
    AND (:day IS NULL OR day = :day);

-- name: ledger_by_day
SELECT day AS name, sum(cost_nano) AS nano, count(*) AS calls
FROM ledger
WHERE state IN ('settled', 'unknown')
GROUP BY day
ORDER BY day DESC;

-- name: ledger_by_model
SELECT provider || '/' || model AS name, sum(cost_nano) AS nano, count(*) AS calls
FROM ledger
WHERE state IN ('settled', 'unknown')
GROUP BY provider, model
ORDER BY nano DESC, name;

-- name: ledger_by_session
SELECT session_id AS name, sum(cost_nano) AS nano, count(*) AS calls
FROM ledger
WHERE state IN ('settled', 'unknown')
GROUP BY session_id
ORDER BY max(id) DESC;

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
