-- name: home_check
-- What SQLite finds wrong with the database: one row "ok", or one row for each finding.
PRAGMA quick_check(5);

-- name: home_id
-- The id of this database.
SELECT id FROM home;
