-- The sums over the ledger; triggers keep them (migration 11).

-- name: spending_used
SELECT kind, settled_nano + unknown_nano + in_flight_nano AS nano, in_flight_nano AS held_nano
FROM spending
WHERE (kind, name) IN (
    VALUES ('session', :session_id), ('program', :program), ('scope', :scope), ('day', :day)
);

-- name: spending_newest_day
SELECT max(name) AS day FROM spending WHERE kind = 'day';

-- name: spending_of
SELECT settled_nano, unknown_nano, in_flight_nano FROM spending WHERE kind = :kind AND name = :name;

-- name: spending_by_day
SELECT name, settled_nano + unknown_nano AS nano, calls
FROM spending
WHERE kind = 'day' AND calls > 0
ORDER BY name DESC
LIMIT :limit;

-- name: spending_by_model
SELECT name, settled_nano + unknown_nano AS nano, calls
FROM spending
WHERE kind = 'model' AND calls > 0
ORDER BY nano DESC, name;

-- name: spending_by_session
-- The sessions used last first, from behind a place in that order.
SELECT name, settled_nano + unknown_nano AS nano, calls, last_id
FROM spending INDEXED BY spending_by_use
WHERE kind = 'session' AND calls > 0 AND (CAST(:after AS BIGINT) IS NULL OR last_id < :after)
ORDER BY last_id DESC
LIMIT :limit;

-- name: spending_wrong
-- The sums that differ from the rows.
WITH summed AS (
    SELECT
        kind, name, sum(settled_nano) AS settled_nano, sum(unknown_nano) AS unknown_nano,
        sum(in_flight_nano) AS in_flight_nano, sum(calls) AS calls
    FROM ledger_counts
    GROUP BY kind, name
)
SELECT kind, name FROM (
    SELECT kind, name, settled_nano, unknown_nano, in_flight_nano, calls FROM spending
    EXCEPT SELECT * FROM summed
) AS counted
UNION
SELECT kind, name FROM (
    SELECT * FROM summed
    EXCEPT SELECT kind, name, settled_nano, unknown_nano, in_flight_nano, calls FROM spending
) AS missing
ORDER BY kind, name;

-- name: spending_clear
DELETE FROM spending;

-- name: spending_rebuild
-- All sums anew, for a repair.
INSERT INTO spending
SELECT
    kind, name, sum(settled_nano), sum(unknown_nano), sum(in_flight_nano), sum(calls), max(id)
FROM ledger_counts
GROUP BY kind, name;
