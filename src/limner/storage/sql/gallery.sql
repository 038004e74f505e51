-- The pictures that a person looks for, the newest first; triggers keep the table (migrations 14 and 17 to 20).
-- Each of the `gallery_by_*` queries starts with the index of one filter. An empty text is no filter.

-- name: gallery_page
SELECT
    gallery.id, gallery.handle, gallery.provider, gallery.model, gallery.session_id,
    gallery.cost_nano, pictures.mime, pictures.width, pictures.height, pictures.size_bytes,
    pictures.lineage, pictures.created_ms
FROM gallery JOIN pictures ON pictures.handle = gallery.handle
WHERE gallery.id IN (SELECT CAST(value AS BIGINT) FROM json_each(:ids))
ORDER BY gallery.id DESC;

-- name: gallery_find
SELECT
    gallery.id, gallery.handle, gallery.provider, gallery.model, gallery.session_id,
    gallery.cost_nano, pictures.mime, pictures.width, pictures.height, pictures.size_bytes,
    pictures.lineage, pictures.created_ms
FROM gallery JOIN pictures ON pictures.handle = gallery.handle
WHERE gallery.handle IN (SELECT value FROM json_each(:handles));

-- name: gallery_by_id
SELECT id FROM gallery NOT INDEXED
WHERE id < :before
ORDER BY id DESC LIMIT :limit OFFSET :skip;

-- name: gallery_by_cost
SELECT id FROM gallery INDEXED BY gallery_by_cost
WHERE cost_nano > 0 AND cost_nano >= :cost_nano AND id < :before
ORDER BY id DESC LIMIT :limit OFFSET :skip;

-- name: gallery_by_words
SELECT id
FROM gallery_text CROSS JOIN gallery ON gallery.id = gallery_text.rowid
WHERE gallery_text MATCH (SELECT group_concat(value, ' AND ') FROM json_each(:words))
    AND gallery_text.rowid < :before
    AND :session_id IN ('', session_id) AND :day IN ('', day) AND :model IN ('', model)
    AND :provider IN ('', provider) AND cost_nano >= :cost_nano
ORDER BY gallery_text.rowid DESC LIMIT :limit OFFSET :skip;

-- name: gallery_terms
-- The words of the index that begin so. Each step goes to the next word, past the pictures of one.
WITH RECURSIVE found (term) AS (
    SELECT (SELECT term FROM gallery_text_terms WHERE term >= :word LIMIT 1)
    UNION ALL
    SELECT (SELECT term FROM gallery_text_terms WHERE term >= found.term || char(1) LIMIT 1)
    FROM found
    WHERE substr(found.term, 1, length(:word)) = :word
)
SELECT term FROM found WHERE substr(term, 1, length(:word)) = :word LIMIT :limit;

-- name: gallery_by_session
SELECT id FROM gallery INDEXED BY gallery_by_session
WHERE session_id = :session_id AND id < :before
    AND :session_id IN ('', session_id) AND :day IN ('', day) AND :model IN ('', model)
    AND :provider IN ('', provider) AND cost_nano >= :cost_nano
ORDER BY id DESC LIMIT :limit OFFSET :skip;

-- name: gallery_by_day
SELECT id FROM gallery INDEXED BY gallery_by_day
WHERE day = :day AND id < :before
    AND :session_id IN ('', session_id) AND :day IN ('', day) AND :model IN ('', model)
    AND :provider IN ('', provider) AND cost_nano >= :cost_nano
ORDER BY id DESC LIMIT :limit OFFSET :skip;

-- name: gallery_by_model
SELECT id FROM gallery INDEXED BY gallery_by_model
WHERE model = :model AND id < :before
    AND :session_id IN ('', session_id) AND :day IN ('', day) AND :model IN ('', model)
    AND :provider IN ('', provider) AND cost_nano >= :cost_nano
ORDER BY id DESC LIMIT :limit OFFSET :skip;

-- name: gallery_by_provider
SELECT id FROM gallery INDEXED BY gallery_by_provider
WHERE provider = :provider AND id < :before
    AND :session_id IN ('', session_id) AND :day IN ('', day) AND :model IN ('', model)
    AND :provider IN ('', provider) AND cost_nano >= :cost_nano
ORDER BY id DESC LIMIT :limit OFFSET :skip;

-- name: gallery_span
-- How many pictures there are, and the first and the last id.
SELECT
    coalesce((SELECT pictures FROM gallery_totals WHERE model = ''), 0) AS total,
    coalesce((SELECT min(id) FROM gallery), 1) AS oldest,
    coalesce((SELECT max(id) FROM gallery), 0) AS newest;

-- name: gallery_gaps
-- How many ids from the first and before the end have no picture any more.
SELECT count(*) AS gaps FROM gallery_gaps WHERE id >= :first AND id < :end;

-- name: gallery_models
-- The models that drew something, those with most pictures first.
SELECT model AS name, pictures
FROM gallery_totals
WHERE model > '' AND pictures > 0
ORDER BY pictures DESC, model;

-- name: gallery_clear
DELETE FROM gallery;

-- name: gallery_totals_clear
DELETE FROM gallery_totals;

-- name: gallery_rebuild
-- All rows anew, for a repair.
INSERT INTO gallery (handle, day, provider, model, session_id, cost_nano, words)
SELECT handle, day, provider, model, session_id, cost_nano, words
FROM gallery_facts
ORDER BY created_ms;
