-- The ids between those of the gallery that have no row, because their pictures were deleted: a jump
-- into the list then needs no walk over all that is left out.
CREATE TABLE gallery_gaps (id INTEGER PRIMARY KEY) STRICT;

INSERT INTO gallery_gaps
WITH RECURSIVE
    spans (id, last) AS (
        SELECT id + 1, following - 1
        FROM (SELECT id, lead(id) OVER (ORDER BY id) AS following FROM gallery)
        WHERE following > id + 1
    ),
    missing (id, last) AS (
        SELECT id, last FROM spans
        UNION ALL
        SELECT id + 1, last FROM missing WHERE id < last
    )
SELECT id FROM missing;

CREATE TRIGGER gallery_gap_made AFTER DELETE ON gallery BEGIN
    INSERT INTO gallery_gaps VALUES (OLD.id) ON CONFLICT (id) DO NOTHING;
END;

CREATE TRIGGER gallery_gap_filled AFTER INSERT ON gallery BEGIN
    DELETE FROM gallery_gaps WHERE id = NEW.id;
END;
