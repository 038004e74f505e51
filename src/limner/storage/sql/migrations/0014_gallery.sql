-- One row for each picture that a person would look for: all that came in or was drawn, and what
-- `image_transform` made, but no fits and no other formats. `id` is the order in which they came.
-- Triggers keep it, whichever version of limner writes a picture or pays for it.
CREATE TABLE gallery (
    id INTEGER PRIMARY KEY,
    handle TEXT NOT NULL UNIQUE,
    day TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    session_id TEXT NOT NULL,
    cost_nano INTEGER NOT NULL,
    words TEXT NOT NULL
) STRICT;
CREATE INDEX gallery_by_day ON gallery (day, id);
CREATE INDEX gallery_by_provider ON gallery (provider, id);
CREATE INDEX gallery_by_model ON gallery (model, id);
CREATE INDEX gallery_by_session ON gallery (session_id, id);

-- What is searched: prompts and names of files.
CREATE VIRTUAL TABLE gallery_text USING fts5 (
    words, content = 'gallery', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);

-- The row of a picture, as the pictures and the ledger say it.
CREATE VIEW gallery_facts AS
SELECT
    handle,
    created_ms,
    strftime('%Y-%m-%d', created_ms / 1000, 'unixepoch') AS day,
    coalesce(json_extract(facts, '$.provider'), '') AS provider,
    coalesce(json_extract(facts, '$.provider') || '/' || json_extract(facts, '$.model'), '')
        AS model,
    coalesce(
        (SELECT session_id FROM ledger WHERE picture = handle ORDER BY id DESC LIMIT 1), ''
    ) AS session_id,
    coalesce(
        (
            SELECT sum(cost_nano) FROM ledger
            WHERE picture = handle AND state IN ('settled', 'unknown')
        ),
        0
    ) AS cost_nano,
    trim(
        coalesce(json_extract(facts, '$.prompt'), '') || ' '
        || coalesce(json_extract(facts, '$.file'), '') || ' '
        || coalesce((SELECT group_concat(DISTINCT path) FROM ledger WHERE picture = handle), '')
    ) AS words
FROM (
    SELECT handle, parent, created_ms, iif(json_valid(lineage), lineage, '{}') AS facts
    FROM pictures
)
WHERE parent IS NULL OR json_extract(facts, '$.made') = 'transform';

INSERT INTO gallery (handle, day, provider, model, session_id, cost_nano, words)
SELECT handle, day, provider, model, session_id, cost_nano, words
FROM gallery_facts
ORDER BY created_ms;

INSERT INTO gallery_text (gallery_text) VALUES ('rebuild');

CREATE TRIGGER gallery_added AFTER INSERT ON gallery BEGIN
    INSERT INTO gallery_text (rowid, words) VALUES (NEW.id, NEW.words);
END;

CREATE TRIGGER gallery_removed AFTER DELETE ON gallery BEGIN
    INSERT INTO gallery_text (gallery_text, rowid, words) VALUES ('delete', OLD.id, OLD.words);
END;

CREATE TRIGGER gallery_changed AFTER UPDATE OF words ON gallery WHEN OLD.words <> NEW.words BEGIN
    INSERT INTO gallery_text (gallery_text, rowid, words) VALUES ('delete', OLD.id, OLD.words);
    INSERT INTO gallery_text (rowid, words) VALUES (NEW.id, NEW.words);
END;

CREATE TRIGGER gallery_picture AFTER INSERT ON pictures BEGIN
    INSERT INTO gallery (handle, day, provider, model, session_id, cost_nano, words)
    SELECT handle, day, provider, model, session_id, cost_nano, words
    FROM gallery_facts WHERE handle = NEW.handle
    ON CONFLICT (handle) DO NOTHING;
END;

CREATE TRIGGER gallery_picture_removed AFTER DELETE ON pictures BEGIN
    DELETE FROM gallery WHERE handle = OLD.handle;
END;

CREATE TRIGGER gallery_paid AFTER UPDATE OF state, cost_nano, picture, path ON ledger
WHEN NEW.picture IS NOT NULL BEGIN
    UPDATE gallery SET
        session_id = facts.session_id, cost_nano = facts.cost_nano, words = facts.words
    FROM gallery_facts AS facts
    WHERE gallery.handle = NEW.picture AND facts.handle = NEW.picture;
END;
