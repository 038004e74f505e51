-- name: garbage_pictures
-- Every picture, with the pictures it was drawn from.
SELECT handle, parent, size_bytes, created_ms, json_extract(lineage, '$.parents') AS drawn_from
FROM pictures;

-- name: garbage_fits
-- What was made of which picture.
SELECT parent, picture FROM fits;

-- name: garbage_named
-- The pictures that somebody outside of the pictures themselves counts on.
SELECT handle FROM item_pictures
UNION
SELECT picture FROM ledger WHERE picture IS NOT NULL
UNION
SELECT drawn_from.value
FROM jobs
    JOIN ledger ON ledger.id = jobs.ledger_id,
    json_each(iif(json_valid(jobs.request), jobs.request, '{}'), '$.parents') AS drawn_from
WHERE ledger.state IN ('reserved', 'sent', 'unknown');

-- name: garbage_drop_fits
DELETE FROM fits
WHERE parent IN (SELECT value FROM json_each(:handles))
    OR picture IN (SELECT value FROM json_each(:handles));

-- name: garbage_part
-- Let go of parents that leave. What was made of another as well becomes that one's.
UPDATE pictures
SET parent = (SELECT fits.parent FROM fits WHERE fits.picture = pictures.handle LIMIT 1)
WHERE parent IN (SELECT value FROM json_each(:handles));

-- name: garbage_drop_pictures
DELETE FROM pictures WHERE handle IN (SELECT value FROM json_each(:handles));
