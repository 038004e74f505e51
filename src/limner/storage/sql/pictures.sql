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

-- name: picture_recent
-- The newest pictures first.
SELECT handle, mime, width, height, size_bytes, parent, lineage, created_ms
FROM pictures
ORDER BY created_ms DESC, rowid DESC
LIMIT :limit;

-- name: picture_handles
-- Every handle there is.
SELECT handle FROM pictures ORDER BY handle;
