-- What was read in a picture. Readings of its other forms count for the picture itself.
CREATE TABLE picture_text (
    handle TEXT PRIMARY KEY,
    words TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- When a person deleted a picture. Its bytes are gone; its row stays for the lineage of others, and
-- what it cost stays in the ledger.
ALTER TABLE pictures ADD COLUMN deleted_ms INTEGER;

-- As in migration 14, without deleted pictures, and with the text in them: what was read there, and
-- the labels of a document that limner drew.
DROP VIEW gallery_facts;
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
        || ' ' || coalesce(
            (SELECT words FROM picture_text WHERE picture_text.handle = found.handle), ''
        )
        || ' ' || coalesce(
            CASE
                WHEN json_valid(source)
                THEN (SELECT group_concat(atom, ' ') FROM json_tree(source) WHERE type = 'text')
                ELSE substr(source, 1, 20000)
            END,
            ''
        )
    ) AS words
FROM (
    SELECT handle, parent, created_ms, facts, json_extract(facts, '$.scene.source') AS source
    FROM (
        SELECT handle, parent, created_ms, iif(json_valid(lineage), lineage, '{}') AS facts
        FROM pictures
        WHERE deleted_ms IS NULL
    )
) AS found
WHERE parent IS NULL OR json_extract(facts, '$.made') = 'transform';

UPDATE gallery SET words = facts.words
FROM gallery_facts AS facts
WHERE gallery.handle = facts.handle
    AND gallery.handle IN (SELECT handle FROM pictures WHERE lineage LIKE '%"source"%');

CREATE TRIGGER gallery_read AFTER INSERT ON picture_text BEGIN
    UPDATE gallery SET words = facts.words
    FROM gallery_facts AS facts
    WHERE gallery.handle = NEW.handle AND facts.handle = NEW.handle;
END;

CREATE TRIGGER gallery_read_again AFTER UPDATE ON picture_text BEGIN
    UPDATE gallery SET words = facts.words
    FROM gallery_facts AS facts
    WHERE gallery.handle = NEW.handle AND facts.handle = NEW.handle;
END;

CREATE TRIGGER picture_text_removed AFTER DELETE ON pictures BEGIN
    DELETE FROM picture_text WHERE handle = OLD.handle;
END;

CREATE TRIGGER gallery_deleted AFTER UPDATE OF deleted_ms ON pictures
WHEN NEW.deleted_ms IS NOT NULL BEGIN
    DELETE FROM gallery WHERE handle = NEW.handle;
    DELETE FROM picture_text WHERE handle = NEW.handle;
END;

-- The same bytes came in again.
CREATE TRIGGER gallery_came_back AFTER UPDATE OF deleted_ms ON pictures
WHEN NEW.deleted_ms IS NULL AND OLD.deleted_ms IS NOT NULL BEGIN
    INSERT INTO gallery (handle, day, provider, model, session_id, cost_nano, words)
    SELECT handle, day, provider, model, session_id, cost_nano, words
    FROM gallery_facts WHERE handle = NEW.handle
    ON CONFLICT (handle) DO NOTHING;
END;
