-- A session is an append-only list of items. `items` counts them and is the seq of the next one;
-- `sends_from` is the first that a model is still sent, the ones before having been compacted.
ALTER TABLE sessions ADD COLUMN name TEXT;
ALTER TABLE sessions ADD COLUMN preview TEXT;
ALTER TABLE sessions ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sessions ADD COLUMN archived_ms INTEGER;
ALTER TABLE sessions ADD COLUMN forked_from TEXT;
ALTER TABLE sessions ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN sends_from INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_by_use ON sessions (updated_ms, id);

-- An item is the JSON object it arrived as, its pictures named by handle.
CREATE TABLE items (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    item TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT;

-- Which item names which picture. A picture named here is kept.
CREATE TABLE item_pictures (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    handle TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (session_id, handle, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_pictures_by_handle ON item_pictures (handle);
