-- How many pictures the gallery has, in all (an empty name) and of each model, so that no reader
-- counts rows.
CREATE TABLE gallery_totals (
    model TEXT PRIMARY KEY,
    pictures INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO gallery_totals SELECT '', count(*) FROM gallery;
INSERT INTO gallery_totals SELECT model, count(*) FROM gallery WHERE model > '' GROUP BY model;

CREATE TRIGGER gallery_counted AFTER INSERT ON gallery BEGIN
    INSERT INTO gallery_totals VALUES ('', 1)
    ON CONFLICT (model) DO UPDATE SET pictures = pictures + 1;
    INSERT INTO gallery_totals SELECT NEW.model, 1 WHERE NEW.model > ''
    ON CONFLICT (model) DO UPDATE SET pictures = pictures + 1;
END;

CREATE TRIGGER gallery_discounted AFTER DELETE ON gallery BEGIN
    UPDATE gallery_totals SET pictures = pictures - 1 WHERE model IN ('', OLD.model);
END;

CREATE INDEX gallery_by_cost ON gallery (id) WHERE cost_nano > 0;

-- A search for the beginning of a word reads one list instead of one for each word.
DROP TABLE gallery_text;
CREATE VIRTUAL TABLE gallery_text USING fts5 (
    words, content = 'gallery', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2',
    prefix = '1 2 3 4'
);
INSERT INTO gallery_text (gallery_text) VALUES ('rebuild');
