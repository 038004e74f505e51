-- What was made of a picture under one set of limits, so that it is not made again. `picture` is
-- the parent itself where it fits as it is.
CREATE TABLE fits (
    parent TEXT NOT NULL REFERENCES pictures (handle),
    request TEXT NOT NULL,
    picture TEXT NOT NULL REFERENCES pictures (handle),
    fitted TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (parent, request)
) STRICT, WITHOUT ROWID;
CREATE INDEX fits_by_picture ON fits (picture);
