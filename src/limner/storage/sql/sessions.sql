-- name: session_touch
-- Begin a session, or note that it was used just now and from where.
INSERT INTO sessions (id, created_ms, updated_ms, cwd)
VALUES (:id, :now_ms, :now_ms, :cwd)
ON CONFLICT (id) DO UPDATE SET
    updated_ms = CASE
        WHEN sessions.updated_ms > excluded.updated_ms THEN sessions.updated_ms
        ELSE excluded.updated_ms
    END,
    cwd = excluded.cwd;

-- name: session_get
-- One session by its id.
SELECT id, created_ms, updated_ms, cwd FROM sessions WHERE id = :id;

-- name: session_recent
-- The sessions used last first.
SELECT id, created_ms, updated_ms, cwd
FROM sessions
ORDER BY updated_ms DESC, rowid DESC
LIMIT :limit;

-- name: session_create
-- Begin a session; nothing happens where the id is taken.
INSERT INTO sessions (id, created_ms, updated_ms, cwd, name, settings)
VALUES (:id, :created_ms, :created_ms, :cwd, :name, :settings)
ON CONFLICT (id) DO NOTHING;

-- name: session_about
-- All that is known of a session beside its items.
SELECT
    id, name, preview, cwd, settings, created_ms, updated_ms, archived_ms, forked_from, items,
    sends_from, read_untrusted_ms,
    coalesce(
        (
            SELECT settled_nano + unknown_nano FROM spending
            WHERE kind = 'session' AND spending.name = sessions.id
        ),
        0
    ) AS spent_nano
FROM sessions
WHERE id = :id;

-- name: session_list
-- The sessions used last first, from behind a place in that order.
SELECT
    id, name, preview, cwd, settings, created_ms, updated_ms, archived_ms, forked_from, items,
    sends_from, read_untrusted_ms,
    coalesce(
        (
            SELECT settled_nano + unknown_nano FROM spending
            WHERE kind = 'session' AND spending.name = sessions.id
        ),
        0
    ) AS spent_nano
FROM sessions
WHERE (archived_ms IS NOT NULL) = :archived
    AND (CAST(:after_ms AS BIGINT) IS NULL OR (updated_ms, id) < (:after_ms, :after_id))
ORDER BY updated_ms DESC, id DESC
LIMIT :limit;

-- name: session_find
-- The ids that begin with a prefix.
SELECT id FROM sessions
WHERE id >= :prefix AND id < :end
ORDER BY id
LIMIT :limit;

-- name: session_rename
UPDATE sessions SET name = :name WHERE id = :id;

-- name: session_configure
UPDATE sessions SET settings = :settings WHERE id = :id;

-- name: session_archive
UPDATE sessions SET archived_ms = :archived_ms WHERE id = :id;

-- name: session_delete
DELETE FROM sessions WHERE id = :id;

-- name: session_grow
-- Make room for so many items; the answer is the seq of the first, and what the session has cost.
UPDATE sessions
SET items = items + :count,
    updated_ms = CASE WHEN updated_ms > :now_ms THEN updated_ms ELSE :now_ms END,
    preview = coalesce(preview, :preview)
WHERE id = :id
RETURNING
    items - :count AS first_seq,
    coalesce(
        (
            SELECT settled_nano + unknown_nano FROM spending
            WHERE kind = 'session' AND spending.name = sessions.id
        ),
        0
    ) AS spent_nano;

-- name: session_compacted
-- From here on a model is sent only what follows.
UPDATE sessions SET sends_from = items WHERE id = :id;

-- name: session_note_untrusted
-- Only the first time is kept.
UPDATE sessions SET read_untrusted_ms = coalesce(read_untrusted_ms, :now_ms) WHERE id = :id;

-- name: session_fork
-- A session that begins as another did.
INSERT INTO sessions (
    id, created_ms, updated_ms, cwd, name, preview, settings, forked_from, items, sends_from,
    read_untrusted_ms
)
SELECT
    :id, :now_ms, :now_ms, cwd, name, preview, settings, id, CASE WHEN items < :before THEN items ELSE :before END,
    CASE WHEN sends_from < :before THEN sends_from ELSE 0 END, read_untrusted_ms
FROM sessions
WHERE id = :source;

-- name: item_add
INSERT INTO items (session_id, seq, created_ms, item)
VALUES (:session_id, :seq, :created_ms, :item);

-- name: item_names
-- Note that an item names a picture, if it is one.
INSERT INTO item_pictures (session_id, handle, seq)
SELECT :session_id, handle, :seq FROM pictures WHERE handle = :handle;

-- name: item_page
-- The items from a seq on.
SELECT seq, created_ms, item
FROM items
WHERE session_id = :session_id AND seq >= :from_seq
ORDER BY seq
LIMIT :limit;

-- name: item_fork
INSERT INTO items (session_id, seq, created_ms, item)
SELECT :id, seq, created_ms, item FROM items WHERE session_id = :source AND seq < :before;

-- name: item_names_fork
INSERT INTO item_pictures (session_id, handle, seq)
SELECT :id, handle, seq FROM item_pictures WHERE session_id = :source AND seq < :before;

-- name: session_pictures
-- The pictures that a session names.
SELECT DISTINCT handle FROM item_pictures WHERE session_id = :id ORDER BY handle;

-- name: item_search
-- The items that have a text, in the order of their sessions.
SELECT session_id, item FROM items
WHERE item LIKE :pattern ESCAPE '\'
ORDER BY session_id, seq
LIMIT :limit;

-- name: item_cut
-- Delete the last items of a session.
DELETE FROM items WHERE session_id = :id AND seq >= :from_seq;

-- name: item_cut_pictures
-- The pictures of deleted items are no longer named.
DELETE FROM item_pictures WHERE session_id = :id AND seq >= :from_seq;

-- name: session_cut
-- Note how many items are left, and which of them a model is sent.
UPDATE sessions SET items = :items, sends_from = :sends_from WHERE id = :id;
