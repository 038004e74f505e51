-- As migration 19 of SQLite. An id that a conflict used up is no gap of this table: then the list is
-- walked.
CREATE TABLE gallery_gaps (id bigint PRIMARY KEY);

INSERT INTO gallery_gaps
SELECT generate_series(id + 1, following - 1)
FROM (SELECT id, lead(id) OVER (ORDER BY id) AS following FROM gallery) AS listed
WHERE following > id + 1;

CREATE FUNCTION note_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO gallery_gaps VALUES (OLD.id) ON CONFLICT (id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER gallery_gap_made AFTER DELETE ON gallery
FOR EACH ROW EXECUTE FUNCTION note_gap();
