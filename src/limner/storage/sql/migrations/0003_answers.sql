-- What a model answered to a question about pictures, by the hash of all that was asked.
CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
