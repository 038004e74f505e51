-- name: garbage_pictures
-- Every picture, and the provider that drew it.
SELECT handle, parent, size_bytes, created_ms, json_extract(lineage, '$.provider') AS provider
FROM pictures;

-- name: garbage_fits
-- What was made of which picture.
SELECT parent, picture FROM fits;

-- name: garbage_drawn_from
-- What was drawn from which picture.
SELECT parent, picture FROM drawn_from;

-- name: garbage_named
-- The pictures that something else refers to.
SELECT handle FROM item_pictures
UNION
SELECT picture FROM ledger WHERE picture IS NOT NULL
UNION
SELECT picture FROM batch_rows WHERE picture IS NOT NULL
UNION
-- What was delivered for a job that has no picture yet.
SELECT jobs.delivered_sha256
FROM jobs JOIN ledger ON ledger.id = jobs.ledger_id
WHERE jobs.delivered_sha256 IS NOT NULL
    AND ledger.picture IS NULL AND ledger.state <> 'released'
UNION
SELECT drawn_from.value
FROM jobs
    JOIN ledger ON ledger.id = jobs.ledger_id,
    json_each(iif(json_valid(jobs.request), jobs.request, '{}'), '$.parents') AS drawn_from
WHERE ledger.state IN ('reserved', 'sent', 'unknown');

-- name: garbage_repaired
-- The pictures whose rows a repair made: what referred to them may be lost.
SELECT handle FROM pictures WHERE json_extract(lineage, '$.repaired') IS NOT NULL;

-- name: garbage_owed
-- Since when a call of each provider that has not ended may have brought a picture.
SELECT ledger.provider, min(ledger.created_ms) AS since_ms
FROM ledger LEFT JOIN jobs ON jobs.ledger_id = ledger.id
WHERE ledger.state = 'reserved' OR (ledger.state IN ('sent', 'unknown') AND jobs.id IS NOT NULL)
GROUP BY ledger.provider;

-- name: garbage_in_flight
-- Since when a call that runs may have brought a picture.
SELECT ledger.created_ms AS since_ms
FROM ledger LEFT JOIN jobs ON jobs.ledger_id = ledger.id
WHERE ledger.state IN ('reserved', 'sent') AND (ledger.state = 'reserved' OR jobs.id IS NOT NULL)
ORDER BY ledger.created_ms
LIMIT 1;

-- name: garbage_used
-- Which of these pictures a session, a payment or a call that runs refers to.
SELECT value AS handle
FROM json_each(:handles)
WHERE EXISTS (SELECT 1 FROM item_pictures WHERE item_pictures.handle = value)
    OR EXISTS (SELECT 1 FROM ledger WHERE ledger.picture = value)
    OR EXISTS (SELECT 1 FROM batch_rows WHERE batch_rows.picture = value)
UNION
SELECT drawn_from.value
FROM ledger
    JOIN jobs ON jobs.ledger_id = ledger.id,
    json_each(iif(json_valid(jobs.request), jobs.request, '{}'), '$.parents') AS drawn_from
WHERE ledger.state IN ('reserved', 'sent');

-- name: garbage_made_from
-- What was made of these pictures.
SELECT parent, handle AS picture FROM pictures
WHERE parent IN (SELECT value FROM json_each(:handles))
UNION
SELECT parent, picture FROM drawn_from WHERE parent IN (SELECT value FROM json_each(:handles));

-- name: garbage_stored
-- Which of these pictures came, or came again, since a time.
SELECT handle FROM pictures
WHERE handle IN (SELECT value FROM json_each(:handles))
    AND coalesce(stored_ms, created_ms) >= :since_ms;

-- name: garbage_known
-- Which of these handles have become pictures, or were delivered for a job.
SELECT handle FROM pictures WHERE handle IN (SELECT value FROM json_each(:handles))
UNION
SELECT delivered_sha256 FROM jobs
WHERE delivered_sha256 IN (SELECT value FROM json_each(:handles));

-- name: garbage_drop_fits
DELETE FROM fits
WHERE parent IN (SELECT value FROM json_each(:handles))
    OR picture IN (SELECT value FROM json_each(:handles));

-- name: garbage_part
-- Remove references to parents that are deleted. A form of two pictures becomes the other's.
UPDATE pictures
SET parent = (SELECT fits.parent FROM fits WHERE fits.picture = pictures.handle LIMIT 1)
WHERE parent IN (SELECT value FROM json_each(:handles));

-- name: garbage_drop_pictures
DELETE FROM pictures WHERE handle IN (SELECT value FROM json_each(:handles));
