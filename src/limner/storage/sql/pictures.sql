-- name: picture_add
-- Record a picture; one that is known already keeps its first row.
INSERT INTO pictures (handle, mime, width, height, size_bytes, parent, lineage, created_ms)
VALUES (:handle, :mime, :width, :height, :size_bytes, :parent, :lineage, :created_ms)
ON CONFLICT (handle) DO NOTHING;

-- name: picture_get
-- One picture by its handle.
SELECT handle, mime, width, height, size_bytes, parent, lineage, created_ms
FROM pictures
WHERE handle = :handle;

-- name: picture_made_of
-- What was made of a picture, oldest first: conversions and fits, and pictures drawn from it.
SELECT handle, mime, width, height, size_bytes, parent, lineage, created_ms
FROM pictures
WHERE parent = :handle
    OR handle IN (SELECT picture FROM drawn_from WHERE drawn_from.parent = :handle)
ORDER BY created_ms, rowid
LIMIT :limit;

-- name: picture_recent
-- The newest pictures first.
SELECT handle, mime, width, height, size_bytes, parent, lineage, created_ms
FROM pictures
ORDER BY created_ms DESC, rowid DESC
LIMIT :limit;

-- name: picture_handles
-- Every handle there is.
SELECT handle FROM pictures ORDER BY handle;

-- name: fit_add
-- Remember what was made of a picture; made twice at once, the first one stays.
INSERT INTO fits (parent, request, picture, fitted, created_ms)
VALUES (:parent, :request, :picture, :fitted, :created_ms)
ON CONFLICT (parent, request) DO NOTHING;

-- name: fit_get
-- What was made of a picture under those limits.
SELECT picture, fitted FROM fits WHERE parent = :parent AND request = :request;
