-- Which home this database belongs to, and how many transactions have written to it. The file
-- `home-id` beside the database says the same, so that a lost or older database is noticed.
CREATE TABLE home (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL,
    writes INTEGER NOT NULL
) STRICT;
INSERT INTO home (only, id, writes) VALUES (1, lower(hex(randomblob(16))), 0);
