-- The statements that one text cannot say for both databases, each with the parameters and the
-- columns of its SQLite twin.

-- name: batch_claim
-- Rows that another process is claiming are left out, so that no process waits for another.
WITH claimed AS MATERIALIZED (
    SELECT next.row_key FROM batch_rows AS next
    WHERE next.batch_id = :batch_id AND next.state = 'waiting' AND next.not_before_ms <= :now_ms
        AND EXISTS (SELECT 1 FROM batches WHERE batches.id = :batch_id AND batches.state = 'open')
        AND (
            CAST(:keys AS TEXT) IS NULL
            OR next.row_key IN (SELECT value FROM json_each(:keys))
        )
    ORDER BY next.number
    LIMIT :count
    FOR UPDATE SKIP LOCKED
)
UPDATE batch_rows
SET state = 'running', owner = :owner, tries = tries + 1, updated_ms = :now_ms
FROM claimed
WHERE batch_rows.batch_id = :batch_id AND batch_rows.row_key = claimed.row_key
RETURNING batch_rows.row_key, number, tool, arguments, tries;

-- name: batch_counts_clear
DELETE FROM batch_count_parts;

-- name: batch_counts_rebuild
INSERT INTO batch_count_parts
SELECT
    batch_id, 0, count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state = 'running'),
    count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'failed')
FROM batch_rows
GROUP BY batch_id;

-- name: gallery_by_words
-- The planner does not know how many pictures have a word. A word of many is in enough of the newest
-- ones; `id + 0` makes the index of the words find the others.
WITH newest AS MATERIALIZED (
    SELECT id FROM (SELECT * FROM gallery WHERE id < :before ORDER BY id DESC LIMIT 2000) AS read
    WHERE found_by @@ words_query(:words)
        AND :session_id IN ('', session_id) AND :day IN ('', day) AND :model IN ('', model)
        AND :provider IN ('', provider) AND cost_nano >= :cost_nano
    ORDER BY id DESC LIMIT :limit OFFSET :skip
), every AS (
    SELECT id FROM gallery
    WHERE found_by @@ words_query(:words) AND id < :before
        AND :session_id IN ('', session_id) AND :day IN ('', day) AND :model IN ('', model)
        AND :provider IN ('', provider) AND cost_nano >= :cost_nano
    ORDER BY id + 0 DESC LIMIT :limit OFFSET :skip
)
SELECT id FROM newest WHERE (SELECT count(*) FROM newest) = :limit
UNION ALL
SELECT id FROM every WHERE (SELECT count(*) FROM newest) < :limit
ORDER BY id DESC;

-- name: gallery_terms
-- Not needed: `gallery_by_words` reads the newest pictures first.
SELECT :word AS term WHERE :limit < 0;

-- name: gallery_totals_clear
DELETE FROM gallery_total_parts;

-- name: home_check
-- PostgreSQL checks its pages by itself.
SELECT 'ok';

-- name: item_search
-- SQLite's LIKE takes small and capital letters for the same.
SELECT session_id, item FROM items
WHERE item ILIKE :pattern ESCAPE '\'
ORDER BY session_id, seq
LIMIT :limit;

-- name: ledger_ids_go_on
SELECT setval(pg_get_serial_sequence('ledger', 'id'), max(id)) AS last_id FROM ledger;

-- name: spending_by_session
-- A session has one part, and the index gives the order.
SELECT name, settled_nano + unknown_nano AS nano, calls, last_id
FROM spending_parts
WHERE kind = 'session' AND calls > 0 AND (CAST(:after AS BIGINT) IS NULL OR last_id < :after)
ORDER BY last_id DESC
LIMIT :limit;

-- name: spending_clear
DELETE FROM spending_parts;

-- name: spending_rebuild
INSERT INTO spending_parts
SELECT
    kind, name, 0, sum(settled_nano), sum(unknown_nano), sum(in_flight_nano), sum(calls), max(id)
FROM ledger_counts
GROUP BY kind, name;
