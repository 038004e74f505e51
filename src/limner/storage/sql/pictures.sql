-- name: picture_add
-- Record a picture; one that is known already keeps its first row, and one that was deleted is back.
INSERT INTO pictures (handle, mime, width, height, size_bytes, parent, lineage, created_ms)
VALUES (:handle, :mime, :width, :height, :size_bytes, :parent, :lineage, :created_ms)
ON CONFLICT (handle) DO UPDATE SET deleted_ms = NULL, stored_ms = excluded.created_ms
WHERE pictures.deleted_ms IS NOT NULL;

-- name: picture_stored
-- Note that the bytes of a known picture were stored again; within a minute, once is enough.
UPDATE pictures SET stored_ms = :now_ms
WHERE handle = :handle AND coalesce(stored_ms, created_ms) < :now_ms - 60000;

-- name: picture_get
-- One picture by its handle.
SELECT handle, mime, width, height, size_bytes, parent, lineage, created_ms, deleted_ms
FROM pictures
WHERE handle = :handle;

-- name: picture_made_of
-- What was made of a picture, oldest first: conversions and fits, and pictures drawn from it.
SELECT handle, mime, width, height, size_bytes, parent, lineage, created_ms
FROM pictures
WHERE deleted_ms IS NULL AND (
    parent = :handle
    OR handle IN (SELECT picture FROM drawn_from WHERE drawn_from.parent = :handle)
)
ORDER BY created_ms, rowid
LIMIT :limit;

-- name: picture_recent
-- The newest pictures first.
SELECT handle, mime, width, height, size_bytes, parent, lineage, created_ms
FROM pictures
ORDER BY created_ms DESC, rowid DESC
LIMIT :limit;

-- name: picture_handles
-- Every picture that has bytes.
SELECT handle FROM pictures WHERE deleted_ms IS NULL ORDER BY handle;

-- name: picture_forms
-- Some pictures with their fits, formats and masks, but without what a person made of them, and
-- without a form that another picture has too.
WITH RECURSIVE forms (handle) AS (
    SELECT handle FROM pictures WHERE handle IN (SELECT value FROM json_each(:handles))
    UNION
    SELECT pictures.handle
    FROM pictures JOIN forms ON pictures.parent = forms.handle
    WHERE coalesce(json_extract(pictures.lineage, '$.made'), '') <> 'transform'
)
SELECT pictures.handle, pictures.size_bytes
FROM forms JOIN pictures ON pictures.handle = forms.handle
WHERE pictures.deleted_ms IS NULL AND NOT EXISTS (
    SELECT 1 FROM fits
    WHERE fits.picture = forms.handle AND fits.parent NOT IN (SELECT handle FROM forms)
);

-- name: picture_files
-- The files that were written for some pictures.
SELECT DISTINCT picture, path FROM ledger
WHERE picture IN (SELECT value FROM json_each(:handles)) AND path IS NOT NULL;

-- name: pictures_delete
UPDATE pictures SET deleted_ms = :now_ms
WHERE handle IN (SELECT value FROM json_each(:handles));

-- name: picture_text_add
-- Keep what was read in a picture or in a form of it; a longer reading replaces a shorter one.
WITH RECURSIVE forms (handle, parent) AS (
    SELECT handle, parent FROM pictures WHERE handle = :handle AND deleted_ms IS NULL
    UNION
    SELECT pictures.handle, pictures.parent
    FROM pictures JOIN forms ON pictures.handle = forms.parent
)
INSERT INTO picture_text (handle, words)
SELECT gallery.handle, :words
FROM forms JOIN gallery ON gallery.handle = forms.handle
WHERE true
ORDER BY gallery.id DESC
LIMIT 1
ON CONFLICT (handle) DO UPDATE SET words = excluded.words
WHERE length(excluded.words) > length(picture_text.words);

-- name: fit_add
-- Remember what was made of a picture; made twice at once, the first one stays.
INSERT INTO fits (parent, request, picture, fitted, created_ms)
VALUES (:parent, :request, :picture, :fitted, :created_ms)
ON CONFLICT (parent, request) DO NOTHING;

-- name: fit_get
-- What was made of a picture under those limits.
SELECT picture, fitted FROM fits WHERE parent = :parent AND request = :request;
